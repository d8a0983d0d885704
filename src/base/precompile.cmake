# Precompiled headers: what most files of a kind include from outside is parsed once per kind. A
# file includes what it uses all the same, and builds as well with CHORD_PRECOMPILED_HEADERS=OFF.
option(CHORD_PRECOMPILED_HEADERS "parse common outside headers once" ${PROJECT_IS_TOP_LEVEL})

set(CHORD_COMMON_HEADERS <algorithm> <atomic> <charconv> <chrono> <cstdint> <filesystem> <functional>
  <map> <memory> <mutex> <optional> <set> <string> <string_view> <thread> <utility> <vector>
  <fmt/format.h>)

# chord_precompile(<kind> <target> <header>...): the first target of a kind compiles the headers, the
# others take its result. So all targets of a kind have the same options of the compiler, and at
# least the macros of the first.
function(chord_precompile kind target)
  if(NOT CHORD_PRECOMPILED_HEADERS)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY CHORD_PRECOMPILED_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  set(headers ${ARGN})
  list(TRANSFORM headers REPLACE "^<(.*)>$" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
  set_property(GLOBAL PROPERTY CHORD_PRECOMPILED_${kind} ${target})
endfunction()
