// SPDX-License-Identifier: Apache-2.0
// Builders for this room's tests.
#pragma once

#include "fit/hygiene.hpp"

namespace servecast::fit {

// An aggregated run of Llama-3.1-8B on one H100 with vLLM, measured.
inline MeasuredRow a_row() {
  MeasuredRow row;
  row.id = "2026_llama";
  row.model = "meta-llama/Llama-3.1-8B-Instruct";
  row.system = "h100_sxm";
  row.engine = "vllm";
  row.mode = "agg";
  row.input_tokens = 128;
  row.output_tokens = 32;
  row.concurrency = 4;
  row.widths.tensor = 1;
  row.ttft_ms = 30;
  row.tpot_ms = 8;
  return row;
}

inline JudgedRow judged(MeasuredRow row) {
  return judge({std::move(row)}, {}, {}).front();
}

}  // namespace servecast::fit
