// SPDX-License-Identifier: Apache-2.0
#include "base/problem.hpp"

#include "base/text.hpp"

namespace servecast {

std::string to_text(const Problem& problem) {
  std::string text;
  if (!problem.place.file.empty()) {
    text += printable(problem.place.file);
    if (problem.place.line > 0) text += ":" + std::to_string(problem.place.line);
    if (problem.place.column > 0) text += ":" + std::to_string(problem.place.column);
    text += ": ";
  }
  text += printable(problem.message);
  if (!problem.hint.empty()) {
    text += " (";
    text += printable(problem.hint);
    text += ")";
  }
  return text;
}

}  // namespace servecast
