// SPDX-License-Identifier: Apache-2.0
// What a row says about its run in free text and in its id.
#pragma once

#include <string_view>

#include "fit/measured/measured.hpp"

namespace servecast::fit {

// Fills what no column said from `notes` ("disaggregated", "n=640; max_num_seqs=256; spec=none")
// and from the engine's name ("dynamo-sglang" is sglang, "trtllm-pytorch" is trtllm, "vLLM 0.9.2"
// is vllm).
void read_notes(MeasuredRow& row);

// By the column `protocol`, else by the notes, the rate and the id (accuracy-notes.md 1.11).
// Nothing: the column names no protocol.
std::optional<Protocol> protocol_of(const MeasuredRow& row);

}  // namespace servecast::fit
