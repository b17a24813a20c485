// SPDX-License-Identifier: Apache-2.0
// Checks one recorded run against the laws that every run obeys (engine-vllm.md 20, replay.md 32 P5
// and P6) and rebuilds its request records, gap table and batch sums from its passes, request by
// request. Needs no second run, so it also finds faults that both modes share.
#pragma once

#include <string>
#include <vector>

#include "support/recording.hpp"

namespace servecast::test {

// One line per broken law; empty when all hold. What needs passes or KV events is checked when the
// recording has them. `capped`: the run had a time cap.
std::vector<std::string> audit(const replay::Deployment& deployment, const Recording& recording,
                               bool capped);

}  // namespace servecast::test
