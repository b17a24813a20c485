// SPDX-License-Identifier: Apache-2.0
// The CanonicalV1 line of a recorded run: what users compare.
#pragma once

#include <string>

#include "support/recording.hpp"

namespace servecast::test {

// The first problem's text when the run has no report.
std::string canonical_line_of(const Recording& run);

}  // namespace servecast::test
