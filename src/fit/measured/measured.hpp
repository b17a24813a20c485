// SPDX-License-Identifier: Apache-2.0
// One row of a file of measurements, as the file says it: names are not looked up, widths not
// judged (hygiene.hpp does).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.hpp"

namespace servecast::fit {

// How the load generator drove the run.
enum class Protocol : std::uint8_t {
  InferenceMax,  // closed loop, lengths uniform on [0.8 L, L] (realdata.md 2.2)
  // Closed loop, fixed lengths. Exactly equal ones would march in lock-step, which no server does:
  // they are drawn from [0.89 L, 1.11 L] (accuracy-notes.md 1.11).
  Fixed,
  Static,    // one batch of `concurrency` requests of equal length, all at once
  Offline,   // every request is queued at the start; only throughput counts
  OpenLoop,  // Poisson arrivals at `rate`
};
std::string_view to_string(Protocol protocol);  // "inferencemax", "fixed", ...
std::optional<Protocol> protocol_from(std::string_view name);

// Ranks along each axis as filed; nothing where the file is silent.
struct FiledWidths {
  std::optional<std::uint32_t> workers, tensor, pipeline, attention_data, moe_tensor, moe_expert;
};

struct MeasuredRow {
  std::string id = {};
  Place place = {};  // of the row
  std::string model = {}, system = {}, engine = {}, version = {};
  std::string precision = {}, linear_precision = {}, expert_precision = {};
  std::string mode = {};
  std::optional<std::uint32_t> input_tokens, output_tokens, concurrency, batch, requests, gpus;
  std::string rate = {};  // requests per second; "inf": all are there
  FiledWidths widths = {}, prefill = {}, decode = {};
  std::optional<double> ttft_ms, ttft_p50_ms, tpot_ms, e2e_ms;  // means unless p50 is said
  std::optional<double> output_tok_s_per_gpu;
  std::string notes = {}, protocol = {};
  std::optional<std::uint32_t> nextn;  // draft tokens of a verification; 0: none
  std::optional<double> nextn_accepted;
  // Engine settings; nothing: those of the protocol.
  std::optional<std::uint32_t> max_sequences, max_batched_tokens, max_model_len;
  std::optional<double> memory_fraction;
  // Of MLPerf: lengths are means of a data set, the widths of a worker and the precision are not
  // recorded, `gpus` and `rate` are those of all workers.
  bool is_submission = false;
  // The first field that says how to run the row and cannot be read: "tensor is '2TP', not ...".
  std::string unreadable = {};

  bool is_disaggregated() const;
};

}  // namespace servecast::fit
