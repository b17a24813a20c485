// SPDX-License-Identifier: Apache-2.0
// Our own bugs stop the program (exit code 70); bad input never reaches a check, it is a Problem.
#pragma once

#include <cstdint>

namespace servecast {

// Prints the condition, its place and the command that repeats the run, then exits with code 70.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// The text that check_failed prints as the command that repeats the run. Set once by main.
void set_repeat_command(const char* command);

}  // namespace servecast

#define SERVECAST_CHECK(condition) \
  ((condition) ? void() : ::servecast::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define SERVECAST_DCHECK(condition) void()
#else
#define SERVECAST_DCHECK(condition) SERVECAST_CHECK(condition)
#endif
