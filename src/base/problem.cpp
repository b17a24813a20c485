// SPDX-License-Identifier: Apache-2.0
#include "base/problem.hpp"

namespace servecast {

std::string to_text(const Problem& problem) {
  std::string text;
  if (!problem.place.file.empty()) {
    text += problem.place.file;
    if (problem.place.line > 0) text += ":" + std::to_string(problem.place.line);
    if (problem.place.column > 0) text += ":" + std::to_string(problem.place.column);
    text += ": ";
  }
  text += problem.message;
  if (!problem.hint.empty()) text += " (" + problem.hint + ")";
  return text;
}

}  // namespace servecast
