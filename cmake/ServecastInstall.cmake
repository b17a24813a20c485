# SPDX-License-Identifier: Apache-2.0
# cmake --install: the program, its manual page, shell completions, examples and licences. The program itself writes
# the page and the completions, so that they name exactly the options that it has.
set(generated "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated}")
function(servecast_written_by_the_program file)
  list(JOIN ARGN " " words)
  add_custom_command(OUTPUT "${generated}/${file}"
    COMMAND sh -c "'$<TARGET_FILE:servecast>' ${words} > '${generated}/${file}'"
    DEPENDS servecast VERBATIM)
  set_property(GLOBAL APPEND PROPERTY servecast_written "${generated}/${file}")
endfunction()
servecast_written_by_the_program(servecast.1 reference man)
servecast_written_by_the_program(servecast.bash completion bash)
servecast_written_by_the_program(_servecast completion zsh)
servecast_written_by_the_program(servecast.fish completion fish)
get_property(written GLOBAL PROPERTY servecast_written)
add_custom_target(servecast_pages ALL DEPENDS ${written})

install(TARGETS servecast RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES "${generated}/servecast.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${generated}/servecast.bash" RENAME servecast
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${generated}/_servecast" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${generated}/servecast.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES LICENSE THIRD_PARTY_NOTICES.md README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
