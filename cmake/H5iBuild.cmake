# Compile and link options shared by every target of this tree, as interface targets (never global flags).
find_program(H5I_CCACHE ccache)
if(H5I_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${H5I_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${H5I_CCACHE}")
endif()

# A developer's build is compiled often and run briefly: half the time of -O2 -g. Packages use Release.
if(H5I_DEVELOPER)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
endif()

# -O3 makes every file a third larger, and a short run pays for each page.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

add_library(h5i_options INTERFACE)
# gcc 12 below -O2 believes that the destructor of a moved-from std::variant reads unset members.
target_compile_options(h5i_options INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  -fstack-protector-strong -fno-strict-aliasing $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  -fvisibility=hidden)
# gcc 12 below -O2 takes the unused alternatives of a std::variant for uninitialized members (GCC bug 80635 and its kin).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(h5i_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(H5I_DEVELOPER)
  target_compile_options(h5i_options INTERFACE -Werror)
else()
  target_compile_options(h5i_options INTERFACE -ffunction-sections -fdata-sections)
endif()
if(H5I_SANITIZE)
  # What undefined behaviour does after it was reported is nobody's business: the first report ends the program, and so the test.
  target_compile_options(h5i_options INTERFACE -fsanitize=${H5I_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(h5i_options INTERFACE -fsanitize=${H5I_SANITIZE})
  # Processes of every user write there.
  set(H5I_FINDINGS "${PROJECT_BINARY_DIR}/findings.txt")
  file(TOUCH "${H5I_FINDINGS}")
  file(CHMOD "${H5I_FINDINGS}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ GROUP_WRITE WORLD_READ WORLD_WRITE)
  add_library(h5i_sanitizer_finding OBJECT "${CMAKE_CURRENT_LIST_DIR}/sanitizer_finding.cpp")
  target_compile_definitions(h5i_sanitizer_finding PRIVATE "H5I_FINDINGS=\"${H5I_FINDINGS}\"")
  target_compile_options(h5i_sanitizer_finding PRIVATE -fPIC -Wall -Wextra -fno-sanitize=all)
  target_link_libraries(h5i_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:h5i_sanitizer_finding>>)
else()
  target_compile_options(h5i_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
# A fuzzer that sees no coverage guesses blindly: everything that a target reaches is instrumented, the runtime only linked to targets.
if(H5I_FUZZ)
  target_compile_options(h5i_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
# For the one file whose code nobody may instrument: linked after h5i_options, because the last word counts.
add_library(h5i_uninstrumented INTERFACE)
target_compile_options(h5i_uninstrumented INTERFACE -fno-sanitize=all)
target_link_options(h5i_options INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
  $<$<CONFIG:Release,MinSizeRel>:-Wl,-s>)
target_include_directories(h5i_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/sdk/include")

# Only a process with one thread makes a user namespace, and ThreadSanitizer starts one more in each child that it hears of.
# For what makes such namespaces after a fork: _Fork, which calls nobody.
add_library(h5i_forks_alone INTERFACE)
if(H5I_SANITIZE MATCHES "thread")
  target_compile_definitions(h5i_forks_alone INTERFACE fork=_Fork)
endif()

# What the run path links: no shared C++ runtime, so that starting it stays cheap.
add_library(h5i_static_runtime INTERFACE)
if(NOT H5I_SANITIZE)
  target_link_options(h5i_static_runtime INTERFACE -static-libstdc++ -static-libgcc)
endif()

# h5i_library(NAME SOURCES... [LINK ...]): one static library for one room of core/.
function(h5i_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC h5i_options ${A_LINK})
endfunction()

# h5i_test(NAME SOURCES... [LINK ...] [LABELS ...] [TIMEOUT s]): one test binary for one folder, on the Catch2 shim.
function(h5i_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  if(H5I_SANITIZE)
    math(EXPR A_TIMEOUT "${A_TIMEOUT} * 12")
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE h5i_options h5i_catch ${A_LINK})
  # Assertion macros are slow to optimise and gain nothing by it (glibc's fortify warns when it is off).
  target_compile_options(${name} PRIVATE -O0 -g1 -Wno-cpp)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "H5I_BUILD_DIR=${PROJECT_BINARY_DIR};H5I_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()
