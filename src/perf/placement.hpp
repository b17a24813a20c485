// SPDX-License-Identifier: Apache-2.0
// A model on GPUs: everything that time and memory of one rank depend on, apart from the batch.
//
//   perf::Placement p{.model = *model, .system = *system, .engine = EngineKind::Vllm,
//                     .parallelism = {.tensor = 4}, .precisions = perf::precisions_of(*model)};
//   if (auto problems = perf::check(p); !problems.empty()) report(problems);
#pragma once

#include <cstdint>
#include <string>

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

// Storage of the three parts that can differ. Router, embedding and output head are bfloat16.
struct Precisions {
  catalog::Precision linear = catalog::Precision::Bfloat16;    // attention and dense feed-forward
  catalog::Precision experts = catalog::Precision::Bfloat16;   // routed and shared experts
  catalog::Precision kv_cache = catalog::Precision::Bfloat16;  // Bfloat16 or Fp8
};

// The checkpoint's own: weights as published; the KV cache is fp8 when the weights are fp8 or nvfp4
// (perfmodel.md annex A), else bfloat16.
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

// Layers of the pipeline stage that has most of them.
std::uint32_t layers_of_fullest_stage(const Placement& placement);

}  // namespace servecast::perf
