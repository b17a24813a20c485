# SPDX-License-Identifier: Apache-2.0
# Writes a C++ source that holds the rule files of data/hygiene as raw strings.
#   cmake -DOUTPUT=rules.cpp -DFILES=a.json,b.json -P EmbedHygiene.cmake
set(text "// SPDX-License-Identifier: Apache-2.0\n#include \"fit/embedded_rules.hpp\"\n\nnamespace servecast::fit {\n\n")
string(APPEND text "const std::vector<EmbeddedRules>& embedded_rules() {\n  static const std::vector<EmbeddedRules> files{\n")
string(REPLACE "," ";" files "${FILES}")
foreach(file IN LISTS files)
  file(READ "${file}" json)
  get_filename_component(stem "${file}" NAME)
  string(APPEND text "      {\"${stem}\", R\"rules(${json})rules\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace servecast::fit\n")
file(WRITE "${OUTPUT}" "${text}")
