// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace servecast {
namespace {
// The only process-wide state: text for a message that ends the process.
const char* repeat_command = nullptr;  // tidy: mutable-static (diagnostics of a dying process)
}  // namespace

void set_repeat_command(const char* command) {
  repeat_command = command;
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "servecast: a bug of ours: check failed: %s (%s:%d)\n", condition, file,
               line);
  if (repeat_command != nullptr)
    std::fprintf(stderr, "servecast: repeat with: %s\n", repeat_command);
  std::fprintf(stderr, "servecast: please report it with the configuration that you ran\n");
  std::fflush(nullptr);
  std::_Exit(70);
}

}  // namespace servecast
