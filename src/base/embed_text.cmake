# Embeds text files into a C++ source at build time: an array `embedded_files` of {name, text, size} in
# the given namespace, sorted by name, names relative to STRIP (else to the source folder).
set(CHORD_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(chord_embed_text)
  cmake_parse_arguments(EMBED "" "OUTPUT;NAMESPACE;STRIP" "FILES" ${ARGN})
  list(SORT EMBED_FILES)
  string(REPLACE ";" "|" joined "${EMBED_FILES}")
  add_custom_command(OUTPUT ${EMBED_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${EMBED_OUTPUT} -DNAMESPACE=${EMBED_NAMESPACE}
      -DSTRIP=${EMBED_STRIP} -DROOT=${PROJECT_SOURCE_DIR} "-DFILES=${joined}" -P ${CHORD_EMBED_SCRIPT}
    DEPENDS ${EMBED_FILES} ${CHORD_EMBED_SCRIPT} VERBATIM)
  # It declares for itself what a header of the tree declares, and includes next to nothing.
  set_source_files_properties(${EMBED_OUTPUT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  string(REPLACE "|" ";" FILES "${FILES}")
  set(text "// Generated from text files of the source tree. Do not edit.\n#include <cstddef>\n\n")
  string(APPEND text "namespace ${NAMESPACE} {\n\n")
  string(APPEND text "struct EmbeddedFile {\n  const char* name;\n  const char* text;\n  std::size_t size;\n};\n\n")
  set(rows "")
  set(count 0)
  foreach(file IN LISTS FILES)
    file(READ ${file} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    file(RELATIVE_PATH name ${ROOT} ${file})
    if(STRIP)
      file(RELATIVE_PATH stripped ${STRIP} ${file})
      if(NOT stripped MATCHES "^\\.\\.")
        set(name ${stripped})
      endif()
    endif()
    string(APPEND text "static const unsigned char file_${count}[] = {\n${bytes}0};\n")
    string(APPEND rows "    {\"${name}\", reinterpret_cast<const char*>(file_${count}), ${size}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  string(APPEND text "\nextern const EmbeddedFile embedded_files[];\nextern const std::size_t embedded_file_count;\n")
  string(APPEND text "const EmbeddedFile embedded_files[] = {\n${rows}    {nullptr, nullptr, 0}};\n")
  string(APPEND text "const std::size_t embedded_file_count = ${count};\n\n}  // namespace ${NAMESPACE}\n")
  file(WRITE ${OUTPUT} "${text}")
endif()
