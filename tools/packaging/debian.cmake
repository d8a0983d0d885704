# cpack -G DEB: libchord-jit0.1 (the shared library), libchord-jit-dev and chord-jit-tools. Configured
# with -DCMAKE_INSTALL_PREFIX=/usr the library goes to Debian's folder of the architecture, else to
# /usr/lib; both are searched.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chord-jit)
set(CPACK_PACKAGE_VENDOR chord_jit)
set(CPACK_PACKAGE_CONTACT "chord_jit <chord-jit@localhost>" CACHE STRING
  "maintainer in the Debian packages")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_documents.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime development)
if(CHORD_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # for packages of programs that link the library
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(about "INT4-weight mixture-of-experts matrix products for GPUs")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libchord-jit${CHORD_INTERFACE_VERSION})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${about} - shared library
 Decides a schedule, compiles a CUDA kernel for it once, keeps and launches it.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libchord-jit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${about} - development files
 Headers, static library, and what CMake and pkg-config read.")

# Only the static library wants these.
set(debian_of_sodium libsodium-dev)
set(debian_of_xxhash libxxhash-dev)
set(debian_of_spdlog libspdlog-dev)
set(debian_of_fmt libfmt-dev)
set(debian_of_hiredis libhiredis-dev)
set(debian_of_curl libcurl4-openssl-dev)
set(debian_of_archive libarchive-dev)
set(debian_of_zstd libzstd-dev)
set(static_packages)
foreach(library IN LISTS CHORD_PRIVATE_LIBRARIES)
  list(APPEND static_packages ${debian_of_${library}})
endforeach()
list(JOIN static_packages ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME chord-jit-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${about} - command line tools
 Explain schedules, compile beforehand, keep a cache in order, measure.")

include(CPack)
