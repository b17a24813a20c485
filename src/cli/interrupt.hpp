// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and termination: the process ends with 128 + signal and leaves no half-written file.
#pragma once

namespace servecast::cli {

// From here on a signal ends the process at once: nothing was written yet.
void end_on_signal();

// While one lives, a signal is only noted: files are being written, and whoever writes asks between
// writes whether to go on. At the end of the scope a noted signal ends the process.
class DeferSignals {
 public:
  DeferSignals();
  ~DeferSignals();
  DeferSignals(const DeferSignals&) = delete;
  DeferSignals& operator=(const DeferSignals&) = delete;
  static bool was_signalled();
};

}  // namespace servecast::cli
