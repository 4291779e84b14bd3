# Writes a plugin's manifest (schema h5i.plugin/1) as one canonical JSON document, which is also YAML: keys sorted, no
# space, one newline at the end. Run after the link by h5i_add_plugin().
cmake_minimum_required(VERSION 3.25)

function(json_text out text)
  if(text MATCHES "[\n\r\t\"\\\\]")
    message(FATAL_ERROR "manifest of ${ID}: quotes, backslashes and control characters are not for a manifest: ${text}")
  endif()
  set(${out} "\"${text}\"" PARENT_SCOPE)
endfunction()

function(json_list out prefix suffix words)
  string(REPLACE "|" ";" words "${words}")
  set(items "")
  foreach(word IN LISTS words)
    json_text(item "${prefix}${word}${suffix}")
    list(APPEND items "${item}")
  endforeach()
  list(JOIN items "," joined)
  set(${out} "[${joined}]" PARENT_SCOPE)
endfunction()

file(SHA256 "${LIBRARY}" sha256)
file(SIZE "${LIBRARY}" size)
get_filename_component(library "${LIBRARY}" NAME)
foreach(word ID KIND VERSION PLATFORM POSTURE PACKAGE)
  json_text(${word}_json "${${word}}")
endforeach()
json_list(claims "" "" "${CLAIMS}")
json_list(services "h5i.host." "/1" "${HOST_SERVICES}")
json_list(lanes "" "" "${LANES}")
json_list(maintainers "" "" "${MAINTAINERS}")
json_list(needs "" "" "${NEEDS}")
json_list(interfaces "h5i." "/1" "${KIND}")

string(CONCAT text
  "{\"abi\":{\"kind\":\"stable\",\"major\":1,\"minor\":0}"
  ",\"claims\":${claims}"
  ",\"host_services\":${services}"
  ",\"id\":${ID_json}"
  ",\"interfaces\":${interfaces}"
  ",\"kind\":${KIND_json}"
  ",\"lanes\":${lanes}"
  ",\"library\":\"${library}\""
  ",\"maintainers\":${maintainers}"
  ",\"needs\":${needs}"
  ",\"package\":${PACKAGE_json}"
  ",\"platform\":${PLATFORM_json}"
  ",\"posture\":${POSTURE_json}"
  ",\"schema\":\"h5i.plugin/1\""
  ",\"sha256\":\"${sha256}\""
  ",\"size\":${size}"
  ",\"version\":${VERSION_json}}\n")
file(WRITE "${MANIFEST}" "${text}")
