// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <unistd.h>
#include <csignal>
#include <initializer_list>

namespace servecast::cli {
namespace {

// A signal handler has no other way to speak to the program.
volatile std::sig_atomic_t deferring = 0;  // tidy: mutable-static (signal handler)
volatile std::sig_atomic_t noted = 0;      // tidy: mutable-static (signal handler)

extern "C" void on_signal(int signal) {
  if (deferring == 0) _exit(128 + signal);
  noted = signal;
}

}  // namespace

void end_on_signal() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited = {};
    sigaction(signal, nullptr, &inherited);
    // nohup and background jobs of a shell have signals ignored on purpose.
    if (inherited.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

DeferSignals::DeferSignals() {
  deferring = 1;
}
DeferSignals::~DeferSignals() {
  deferring = 0;
  if (noted != 0) _exit(128 + noted);
}
bool DeferSignals::was_signalled() {
  return noted != 0;
}

}  // namespace servecast::cli
