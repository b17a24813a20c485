# SPDX-License-Identifier: Apache-2.0
# Writes a C++ source that holds card files as raw strings, so that the program needs no data folder.
#   cmake -DOUTPUT=cards.cpp -DMODELS=a.json,b.json -DSYSTEMS=c.json -P EmbedCards.cmake
function(card_list name files out)
  set(text "const std::vector<EmbeddedCard>& ${name}() {\n  static const std::vector<EmbeddedCard> cards{\n")
  string(REPLACE "," ";" files "${files}")
  foreach(file IN LISTS files)
    file(READ "${file}" json)
    get_filename_component(stem "${file}" NAME)
    string(APPEND text "      {\"${stem}\", R\"card(${json})card\"},\n")
  endforeach()
  string(APPEND text "  };\n  return cards;\n}\n")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

card_list(embedded_models "${MODELS}" models)
card_list(embedded_systems "${SYSTEMS}" systems)
file(READ "${STEP_MODEL}" json)
get_filename_component(stem "${STEP_MODEL}" NAME)
set(step_model "const EmbeddedCard& embedded_step_model() {\n  static const EmbeddedCard card{\"${stem}\", R\"card(${json})card\"};\n  return card;\n}\n")
file(WRITE "${OUTPUT}" "// SPDX-License-Identifier: Apache-2.0\n#include \"catalog/embedded.hpp\"\n\n"
  "namespace servecast::catalog {\n\n${models}\n${systems}\n${step_model}\n}  // namespace servecast::catalog\n")
