// SPDX-License-Identifier: Apache-2.0
// What the process says when it ends (product.md 6.1, decisions.md 3).
#pragma once

#include "base/problem.hpp"

namespace servecast::cli {

enum class Exit : int {
  Success = 0,
  Failed = 1,   // the run failed
  Input = 2,    // command line, configuration or trace
  Refused = 3,  // a resource of this machine is missing
  Bug = 70,     // a failed check of ours
  Interrupted = 130,
};

// The gravest fault of a list decides.
inline Exit exit_of(const Problems& problems) {
  Exit exit = Exit::Input;
  for (const Problem& problem : problems) {
    if (problem.fault == Fault::Resource) return Exit::Refused;
    if (problem.fault == Fault::Execution) exit = Exit::Failed;
  }
  return exit;
}

}  // namespace servecast::cli
