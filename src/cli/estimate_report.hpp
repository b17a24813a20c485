// SPDX-License-Identifier: Apache-2.0
// An estimate as the user reads it. Equal estimates give equal bytes. Keys and units:
// docs/reference/estimate.md.
#pragma once

#include <string>

#include "cli/static_estimate.hpp"

namespace servecast::cli {

// `Full` adds bars and every effect of the step model that applies.
enum class Detail : std::uint8_t { Brief, Full };

// For the terminal.
std::string estimate_table(const Estimate& found, Detail detail);
// One JSON object, indented, newline at the end.
std::string estimate_json(const Estimate& found, Detail detail);

// Why no energy is given.
std::string_view energy_reason();
// "group": what Support means, in words.
std::string_view support_text(fit::Support support);

struct Range {
  double low = 0.0, high = 0.0;
};
// value * exp(+-half_width).
Range range_of(double value, double half_width);

}  // namespace servecast::cli
