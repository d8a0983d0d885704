# The libraries of the cache: libsodium always; hiredis, libcurl, libzstd and libarchive as the
# options CHORD_REMOTE and CHORD_BUNDLES ask. CHORD_PORTABLE takes static archives and therefore
# leaves out what has no self-contained one. What is missing ends the configuration by name.

# chord_library(<target> <Debian package> <header> <library>): an interface target of one library.
function(chord_library target package header library)
  find_path(CHORD_${library}_INCLUDE ${header})
  set(names ${library})
  if(CHORD_PORTABLE)
    set(names lib${library}.a)
  endif()
  find_library(CHORD_${library}_LIBRARY NAMES ${names})
  if(NOT CHORD_${library}_INCLUDE OR NOT CHORD_${library}_LIBRARY)
    message(FATAL_ERROR "${library} is not here: install ${package}"
      " (tools/install_packages.sh does), or leave out what needs it:"
      " -DCHORD_REMOTE=OFF -DCHORD_BUNDLES=OFF")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${CHORD_${library}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${CHORD_${library}_LIBRARY})
endfunction()

if(CHORD_PORTABLE AND (CHORD_REMOTE OR CHORD_BUNDLES))
  message(STATUS "CHORD_PORTABLE: without remote back-ends and bundles")
  set(CHORD_REMOTE OFF)
  set(CHORD_BUNDLES OFF)
endif()

chord_library(chord_sodium libsodium-dev sodium.h sodium)
set(CHORD_CACHE_LIBRARIES chord_sodium)
if(CHORD_REMOTE OR CHORD_BUNDLES)
  chord_library(chord_zstd libzstd-dev zstd.h zstd)
  list(APPEND CHORD_CACHE_LIBRARIES chord_zstd)
endif()
if(CHORD_REMOTE)
  chord_library(chord_hiredis libhiredis-dev hiredis/hiredis.h hiredis)
  chord_library(chord_curl libcurl4-openssl-dev curl/curl.h curl)
  add_library(chord_remote_libraries INTERFACE)
  target_link_libraries(chord_remote_libraries INTERFACE chord_hiredis chord_curl chord_zstd)
  # TLS to Redis came with hiredis 1.0, in a library of its own.
  find_path(CHORD_HIREDIS_SSL_INCLUDE hiredis/hiredis_ssl.h)
  find_library(CHORD_HIREDIS_SSL_LIBRARY NAMES hiredis_ssl)
  if(CHORD_HIREDIS_SSL_INCLUDE AND CHORD_HIREDIS_SSL_LIBRARY)
    target_link_libraries(chord_remote_libraries INTERFACE ${CHORD_HIREDIS_SSL_LIBRARY})
    target_compile_definitions(chord_remote_libraries INTERFACE CHORD_HAS_REDIS_TLS=1)
  endif()
  list(APPEND CHORD_CACHE_LIBRARIES chord_remote_libraries)
endif()
if(CHORD_BUNDLES)
  chord_library(chord_archive libarchive-dev archive.h archive)
  add_library(chord_bundle_libraries INTERFACE)
  target_link_libraries(chord_bundle_libraries INTERFACE chord_archive chord_zstd)
  list(APPEND CHORD_CACHE_LIBRARIES chord_bundle_libraries)
endif()
