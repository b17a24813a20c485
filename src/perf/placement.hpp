// SPDX-License-Identifier: Apache-2.0
// A model on GPUs: everything that time and memory of one rank depend on, apart from the batch.
//
//   perf::Placement p{.model = *model, .system = *system, .engine = EngineKind::Vllm,
//                     .parallelism = {.tensor = 4}, .precisions = perf::precisions_of(*model)};
//   if (auto problems = perf::check(p); !problems.empty()) report(problems);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "catalog/kinds.hpp"
#include "catalog/model_card.hpp"
#include "catalog/system_card.hpp"

namespace servecast::perf {

// Ranks along each axis of one worker (product.md 9.7). The expert axes cut the experts over the
// same GPUs as tensor * attention_data * context; they add none.
struct Parallelism {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t attention_data = 1;
  std::uint32_t moe_tensor = 1;
  std::uint32_t moe_expert = 1;
  std::uint32_t context = 1;
};

// tensor * pipeline * attention_data * context.
std::uint64_t gpus_per_worker(const Parallelism& parallelism);

// Storage of the parts that can differ. Router and embedding are bfloat16.
struct Precisions {
  catalog::Precision attention = catalog::Precision::Bfloat16;  // projections of every mixer
  catalog::Precision dense = catalog::Precision::Bfloat16;      // dense feed-forward
  catalog::Precision shared_experts = catalog::Precision::Bfloat16;
  catalog::Precision experts = catalog::Precision::Bfloat16;  // routed
  catalog::Precision head = catalog::Precision::Bfloat16;
  catalog::Precision kv_cache = catalog::Precision::Bfloat16;  // Bfloat16 or Fp8
};

// The checkpoint's own, as its card says.
Precisions precisions_of(const catalog::ModelCard& model);

struct Placement {
  catalog::ModelCard model;
  catalog::SystemCard system;
  catalog::EngineKind engine = catalog::EngineKind::Vllm;
  Parallelism parallelism = {};
  Precisions precisions = {};
  std::string engine_version = {};  // as measurements write it; empty: not known
};

// Every rule of perfmodel.md 2.3 and product.md 10.8 that the placement breaks; each message names
// the fields and their values. Empty: the placement is valid. Whether it fits into memory is
// another question (memory.hpp). Codes: "parallelism.*", "precision.*".
Problems check(const Placement& placement);

// Layers of each pipeline stage, counted per group of the model's layers. Stages are as equal as
// they can be; the ones before the last take the layers that are left (vLLM 0.11 and later).
struct StageLayers {
  std::vector<std::uint32_t> of_group;
  bool has_embedding = false;
  bool has_head = false;
};
std::vector<StageLayers> stages_of(const Placement& placement);

}  // namespace servecast::perf
