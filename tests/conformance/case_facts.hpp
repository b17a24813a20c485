// SPDX-License-Identifier: Apache-2.0
// What came out of a run, under the names that the expectations of text cases use.
#pragma once

#include <string>
#include <vector>

#include "conformance/case_yaml.hpp"
#include "support/recording.hpp"

namespace servecast::test {

// What one expectation says that the run did not do, as "file:12: request 1: tokens_reused is 8,
// expected 12". The run must have captured requests, passes and KV events.
std::vector<std::string> broken_expectation(const Value& expected, const Recording& run);

}  // namespace servecast::test
