// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/interrupt.hpp"
#include "cli/repeat.hpp"
#include "cli/terminal.hpp"

int main(int argc, char** argv) {
  using namespace servecast;
  try {
    const std::vector<std::string> arguments(argv, argv + argc);
    const std::string repeat = cli::repeat_command(arguments);
    set_repeat_command(repeat.c_str());
    cli::end_on_signal();
    // A file size limit is then an error of write(), and what was staged is removed.
    std::signal(SIGXFSZ, SIG_IGN);
    return static_cast<int>(cli::run_command_line(arguments));
  } catch (const std::bad_alloc&) {
    std::fputs("servecast: this machine has not enough memory for the run\n", stderr);
    return static_cast<int>(cli::Exit::Refused);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "servecast: a bug of ours: %s\n", error.what());
    return static_cast<int>(cli::Exit::Bug);
  }
}
