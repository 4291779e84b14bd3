# Install components and packages: runtime (h5i and everything under libexec/h5i), one for each plugin, sdk.
# Any subset installs alone; a plugin's files are installed by h5i_add_plugin().
foreach(name h5i-host h5i-engine h5i-websec h5i-init h5i-canary h5i-repo h5i-policy h5i-evidence h5i-mcp h5i-metrics)
  if(TARGET ${name})
    install(TARGETS ${name} RUNTIME DESTINATION libexec/h5i COMPONENT runtime)
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" DESTINATION share/doc/h5i COMPONENT runtime)

# The SDK: headers, the package that find_package(h5i-sdk) finds, and the template.
include(CMakePackageConfigHelpers)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/include/h5i" DESTINATION include COMPONENT sdk
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")
install(TARGETS h5i_sdk EXPORT h5i-sdk-targets)
install(EXPORT h5i-sdk-targets NAMESPACE h5i:: DESTINATION lib/cmake/h5i-sdk COMPONENT sdk)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/h5i-sdk-config.cmake.in"
  "${PROJECT_BINARY_DIR}/h5i-sdk-config.cmake" INSTALL_DESTINATION lib/cmake/h5i-sdk)
# The ABI's major version decides what fits, not the project's.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/h5i-sdk-config-version.cmake" VERSION "${PROJECT_VERSION}"
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/h5i-sdk-config.cmake" "${PROJECT_BINARY_DIR}/h5i-sdk-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/H5iPlugin.cmake" "${PROJECT_SOURCE_DIR}/cmake/H5iManifest.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/plugin.map" DESTINATION lib/cmake/h5i-sdk COMPONENT sdk)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/template" DESTINATION share/h5i-sdk COMPONENT sdk)

set(CPACK_PACKAGE_NAME h5i)
set(CPACK_PACKAGE_VENDOR "h5i")
set(CPACK_PACKAGE_CONTACT "h5i maintainers <maintainers@h5i.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Runs unreviewed work in confined boxes and leaves a receipt")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR "DEB")
set(CPACK_STRIP_FILES OFF)  # a plugin's digest is in its manifest; everything is stripped when it is linked
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The command line, the plugin host and the verbs")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME h5i)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_PROVIDES "h5i-plugin-abi-1")
set(CPACK_COMPONENT_SDK_DESCRIPTION "Headers, CMake package and template for plugins")
set(CPACK_DEBIAN_SDK_PACKAGE_NAME h5i-sdk-dev)
set(CPACK_DEBIAN_SDK_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENTS_ALL runtime sdk)
get_property(plugins GLOBAL PROPERTY H5I_PLUGIN_COMPONENTS)
foreach(component IN LISTS plugins)
  get_property(package GLOBAL PROPERTY "H5I_PLUGIN_PACKAGE_${component}")
  get_property(posture GLOBAL PROPERTY "H5I_PLUGIN_POSTURE_${component}")
  string(TOUPPER "${component}" upper)
  list(APPEND CPACK_COMPONENTS_ALL "${component}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${posture}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${package}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "h5i-plugin-abi-1")
  get_property(recommended GLOBAL PROPERTY "H5I_PLUGIN_RECOMMENDS_${component}")
  if(recommended)
    set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${recommended}")
  endif()
endforeach()
include(CPack)
