# docs/errors.md from sdk/include/h5i/errors.def.
#   cmake -DSOURCE=<root> -P cmake/ErrorsDoc.cmake                 writes it
#   cmake -DSOURCE=<root> -DCHECK=ON -P cmake/ErrorsDoc.cmake      fails when it is not what would be written
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${SOURCE}/sdk/include/h5i/errors.def" lines)
set(out "# Errors

Generated from `sdk/include/h5i/errors.def` by `cmake -DSOURCE=. -P cmake/ErrorsDoc.cmake`; a test compares. The id is what messages, JSON,
receipts and logs carry; numbers are for ever. The class decides the exit status: *refused* and *failed* are 125 for `box run` and
`box shell` and 1 elsewhere, *usage* is 2, *not found* 127, *not executable* 126, *deadline* 124.
")
set(rows 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^/\\* ([a-z and]+): ([0-9]+)\\.\\.([0-9]+) \\*/")
    string(APPEND out "\n## ${CMAKE_MATCH_1} (${CMAKE_MATCH_2} to ${CMAKE_MATCH_3})\n\n| id | number | class | what to do |\n|---|---|---|---|\n")
  elseif(line MATCHES "^H5I_ERROR\\(([A-Z0-9_]+), ([0-9]+), \"([^\"]+)\", ([A-Z]+), \"(.*)\"\\)")
    set(number "${CMAKE_MATCH_2}")
    set(id "${CMAKE_MATCH_3}")
    set(class "${CMAKE_MATCH_4}")
    set(remedy "${CMAKE_MATCH_5}")
    string(REPLACE "|" "\\|" remedy "${remedy}")
    string(REPLACE "\\\"" "\"" remedy "${remedy}")
    string(TOLOWER "${class}" class)
    string(REPLACE "notfound" "not found" class "${class}")
    string(REPLACE "noexec" "not executable" class "${class}")
    string(APPEND out "| `${id}` | ${number} | ${class} | ${remedy} |\n")
    math(EXPR rows "${rows} + 1")
  elseif(line MATCHES "^H5I_ERROR")
    message(FATAL_ERROR "errors.def: a row of another form: ${line}")
  endif()
endforeach()
if(rows LESS 50)
  message(FATAL_ERROR "errors.def: only ${rows} rows were found")
endif()
if(CHECK)
  file(READ "${SOURCE}/docs/errors.md" present)
  if(NOT present STREQUAL out)
    message(FATAL_ERROR "docs/errors.md is not what errors.def says: run cmake -DSOURCE=${SOURCE} -P cmake/ErrorsDoc.cmake")
  endif()
else()
  file(WRITE "${SOURCE}/docs/errors.md" "${out}")
endif()
