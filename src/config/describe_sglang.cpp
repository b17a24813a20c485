// SPDX-License-Identifier: Apache-2.0
// Settings that only SGLang has (engine-sglang.md S1) and the rules between them and the rest of
// the worker.
#include <fmt/core.h>

#include "config/describe.hpp"

namespace servecast::config {
namespace {

using catalog::EngineKind;
using scheduler::Fidelity;
using scheduler::SglangPolicy;
using scheduler::SglangSettings;

constexpr std::string_view kInterval = "scheduler.prefill_decode_interval";

void describe_policy(Fields& f, SglangSettings& settings) {
  const auto branch = [&](std::string_view name, SglangPolicy policy, std::string_view help) {
    return Branch{name, help, [&settings, policy] { settings.policy = policy; }, {}, {}};
  };
  Branch random = branch("random", SglangPolicy::Random, "In a new random order in each pass.");
  random.fields = [&](Fields& b) {
    b.seed("policy_seed", settings.policy_seed, "Seed of the random order.");
  };
  f.tagged("schedule_policy", "fcfs", "In which order waiting requests are looked at.",
           {
               branch("fcfs", SglangPolicy::Fcfs, "As they arrived."),
               branch("fifo", SglangPolicy::Fcfs, "Another name of fcfs."),
               branch("lpm", SglangPolicy::Lpm, "The longest cached prefix first."),
               branch("dfs_weight", SglangPolicy::DfsWeight,
                      "Along the prefix tree, the subtree that most requests wait for first."),
               branch("lof", SglangPolicy::Lof, "The longest output first."),
               random,
               branch("priority", SglangPolicy::Priority, "By the trace's priority, lowest first."),
               {"hrrn", "", {}, {}, "this policy is not supported"},
               {"shortest_prefill_first", "", {}, {}, "this policy is not supported"},
           });
}

void refuse_pair(Fields& f, std::string_view field, std::string_view other, std::string hint) {
  f.refuse(field, fmt::format("goes not together with {}", other), std::move(hint));
}

// What is modeled for one rank, one pipeline stage and one token a step only.
void check_one_of_each(Fields& f, const Engine& engine, std::string_view field) {
  const perf::Parallelism& parallelism = engine.parallelism;
  if (parallelism.attention_data > 1)
    refuse_pair(f, field, fmt::format("parallelism.attention_data {}", parallelism.attention_data),
                "it is modeled for one rank a worker");
  if (parallelism.pipeline > 1)
    refuse_pair(f, field, fmt::format("parallelism.pipeline {}", parallelism.pipeline),
                "it is modeled for one pipeline stage");
  if (engine.rank.speculation) refuse_pair(f, field, "engine.nextn", "remove one of them");
}

// The overlapped loop knows neither lockstep nor bursts (engine-sglang.md S17).
void check_host_loop(Fields& f, const Engine& engine, const SglangSettings& settings) {
  check_one_of_each(f, engine, "sglang.host_loop");
  if (settings.prefill_decode_interval > 0)
    refuse_pair(f, "sglang.host_loop", kInterval, "remove one of them");
}

void check_mixed_chunk(Fields& f, const Engine& engine, const SglangSettings& settings) {
  constexpr std::string_view kField = "sglang.enable_mixed_chunk";
  if (engine.rank.speculation) refuse_pair(f, kField, "engine.nextn", "remove one of them");
  if (settings.host_loop) refuse_pair(f, kField, "sglang.host_loop", "remove one of them");
}

// A size has two names each; where both stand they must agree.
void check_sizes(Fields& f, const Engine& engine, const SglangForm& form) {
  const std::optional<std::uint32_t>& chunk = form.chunked_prefill_size;
  const scheduler::RankConfig& rank = engine.rank;
  if (chunk && rank.max_batched_tokens != *chunk)
    f.refuse("sglang.chunked_prefill_size",
             fmt::format("is {}, but scheduler.max_batched_tokens is {}; SGLang has one such limit",
                         *chunk, rank.max_batched_tokens),
             "give one of them");
  if (form.page_size && rank.block_tokens != *form.page_size)
    f.refuse("sglang.page_size",
             fmt::format("is {}, but kv_cache.block_size is {}; both name the tokens of a page",
                         *form.page_size, rank.block_tokens),
             "give one of them");
  const std::uint32_t ranks = engine.parallelism.attention_data;
  if (!f.is_clean() || rank.max_batched_tokens / ranks >= rank.block_tokens) return;
  // Chunks are whole pages (engine-sglang.md S7.3-3): no prompt would ever start.
  f.refuse(chunk ? "sglang.chunked_prefill_size" : "scheduler.max_batched_tokens",
           fmt::format("{} tokens of prefill, shared by the {} ranks of "
                       "parallelism.attention_data, leave each {}, less than the {} of a page "
                       "(kv_cache.block_size)",
                       rank.max_batched_tokens, ranks, rank.max_batched_tokens / ranks,
                       rank.block_tokens),
           fmt::format("give at least {}", std::uint64_t{ranks} * rank.block_tokens));
}

// Stages that a request passes through before the scheduler receives it (engine-sglang.md S9).
void describe_frontend(Fields& f, SglangForm& form) {
  // Milliseconds that stay inside simulated time, whatever the scale is.
  constexpr double kServiceMsMax = 1e6, kScaleMax = 1e6;
  const auto describe_stage = [&](Fields& b) {
    scheduler::FrontendStage stage;
    b.whole("workers", stage.workers, {.min = 1}, "Requests that are served at a time.");
    b.real("service_ms", stage.service_ms, {.max = kServiceMsMax, .required = true},
           "Time of a request that is served alone, in ms.");
    b.numbers("concurrency_scale", stage.concurrency_scale, {.max = kScaleMax, .above = true},
              "Multiplies service_ms while 1, 2, ... requests are served: one number for each "
              "worker.");
    const std::size_t scales = stage.concurrency_scale.size();
    if (b.is_clean() && scales > 0 && scales != stage.workers)
      b.refuse("concurrency_scale",
               fmt::format("has {} numbers; workers is {}", scales, stage.workers),
               "write one number for each worker, or none");
    form.settings.frontend.push_back(std::move(stage));
  };
  form.has_frontend = f.mapping(
      "frontend", Presence::Optional,
      "Host processes that prepare requests before the scheduler receives them; with "
      "host_loop.",
      [&](Fields& b) {
        const bool any = b.list("stages", "One pool of workers each, in order.", describe_stage);
        if (b.is_clean() && !any)
          b.refuse("stages", "a frontend has at least one stage", "remove frontend");
      });
}

void check_frontend(Fields& f, const SglangSettings& settings) {
  if (!settings.host_loop)
    f.refuse("sglang.frontend", "goes only with sglang.host_loop: true",
             "the loop that is not overlapped does not model the host");
}

// One tower a worker (engine-sglang.md S17).
void check_vision(Fields& f, const Engine& engine, const scheduler::SglangSettings& settings) {
  check_one_of_each(f, engine, "sglang.vision");
  if (settings.mixed_chunk)
    refuse_pair(f, "sglang.vision", "sglang.enable_mixed_chunk", "remove one of them");
}

// Settings of the tower where there is none.
void check_without_vision(Fields& f, const Engine& engine, const SglangForm& form) {
  constexpr std::string_view kOnlyWith = "goes only with sglang.vision: true";
  if (form.vlm_cache_bytes) f.refuse("sglang.vlm_cache_bytes", std::string(kOnlyWith));
  if (engine.timing.kind == Timing::Kind::Fixed && engine.timing.fixed.vision_ms)
    f.refuse("timing.vision_ms", std::string(kOnlyWith));
}

}  // namespace

void describe_sglang(Fields& f, SglangForm& form) {
  SglangSettings& settings = form.settings;
  describe_policy(f, settings);
  f.whole("max_prefill_tokens", settings.max_prefill_tokens, {.min = 1},
          "Prompt tokens of one pass of a rank; the first request of a pass may exceed it.");
  f.whole("chunked_prefill_size", form.chunked_prefill_size, {.min = 1},
          "Prompt tokens of one pass of all ranks of a worker together; without it "
          "scheduler.max_batched_tokens says it.");
  f.whole("clip_max_new_tokens", settings.clip_max_new_tokens, {},
          "Output tokens of a request that admission reserves room for at most.");
  f.real("schedule_conservativeness", settings.schedule_conservativeness, {},
         "Scales the share of their remaining output that running requests are expected to use.");
  f.boolean("host_loop", settings.host_loop,
            "Is the next pass chosen while the last one still runs (SGLang's overlap schedule)?");
  f.boolean("enable_mixed_chunk", settings.mixed_chunk,
            "Do running requests decode in a pass that prefills?");
  f.whole("decode_log_interval", settings.decode_log_interval, {.min = 1},
          "Decode passes of a rank between two that publish its KV events.");
  f.whole("retract_decode_steps", settings.retract_decode_steps, {},
          "Tokens kept free for each request that stays when others are retracted.");
  f.word<Fidelity>("fidelity", settings.fidelity,
                   {{"compat", Fidelity::Compat, {}}, {"exact", Fidelity::Exact, {}}},
                   "Where upstream's simulator and SGLang v0.5.20 differ: as the simulator, or as "
                   "SGLang.");
  f.whole("page_size", form.page_size, {.min = 1, .max = 65536},
          "SGLang's name of kv_cache.block_size.");
  describe_frontend(f, form);
  f.boolean("vision", form.vision, "Do the workers encode the images of prompts?");
  f.whole("vlm_cache_bytes", form.vlm_cache_bytes, {},
          "Bytes of image embeddings that a rank keeps for reuse, 104857600 if not given; 0 keeps "
          "none. With vision.");
}

void describe_prefill_decode_interval(Fields& scheduler, SglangForm& form) {
  scheduler.whole("prefill_decode_interval", form.settings.prefill_decode_interval, {},
                  "Passes without prefill of a worker after one with; sglang only.");
}

void set_sglang_defaults(Engine& engine, const SglangForm& form) {
  if (engine.backend != EngineKind::Sglang) return;
  if (form.chunked_prefill_size) engine.rank.max_batched_tokens = *form.chunked_prefill_size;
  if (form.page_size) engine.rank.block_tokens = *form.page_size;
}

void set_sglang(Fields& worker, Engine& engine, const SglangForm& form) {
  if (!worker.is_clean()) return;
  const SglangSettings& settings = form.settings;
  if (engine.backend != EngineKind::Sglang) {
    if (settings.prefill_decode_interval > 0)
      worker.refuse(kInterval, fmt::format("{} goes only with engine.backend: sglang, not {}",
                                           settings.prefill_decode_interval,
                                           catalog::to_string(engine.backend)));
    check_without_vision(worker, engine, form);
    return;
  }
  check_sizes(worker, engine, form);
  if (settings.host_loop) check_host_loop(worker, engine, settings);
  if (settings.mixed_chunk) check_mixed_chunk(worker, engine, settings);
  if (form.has_frontend) check_frontend(worker, settings);
  if (form.vision) {
    check_vision(worker, engine, settings);
  } else {
    check_without_vision(worker, engine, form);
  }
  engine.rank.sglang = settings;
  if (form.vision) engine.rank.sglang->vision.emplace();
  if (form.vision && form.vlm_cache_bytes)
    engine.rank.sglang->vision->cache_bytes = *form.vlm_cache_bytes;
  engine.rank.sglang->chunked_prefill_size = engine.rank.max_batched_tokens;
}

}  // namespace servecast::config
