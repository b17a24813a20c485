// SPDX-License-Identifier: Apache-2.0
// What was learnt from measurements about the time of a pass: a coefficient is the product of the
// effects that apply to a deployment. data/fit/step-model.json is the file that the program ships;
// `servecast fit` writes others.
//
//   const StepModel& model = shipped_step_model();
//   double launch_ms = model.value(Coefficient::LaunchPerLayer, labels);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.hpp"

namespace servecast::catalog {

enum class Coefficient : std::uint8_t {
  HostPerPass,            // ms
  LaunchPerLayer,         // ms, kernel launches and their shortest times
  PerSequence,            // ms a request of the pass
  LinearMemory,           // share of the bandwidth, reading dense weights
  LinearFlops,            // share of the FLOP rate, dense weights
  ExpertMemory,           // of the bandwidth, reading routed experts
  ExpertFlops,            // of the FLOP rate, routed experts
  KvMemory,               // of the bandwidth, decode reading KV and states
  PrefillFlops,           // of the bfloat16 rate, attention of prompts
  CollectiveLatency,      // ms, of a small collective over two GPUs
  LinkShare,              // of the link rate, large messages
  PrefillLaunchPerLayer,  // ms, once a pass with prompts
  SpeculationLaunch,      // factor on host and launches of a pass that verifies drafts
  DataParallelLatency,    // collectives around the experts, in latencies of one
  // Outside the engine: between it and the client that measures.
  ClientConstant,  // ms of the first token
  ClientPerToken,  // ms a prompt token
  FlushPasses,     // passes until the first token reaches the client
  ColdStart,       // ms of the first pass of a run
  Intake,          // ms a request that arrives, one after the other
};
inline constexpr std::size_t kCoefficients = 19;
std::string_view to_string(Coefficient coefficient);  // "launch_ms_per_layer"
std::optional<Coefficient> coefficient_from(std::string_view name);

// What an effect may depend on.
enum class Label : std::uint8_t {
  Kind,            // of layers: dense, windowed_moe, moe, linear, latent, sparse
  Attention,       // grouped, latent
  Generation,      // hopper, blackwell
  Engine,          // vllm, sglang, trtllm
  Version,         // of the engine, as written; empty: not known
  Network,         // architecture and size, the same for copies under other names
  Linear,          // width of dense weights: bf16, fp8, fp4
  Experts,         // of routed experts: bf16, fp8, fp4, mxfp4, int4, none
  Formats,         // both, as "fp8/fp4"
  ExpertParallel,  // yes, no
  Source,          // of the measurement: inferencemax, other
  System,          // name of the card
};
inline constexpr std::size_t kLabels = 12;
std::string_view to_string(Label label);  // "kind"
std::optional<Label> label_from(std::string_view name);

struct LabelValues {
  std::array<std::string, kLabels> of;

  std::string& operator[](Label label) { return of[static_cast<std::size_t>(label)]; }
  const std::string& operator[](Label label) const { return of[static_cast<std::size_t>(label)]; }
};

// A factor that applies where every label has the value given.
struct Effect {
  Coefficient coefficient = Coefficient::HostPerPass;
  std::vector<std::pair<Label, std::string>> when = {};  // in order of the labels
  double prior = 1.0;                                    // before measurements, > 0
  double prior_spread = 0.1;                             // standard deviation of its logarithm, > 0
  double factor = 1.0;                                   // after them
  double spread = 0.1;
  std::uint32_t rows = 0;  // measured rows that it applied to

  bool applies(const LabelValues& labels) const;
};

// A family of effects around 1, one for each combination of values that measurements have.
struct Deviation {
  Coefficient coefficient = Coefficient::HostPerPass;
  std::vector<Label> by = {};
  double spread = 0.1;
};

// Half widths of 90 % intervals, as logarithms of a ratio, by how near the measurements are.
struct Interval {
  std::string support;  // "group", "engine_and_network", "engine", "none"
  double ttft = 1.0, tpot = 1.0;
};

struct StepModel {
  std::vector<Effect> effects = {};
  std::vector<Deviation> deviations = {};
  std::vector<Interval> intervals = {};
  // Combinations "network system engine formats" that were measured.
  std::vector<std::string> groups = {};
  std::string source, licence;

  // Product of the factors that apply, in order; 1 when none does.
  double value(Coefficient coefficient, const LabelValues& labels) const;
};

// Strict. Problems "card.*" name the file and the key.
Result<StepModel> parse_step_model(std::string_view json, std::string_view file);
// As parse_step_model reads it; the same bytes for the same model.
std::string to_json(const StepModel& model);

// The one in the program. Parsed once.
const StepModel& shipped_step_model();

}  // namespace servecast::catalog
