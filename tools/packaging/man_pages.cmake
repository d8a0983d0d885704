# One man page for every tool, written at build time from its own --help. A cross build without an
# emulator can not ask its tools, and goes without.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "no man pages: this machine can not run the tools that it builds")
  return()
endif()

add_executable(chord-man-page ${CMAKE_CURRENT_LIST_DIR}/man_page.cpp
  ${CMAKE_CURRENT_LIST_DIR}/man_page_main.cpp)
target_link_libraries(chord-man-page PRIVATE chord_options)
set_target_properties(chord-man-page PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/packaging)

set(man_folder ${PROJECT_BINARY_DIR}/packaging/man1)
file(MAKE_DIRECTORY ${man_folder})
set(man_pages)
foreach(tool IN LISTS tools)
  set(others ${tools})
  list(REMOVE_ITEM others ${tool})
  add_custom_command(OUTPUT ${man_folder}/${tool}.1
    COMMAND chord-man-page $<TARGET_FILE:${tool}> ${man_folder}/${tool}.1 ${others}
    DEPENDS chord-man-page ${tool} VERBATIM)
  list(APPEND man_pages ${man_folder}/${tool}.1)
endforeach()
add_custom_target(chord-man-pages ALL DEPENDS ${man_pages})
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
