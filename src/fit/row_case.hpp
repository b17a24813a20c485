// SPDX-License-Identifier: Apache-2.0
// From a measured row to the deployment and the traffic that stood behind it.
#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "config/config.hpp"
#include "config/deployment.hpp"
#include "fit/hygiene.hpp"
#include "fit/identify.hpp"
#include "fit/widths.hpp"

namespace servecast::fit {

using StepModelPointer = std::shared_ptr<const catalog::StepModel>;

struct RowCase {
  config::Config config = {};
  config::Deployed deployed = {};
  std::string repaired = {};  // of RealWidths
  // Micro-batches that fill a pipeline. Passes of one worker do not overlap in a replay, so each
  // micro-batch is a worker of its own on the same GPUs, with its share of the memory.
  std::uint32_t streams = 1;
};

struct NoCase {
  Status status = Status::Unanswerable;  // or Impossible
  std::string reason = {};
};

// Engine settings as the protocol has them (realdata.md 2.2, accuracy-notes.md 2.2): vLLM takes
// 8192 tokens a pass, TensorRT-LLM whole prompts, SGLang chunks of 16384. Goes through
// config::deploy and its checks. requires: the row's status is Use or Special.
// Nothing as step model: the one in the program.
tl::expected<RowCase, NoCase> case_of(const JudgedRow& judged,
                                      const StepModelPointer& step_model = {});

}  // namespace servecast::fit
