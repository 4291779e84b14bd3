# h5i_add_plugin(): the one way to build a plugin, in this tree and outside it (installed with the SDK).
#
# h5i_add_plugin(NAME file-name            # tier-process: gives tier-process.so and tier-process.plugin.yaml
#   ID id                                  # "process"; outside plugins use a reversed domain, "com.example.my"
#   KIND tier
#   [VERSION x.y.z]                        # default: the project's
#   SOURCES file...
#   [LINK library...] [INCLUDE directory...]
#   [HOST_SERVICES spawn evidence ...]     # what the host may offer it; others are not given
#   [CLAIMS fs.read ...]                   # policy fields that it says it enforces
#   [NEEDS libseccomp.so.2 ...]            # shared libraries besides the C library
#   [LANES host-observed]
#   [POSTURE text]                         # one sentence for people: what it confines and what it does not
#   [MAINTAINERS text...]
#   [PACKAGE name]                         # default h5i-<file-name>
#   [COMPONENT name]                       # install component, default <file-name>
#   [OUTPUT_DIRECTORY directory] [NO_INSTALL])
#
# The target is called like the plugin. The manifest is written after each link and carries the library's SHA-256 and
# size, so nothing may change the library afterwards: it is installed as a file, never stripped or relinked on the way.
set(H5I_PLUGIN_CMAKE_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(H5I_PLUGIN_SUBDIR "lib/h5i/plugins/1")

function(h5i_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 A "NO_INSTALL" "NAME;ID;KIND;VERSION;POSTURE;PACKAGE;COMPONENT;OUTPUT_DIRECTORY"
    "SOURCES;LINK;INCLUDE;HOST_SERVICES;CLAIMS;NEEDS;LANES;MAINTAINERS")
  if(NOT A_NAME AND A_UNPARSED_ARGUMENTS)
    list(POP_FRONT A_UNPARSED_ARGUMENTS A_NAME)
  endif()
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "h5i_add_plugin(${A_NAME}): unknown words: ${A_UNPARSED_ARGUMENTS}")
  endif()
  foreach(word NAME ID KIND SOURCES)
    if(NOT A_${word})
      message(FATAL_ERROR "h5i_add_plugin(${A_NAME}): ${word} is missing")
    endif()
  endforeach()
  if(NOT A_VERSION)
    set(A_VERSION "${PROJECT_VERSION}")
  endif()
  if(NOT A_VERSION)
    message(FATAL_ERROR "h5i_add_plugin(${A_NAME}): VERSION is missing and the project has none")
  endif()
  if(NOT A_LANES)
    set(A_LANES host-observed)
  endif()
  if(NOT A_PACKAGE)
    set(A_PACKAGE "h5i-${A_NAME}")
  endif()
  if(NOT A_COMPONENT)
    set(A_COMPONENT "${A_NAME}")
  endif()
  if(NOT A_OUTPUT_DIRECTORY)
    set(A_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/out/${H5I_PLUGIN_SUBDIR}")
  endif()

  add_library(${A_NAME} MODULE ${A_SOURCES})
  set_target_properties(${A_NAME} PROPERTIES
    PREFIX "" OUTPUT_NAME "${A_NAME}" SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY "${A_OUTPUT_DIRECTORY}"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON SKIP_BUILD_RPATH ON BUILD_WITH_INSTALL_RPATH OFF INSTALL_RPATH ""
    LINK_DEPENDS "${H5I_PLUGIN_CMAKE_DIR}/plugin.map")
  target_link_libraries(${A_NAME} PRIVATE h5i::sdk ${A_LINK})
  target_include_directories(${A_NAME} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" ${A_INCLUDE})
  target_compile_definitions(${A_NAME} PRIVATE
    "H5I_PLUGIN_ID=\"${A_ID}\"" "H5I_PLUGIN_VERSION=\"${A_VERSION}\"")
  target_compile_options(${A_NAME} PRIVATE -fstack-protector-strong -fno-strict-aliasing
    -ffunction-sections -fdata-sections $<$<CONFIG:Release,MinSizeRel>:-Os>)
  target_link_options(${A_NAME} PRIVATE
    "LINKER:--version-script=${H5I_PLUGIN_CMAKE_DIR}/plugin.map" LINKER:--exclude-libs,ALL LINKER:--as-needed
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,text
    LINKER:--gc-sections $<$<NOT:$<CONFIG:Debug>>:LINKER:-s>)  # every byte is hashed before each run
  if(H5I_SANITIZE)
    # A sanitizer's runtime is shared and the main program brings it; the manifest names it, because the lint would ask.
    target_compile_options(${A_NAME} PRIVATE -fsanitize=${H5I_SANITIZE} -fno-omit-frame-pointer -g1)
    target_link_options(${A_NAME} PRIVATE -fsanitize=${H5I_SANITIZE})
    list(APPEND A_NEEDS libasan.so.8 libubsan.so.1 libtsan.so.2 libstdc++.so.6 libgcc_s.so.1)
  else()
    target_link_options(${A_NAME} PRIVATE -static-libstdc++ -static-libgcc LINKER:-z,defs)
    target_compile_options(${A_NAME} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
      $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  endif()
  if(H5I_DEVELOPER)
    target_compile_options(${A_NAME} PRIVATE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Werror)
  endif()

  # Lists go to the manifest's script as one argument each, with "|" between the words.
  foreach(word HOST_SERVICES CLAIMS NEEDS LANES MAINTAINERS)
    list(JOIN A_${word} "|" ${word}_words)
  endforeach()
  set(manifest "${A_OUTPUT_DIRECTORY}/${A_NAME}.plugin.yaml")
  add_custom_command(TARGET ${A_NAME} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" "-DLIBRARY=$<TARGET_FILE:${A_NAME}>" "-DMANIFEST=${manifest}" "-DID=${A_ID}"
      "-DKIND=${A_KIND}" "-DVERSION=${A_VERSION}" "-DPLATFORM=linux-${CMAKE_SYSTEM_PROCESSOR}"
      "-DHOST_SERVICES=${HOST_SERVICES_words}" "-DCLAIMS=${CLAIMS_words}" "-DNEEDS=${NEEDS_words}"
      "-DLANES=${LANES_words}" "-DMAINTAINERS=${MAINTAINERS_words}" "-DPOSTURE=${A_POSTURE}" "-DPACKAGE=${A_PACKAGE}"
      -P "${H5I_PLUGIN_CMAKE_DIR}/H5iManifest.cmake"
    BYPRODUCTS "${manifest}" VERBATIM)
  if(NOT A_NO_INSTALL)
    install(FILES "$<TARGET_FILE:${A_NAME}>" "${manifest}" DESTINATION "${H5I_PLUGIN_SUBDIR}"
      PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ COMPONENT "${A_COMPONENT}")
    set_property(GLOBAL APPEND PROPERTY H5I_PLUGIN_COMPONENTS "${A_COMPONENT}")
    set_property(GLOBAL PROPERTY "H5I_PLUGIN_PACKAGE_${A_COMPONENT}" "${A_PACKAGE}")
    set_property(GLOBAL PROPERTY "H5I_PLUGIN_POSTURE_${A_COMPONENT}" "${A_POSTURE}")
  endif()
endfunction()
