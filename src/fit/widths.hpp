// SPDX-License-Identifier: Apache-2.0
// Parallel widths as filed, which are sometimes products, made into those that ran
// (accuracy-notes.md 1.3).
#pragma once

#include <string>

#include "fit/measured/measured.hpp"
#include "perf/placement.hpp"

namespace servecast::fit {

struct RealWidths {
  perf::Parallelism parallelism = {};
  // Which spelling was undone: "product of tensor", "product of attention_data", "both axes
  // filed"; empty: none.
  std::string repaired = {};
  // moe_tensor * moe_expert still differs from tensor * attention_data: no such deployment exists.
  // Names the four widths; empty: all is well.
  std::string impossible = {};
};

// A model without experts has expert widths of 1, whatever the file says.
RealWidths real_widths(const FiledWidths& filed, bool has_experts);

}  // namespace servecast::fit
