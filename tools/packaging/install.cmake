# Rules of cmake --install, in the three components that become Debian packages: runtime,
# development and tools. Nothing that is installed names a folder of the build machine: a tree may
# be moved after it was installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/chord_jit)

# What libchord_jit.a leaves to the linker, as the linker spells it. The shared library has it
# inside, or finds it by itself.
set(CHORD_PRIVATE_LIBRARIES xxhash sodium)
if(NOT CHORD_PORTABLE)
  list(APPEND CHORD_PRIVATE_LIBRARIES spdlog fmt)
endif()
if(CHORD_REMOTE)
  list(APPEND CHORD_PRIVATE_LIBRARIES hiredis curl)
  if(CHORD_HIREDIS_SSL_INCLUDE AND CHORD_HIREDIS_SSL_LIBRARY)
    list(PREPEND CHORD_PRIVATE_LIBRARIES hiredis_ssl)
  endif()
endif()
if(CHORD_BUNDLES)
  list(APPEND CHORD_PRIVATE_LIBRARIES archive)
endif()
if(CHORD_REMOTE OR CHORD_BUNDLES)
  list(APPEND CHORD_PRIVATE_LIBRARIES zstd)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/chord DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.h")

set_target_properties(chord_jit_shared PROPERTIES EXPORT_NAME chord_jit)
foreach(kind shared static)
  install(TARGETS chord_jit_${kind} EXPORT chord_jit-${kind}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT chord_jit-${kind} NAMESPACE chord:: FILE chord_jit-${kind}.cmake
    DESTINATION ${package_folder} COMPONENT development)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/chord_jit-config.cmake.in
  ${PROJECT_BINARY_DIR}/packaging/chord_jit-config.cmake INSTALL_DESTINATION ${package_folder}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/chord_jit-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/chord_jit-config.cmake
  ${PROJECT_BINARY_DIR}/packaging/chord_jit-config-version.cmake
  DESTINATION ${package_folder} COMPONENT development)

# The .pc file finds the tree from where it lies itself. An absolute library or include folder,
# as some distributions ask for, stays what it is.
function(chord_from_prefix output folder)
  set(${output} "\${prefix}/${folder}" PARENT_SCOPE)
  if(IS_ABSOLUTE "${folder}")
    set(${output} "${folder}" PARENT_SCOPE)
  endif()
endfunction()
chord_from_prefix(CHORD_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
chord_from_prefix(CHORD_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
set(CHORD_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(CHORD_PC_PREFIX "\${pcfiledir}/${up}")
endif()
list(TRANSFORM CHORD_PRIVATE_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE private_flags)
list(JOIN private_flags " " CHORD_PC_PRIVATE)
configure_file(${CMAKE_CURRENT_LIST_DIR}/chord_jit.pc.in ${PROJECT_BINARY_DIR}/packaging/chord_jit.pc
  @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/chord_jit.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

if(CHORD_BUILD_TOOLS)
  get_property(tools GLOBAL PROPERTY CHORD_TOOLS)
  install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  include(${CMAKE_CURRENT_LIST_DIR}/man_pages.cmake)
endif()

if(PROJECT_IS_TOP_LEVEL)
  include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
endif()
