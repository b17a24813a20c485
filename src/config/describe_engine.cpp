// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "config/describe.hpp"
#include "perf/memory.hpp"

namespace servecast::config {
namespace {

using catalog::EngineKind;

enum class Mode : std::uint8_t { Aggregated };

void describe_parallelism(Fields& f, Engine& engine) {
  perf::Parallelism& parallelism = engine.parallelism;
  f.whole("replicas", engine.replicas, {.min = 1, .max = 65536}, "Workers of this role.");
  f.whole("tensor", parallelism.tensor, {.min = 1, .max = 1024},
          "Tensor parallel GPUs of a worker.");
  f.whole("pipeline", parallelism.pipeline, {.min = 1, .max = 1024},
          "Pipeline stages of a worker.");
  f.whole(
      "attention_data", parallelism.attention_data, {.min = 1, .max = 1024},
      "Attention data parallel ranks of a worker, each with its own scheduler and KV cache; they "
      "run in lockstep.");
  f.whole("moe_tensor", parallelism.moe_tensor, {.min = 1, .max = 1024},
          "Tensor parallelism inside experts; moe_tensor * moe_expert = tensor * attention_data "
          "for MoE models, 1 for dense ones.");
  f.whole("moe_expert", parallelism.moe_expert, {.min = 1, .max = 1024},
          "Expert parallelism; 1 for dense models.");
  f.later("context", "1", "context parallelism is not supported yet");
}

void describe_scheduler(Fields& f, scheduler::RankConfig& rank, SglangForm& sglang) {
  f.whole("max_batched_tokens", rank.max_batched_tokens, {.min = 1},
          "Token budget of one forward pass of a rank.");
  f.whole("max_sequences", rank.max_sequences, {.min = 1}, "Requests that run at once on a rank.");
  f.whole("prefill_schedule_interval", rank.prefill_schedule_interval, {.min = 1},
          "A rank that decodes computes prompts only every so many passes; needs attention_data > "
          "1.");
  describe_prefill_decode_interval(f, sglang);
}

void describe_capacity(Fields& f, Capacity& capacity) {
  f.tagged("type", "default", "Where the number of KV blocks comes from.",
           {
               {"default",
                "From the memory model.",
                [&] { capacity.kind = Capacity::Kind::Default; },
                [&](Fields& b) {
                  b.real("memory_fraction", capacity.memory_fraction, {.max = 1, .above = true},
                         "Share of a GPU's memory that the engine may use.");
                  b.whole("cuda_graph_reserved_bytes", capacity.cuda_graph_reserved_bytes,
                          {.max = std::uint64_t{1} << 53},
                          "Bytes kept for CUDA graphs on each GPU.");
                },
                {}},
               {"fixed",
                "As given.",
                [&] { capacity.kind = Capacity::Kind::Fixed; },
                [&](Fields& b) {
                  b.whole("blocks", capacity.blocks, {.min = 1}, "KV blocks of a rank.");
                  b.whole("bytes", capacity.bytes, {.min = 1},
                          "KV bytes of a rank on one GPU; needs bytes_per_token or groups.");
                },
                {}},
               {"from_log",
                "As the engine counted itself.",
                [&] { capacity.kind = Capacity::Kind::FromLog; },
                [&](Fields& b) {
                  b.text("path", capacity.log,
                         "Log of vLLM, SGLang or TensorRT-LLM, relative to the current directory; "
                         "data: stands for the data folder. Where it tells blocks only, "
                         "kv_cache.block_size must be the engine's.");
                },
                {}},
           });
  if (!f.is_clean() || capacity.kind != Capacity::Kind::Fixed) return;
  if (capacity.blocks && capacity.bytes)
    f.refuse("bytes", "goes not together with blocks", "give exactly one of blocks and bytes");
  if (!capacity.blocks && !capacity.bytes)
    f.refuse("blocks", "is required: type fixed needs blocks or bytes");
}

void describe_kv_cache(Fields& f, Engine& engine, CacheForm& caches) {
  caches.block_size_is_given =
      f.whole("block_size", engine.rank.block_tokens, {.min = 1, .max = 65536},
              "Tokens of a KV block; 1 goes only with sglang.");
  f.boolean("prefix_caching", engine.rank.prefix_caching, "Reuse the KV of equal prefixes.");
  f.whole("bytes_per_token", engine.kv_bytes_per_token, {.min = 1, .max = std::uint64_t{1} << 40},
          "KV bytes of a token on one GPU; auto takes them from the model.", "auto");
  f.mapping("capacity", Presence::Defaulted, "Size of the KV cache of a rank.",
            [&](Fields& b) { describe_capacity(b, engine.capacity); });
  describe_caches(f, engine, caches);
  f.later("host_offload", "", "KV offload to host memory is not supported yet");
  f.later("g3_offload", "", "KV offload to disk is not supported yet");
  f.later("tiers", "", "KV cache tiers are not supported yet");
  f.later("kvcr", "", "pulling KV from peers is not supported yet");
  if (f.is_clean() && engine.rank.block_tokens == 1 && engine.backend != EngineKind::Sglang)
    f.refuse("block_size", fmt::format("must be from 2 to 65536 with engine.backend {}, not 1",
                                       to_string(engine.backend)));
  if (!f.is_clean() || !engine.capacity.bytes || !engine.grouped.groups.empty()) return;
  if (!engine.kv_bytes_per_token) {
    f.refuse("bytes_per_token", "must be a number when capacity.bytes is given",
             "write the bytes of one token, or give capacity.blocks");
    return;
  }
  const std::uint64_t blocks = engine.fixed_blocks();
  if (blocks == 0 || blocks > UINT32_MAX)
    f.refuse("capacity.bytes",
             fmt::format("gives {} blocks of {} tokens with {} bytes each; it must give 1 to {}",
                         blocks, engine.rank.block_tokens, *engine.kv_bytes_per_token, UINT32_MAX));
}

void describe_timing(Fields& f, Timing& timing) {
  // Milliseconds that stay inside simulated time, whatever the ratios are.
  constexpr double kPassMsMax = 1e9;
  f.tagged("type", "default", "How long a forward pass takes.",
           {
               {"default",
                "From the performance model of model and hardware.",
                [&] { timing.kind = Timing::Kind::Default; },
                [&](Fields& b) {
                  b.text("step_model", timing.step_model_path,
                         "A file of coefficients that servecast fit wrote; without it those of the "
                         "program.");
                },
                {}},
               {"fixed",
                "Constant times.",
                [&] { timing.kind = Timing::Kind::Fixed; },
                [&](Fields& b) {
                  b.real("prefill_ms", timing.fixed.prefill_ms,
                         {.max = kPassMsMax, .required = true},
                         "Time of a pass that prefills, in ms.");
                  b.real("decode_ms", timing.fixed.decode_ms, {.max = kPassMsMax, .required = true},
                         "Time of a pass that decodes, in ms.");
                  b.real("vision_ms", timing.fixed.vision_ms, {.max = kPassMsMax},
                         "Time of each image that a pass encodes, in ms; with sglang.vision.");
                },
                {}},
               {"polynomial",
                "A built-in curve of no particular model.",
                [&] { timing.kind = Timing::Kind::Polynomial; },
                [](Fields& b) {
                  b.later("coefficients", "",
                          "other coefficients than the built-in ones are not supported yet");
                },
                {}},
               {"profile", "", {}, {}, "timing from measured passes is not supported yet"},
           });
  f.real("speedup_ratio", timing.ratios.step, {.max = 1e6},
         "Divides the time of every pass; 0 leaves it.");
  f.real("decode_speedup_ratio", timing.ratios.decode, {.max = 1e6},
         "Divides decode times once more; 0 leaves them.");
}

// Drafts looked up in the context, on vLLM. True when the document has them.
bool describe_ngram(Fields& f, scheduler::RankConfig& rank) {
  return f.mapping(
      "speculation", Presence::Optional, "Speculative decoding with n-gram drafts; vllm only.",
      [&](Fields& b) {
        enum class Kind : std::uint8_t { Ngram };
        Kind kind = Kind::Ngram;
        scheduler::Speculation speculation{.needs_last_block = false};
        std::uint32_t drafts = 1;
        b.word<Kind>("kind", kind, {{"ngram", Kind::Ngram, {}}}, "How drafts are found.");
        b.whole("num_speculative_tokens", drafts, {.min = 1, .max = 5, .required = true},
                "Draft tokens of one verification.");
        b.numbers("acceptance_rates", speculation.rates, {.max = 1, .required = true},
                  "Chance that each draft token is accepted when those before it were.");
        b.seed("seed", speculation.seed, "Seed of the draws.");
        if (!b.is_clean()) return;
        if (speculation.rates.size() != drafts)
          b.refuse("acceptance_rates",
                   fmt::format("has {} rates; num_speculative_tokens is {}",
                               speculation.rates.size(), drafts),
                   "write one rate for each draft token");
        rank.speculation = std::move(speculation);
      });
}

// Drafts of the model's own heads (MTP, EAGLE). The chances are those with the given mean that
// vary least.
void describe_nextn(Fields& f, scheduler::RankConfig& rank) {
  std::uint32_t drafts = 0;
  std::optional<double> accepted;
  f.whole("nextn", drafts, {.max = 5}, "Draft tokens of multi-token prediction; 0 is off.");
  f.real("nextn_accepted", accepted, {.max = 5, .above = true},
         "Draft tokens that a verification accepts on average; required with nextn.");
  if (!f.is_clean()) return;
  if (drafts == 0 && accepted) f.refuse("nextn_accepted", "goes only with nextn above 0");
  if (drafts > 0 && !accepted)
    f.refuse("nextn_accepted", fmt::format("is required: nextn is {}", drafts),
             "write the draft tokens that a verification accepts on average");
  if (drafts == 0 || !accepted) return;
  if (*accepted > drafts)
    f.refuse("nextn_accepted", fmt::format("is {}, more than nextn ({})", *accepted, drafts));
  else
    rank.speculation =
        scheduler::Speculation{.rates = scheduler::rates_of_accepted(*accepted, drafts)};
}

void describe_vllm(Fields& f, Engine& engine, CacheForm& caches) {
  scheduler::RankConfig& rank = engine.rank;
  f.word<scheduler::PreemptionMode>(
      "preemption_mode", rank.preemption_mode,
      {{"lifo", scheduler::PreemptionMode::Lifo, {}},
       {"fifo", scheduler::PreemptionMode::Fifo, {}}},
      "Who loses its KV first when memory runs out: the last admitted, or the first.");
  f.word<scheduler::SchedulingPolicy>("scheduling_policy", rank.policy,
                                      {{"fcfs", scheduler::SchedulingPolicy::Fcfs, {}},
                                       {"priority", scheduler::SchedulingPolicy::Priority, {}}},
                                      "In which order requests wait: as they arrive, or by the "
                                      "trace's priority, lowest first; then "
                                      "the least urgent loses its KV first.");
  if (f.is_clean() && rank.policy == scheduler::SchedulingPolicy::Priority &&
      rank.preemption_mode == scheduler::PreemptionMode::Fifo)
    f.refuse("preemption_mode",
             "fifo goes not together with scheduling_policy priority, by which the least urgent "
             "loses its KV first",
             "leave it at lifo");
  describe_cache_versions(f, engine, caches);
  const bool above = rank.speculation.has_value();
  if (describe_ngram(f, rank) && above && f.is_clean())
    f.refuse("speculation", "goes not together with engine.nextn or engine.speculation",
             "keep one of them");
  f.later("watermark", "0", "vLLM holds no blocks back; a watermark is not supported");
}

void describe_trtllm(Fields& f) {
  enum class Policy : std::uint8_t { GuaranteedNoEvict };
  Policy policy = Policy::GuaranteedNoEvict;
  f.word<Policy>("capacity_scheduler_policy", policy,
                 {{"guaranteed_no_evict", Policy::GuaranteedNoEvict, {}},
                  {"max_utilization", {}, "requests that are paused for memory are not supported"},
                  {"static_batch", {}, "batches that wait for their slowest are not supported"}},
                 "When a request is admitted: when its whole output is sure to fit.");
}

std::string other_backend(const Engine& engine) {
  return fmt::format("holds settings of another backend than engine.backend ({})",
                     to_string(engine.backend));
}

// The settings that one backend alone has; refused by name with another one.
void describe_engine_block(Fields& f, const Engine& engine, EngineKind owner, std::string_view help,
                           const Describe& fields) {
  const bool owned = engine.backend == owner;
  const bool given =
      f.mapping(to_string(owner), owned ? Presence::Defaulted : Presence::Optional, help, fields);
  if (given && !owned && f.is_clean())
    f.refuse(to_string(owner), other_backend(engine),
             fmt::format("remove the block, or set engine.backend to {}", to_string(owner)));
}

// Defaults that depend on the engine (engine-vllm.md 2, engine-sglang.md S1, product.md 9.7).
void set_engine_defaults(Engine& engine) {
  engine.capacity.memory_fraction = perf::default_memory_fraction(engine.backend);
  if (engine.backend == EngineKind::Sglang) engine.rank.block_tokens = 1;
  if (engine.backend != EngineKind::TensorRtLlm) return;
  engine.rank.block_tokens = 32;
  engine.rank.rules = scheduler::kTrtllmRules;
}

void check_prefill_interval(Fields& f, const Engine& engine) {
  const std::uint32_t interval = engine.rank.prefill_schedule_interval;
  if (!f.is_clean() || interval == 1) return;
  const std::string_view field = "scheduler.prefill_schedule_interval";
  if (engine.backend != EngineKind::Vllm)
    f.refuse(field, fmt::format("{} goes only with engine.backend: vllm, not {}", interval,
                                to_string(engine.backend)));
  else if (engine.parallelism.attention_data == 1)
    f.refuse(field,
             fmt::format("{} goes only with parallelism.attention_data above 1; it is 1", interval),
             "a lone rank holds up no other: leave the interval at 1");
}

void describe_worker(Fields& f, Engine& engine) {
  CacheForm caches;
  SglangForm sglang;
  // Before scheduler and kv_cache, where sizes stand that this block may give by SGLang's names.
  describe_engine_block(f, engine, EngineKind::Sglang, "Settings that only SGLang has.",
                        [&](Fields& b) { describe_sglang(b, sglang); });
  set_sglang_defaults(engine, sglang);
  f.mapping("parallelism", Presence::Defaulted, "How many GPUs and how they work together.",
            [&](Fields& b) { describe_parallelism(b, engine); });
  f.mapping("scheduler", Presence::Defaulted, "Limits of a forward pass.",
            [&](Fields& b) { describe_scheduler(b, engine.rank, sglang); });
  f.mapping("kv_cache", Presence::Defaulted, "The KV cache of a rank.",
            [&](Fields& b) { describe_kv_cache(b, engine, caches); });
  f.mapping("timing", Presence::Defaulted, "How long forward passes take.",
            [&](Fields& b) { describe_timing(b, engine.timing); });
  describe_engine_block(f, engine, EngineKind::Vllm, "Settings that only vLLM has.",
                        [&](Fields& b) { describe_vllm(b, engine, caches); });
  describe_engine_block(f, engine, EngineKind::TensorRtLlm, "Settings that only TensorRT-LLM has.",
                        describe_trtllm);
  set_caches(f, engine, caches);
  set_sglang(f, engine, sglang);
  f.later("startup_seconds", "0", "workers that start during a run are not supported yet");
  f.later("hardware", "", "goes only with engine.mode: disaggregated; set engine.hardware");
  f.later("context_length", "", "a limit per role is not supported yet; set engine.context_length");
  for (const std::string_view name : {"forward_model", "fpm_parquet_path", "estimator_config"})
    f.later(name, "", "timing from measured passes is not supported yet");
  check_prefill_interval(f, engine);
}

// Fields of upstream configurations whose subject this version does not model.
void describe_later(Fields& f) {
  f.later("kv_transfer", "",
          "goes only with engine.mode: disaggregated, which is not supported yet");
  f.later("enable_eplb", "false", "expert load balancing is not supported yet");
  f.later("wideep_num_slots", "", "expert load balancing is not supported yet");
  f.later("moe_backend", "auto", "choosing kernels is not supported yet");
  f.later("attention_backend", "auto", "choosing kernels is not supported yet");
  for (const std::string_view name : {"gemm_quant_mode", "moe_quant_mode", "kvcache_quant_mode",
                                      "fmha_quant_mode", "comm_quant_mode"})
    f.later(name, "", "quantization other than the checkpoint's is not supported yet");
  for (const std::string_view name : {"database_mode", "systems_paths", "estimator_config"})
    f.later(name, "", "measured performance tables are not supported yet");
  f.later("transfer_policy", "off", "measured performance tables are not supported yet");
  f.later("estimation_mode", "auto", "choosing an estimator is not supported yet");
  f.later("fallback_policy", "deny", "measured performance tables are not supported yet");
  f.later("fpm_profile", "", "timing from measured passes is not supported yet");
  for (const std::string_view name : {"decoder_replay", "enable_shared_layer", "strict_provenance"})
    f.later(name, "false", "measured performance tables are not supported yet");
}

}  // namespace

void describe_engine(Fields& f, Engine& engine) {
  Mode mode = Mode::Aggregated;
  f.word<Mode>("mode", mode,
               {{"aggregated", Mode::Aggregated, {}},
                {"disaggregated", {}, "separate prefill and decode workers are not supported yet"},
                {"afd", {}, "attention/FFN disaggregation is not supported"}},
               "How prefill and decode are spread over workers.");
  f.text("model", engine.model,
         "Name of the model, such as Qwen/Qwen3-32B, or a file: the config.json of a checkpoint.");
  f.text("hardware", engine.hardware,
         "Name of the system, such as h200_sxm, or a YAML or JSON file with the keys of a system "
         "card.");
  f.text(
      "model_like", engine.model_like,
      "A model whose card stands for engine.model, which has an unknown architecture or no file; "
      "reports say so.");
  f.word<EngineKind>("backend", engine.backend,
                     {{"vllm", EngineKind::Vllm, {}},
                      {"sglang", EngineKind::Sglang, {}},
                      {"trtllm", EngineKind::TensorRtLlm, {}}},
                     "The inference engine whose scheduler is replayed.");
  f.text("backend_version", engine.backend_version,
         "Version of the engine, such as 0.19.0; where measurements of it differ from others, pass "
         "times do.");
  set_engine_defaults(engine);
  f.whole("context_length", engine.context_length, {.min = 1},
          "Tokens that a request may have with its output; max is the model's limit.", "max");
  f.boolean("enable_chunked_prefill", engine.rank.chunked_prefill,
            "May a prompt be spread over several passes?");
  describe_nextn(f, engine.rank);
  const bool has_nextn = engine.rank.speculation.has_value();
  if (describe_ngram(f, engine.rank) && f.is_clean()) {
    if (has_nextn) f.refuse("speculation", "goes not together with nextn", "keep one of them");
    if (engine.backend != EngineKind::Vllm)
      f.refuse("speculation",
               fmt::format("goes only with backend: vllm, not {}", to_string(engine.backend)));
  }
  f.mapping("workers", Presence::Required, "The workers of each role.", [&](Fields& w) {
    w.mapping("aggregated", Presence::Required, "Workers that prefill and decode.",
              [&](Fields& b) { describe_worker(b, engine); });
    w.later("prefill", "", "goes only with engine.mode: disaggregated, which is not supported yet");
    w.later("decode", "", "goes only with engine.mode: disaggregated, which is not supported yet");
    w.later("encoder", "", "encoder workers are not supported yet");
    w.later("afd", "", "attention/FFN disaggregation is not supported");
  });
  if (f.is_clean() && !engine.rank.chunked_prefill && engine.backend == EngineKind::Sglang)
    f.refuse("enable_chunked_prefill", "false goes not together with backend: sglang",
             "leave it at true");
  if (f.is_clean() && engine.rank.speculation && engine.timing.ratios.decode != 1.0)
    f.refuse("workers.aggregated.timing.decode_speedup_ratio",
             "must be 1 with nextn or speculation: tokens come faster by bursts already",
             "remove decode_speedup_ratio, or the speculation");
  describe_later(f);
}

void describe_router(Fields& f, router::Spec& router) {
  using router::Metric;
  using router::Policy;
  using router::Tie;
  const auto metric = [&](Fields& b) {
    b.word<Metric>("metric", router.metric,
                   {{"requests", Metric::Requests, {}},
                    {"tokens", Metric::Tokens, {}},
                    {"kv_blocks", {}, "this metric is not supported yet"}},
                   "What the load of a worker counts.");
  };
  const auto seed = [&](Fields& b) { b.seed("seed", router.seed, "Seed of the router's draws."); };
  f.tagged("policy", "round_robin", "Which worker gets a request.",
           {
               {"round_robin",
                "One after the other.",
                [&] { router.policy = Policy::RoundRobin; },
                {},
                {}},
               {"least_loaded",
                "The worker with the least load.",
                [&] { router.policy = Policy::LeastLoaded; },
                [&](Fields& b) {
                  metric(b);
                  b.word<Tie>("tie", router.tie,
                              {{"lowest_id", Tie::LowestId, {}},
                               {"round_robin", Tie::RoundRobin, {}},
                               {"random", Tie::Random, {}}},
                              "Who wins among workers with equal load.");
                  seed(b);
                },
                {}},
               {"power_of_two",
                "The less loaded of two random workers.",
                [&] { router.policy = Policy::PowerOfTwo; },
                [&](Fields& b) {
                  metric(b);
                  seed(b);
                },
                {}},
               {"random", "Any worker.", [&] { router.policy = Policy::Random; }, seed, {}},
               {"kv_router", "", {}, {}, "routing by cached prefixes is not supported yet"},
               {"session_affinity", "", {}, {}, "routing by session is not supported yet"},
               {"external", "", {}, {}, "external routers are not supported yet"},
           });
  for (const std::string_view name :
       {"prefill_load_model", "overlap_score_credit", "prefill_load_scale", "temperature"})
    f.later(name, "", "goes only with router.policy: kv_router, which is not supported yet");
  for (const std::string_view name : {"fallback", "ttl_ms", "spill_threshold"})
    f.later(name, "", "goes only with router.policy: session_affinity, which is not supported yet");
}

void describe_kv_eviction(Fields& f, Form& form) {
  using replay::EvictionPolicy;
  f.word<EvictionPolicy>(
      "kv_eviction_policy", form.kv_eviction_policy,
      {{"lru", EvictionPolicy::Lru, {}}, {"belady", EvictionPolicy::Belady, {}}},
      "Which cached block is evicted first, on every worker: the one released first, or the one "
      "whose prefix the workload asks for latest, which no engine can know.");
  if (!f.is_clean() || form.kv_eviction_policy == EvictionPolicy::Lru) return;
  if (form.engine.backend == EngineKind::Sglang)
    f.refuse("kv_eviction_policy",
             "belady goes not together with engine.backend: sglang, whose cache is a radix tree",
             "remove one of them");
  if (!form.engine.rank.prefix_caching)
    f.refuse("kv_eviction_policy",
             "belady goes not together with engine.workers.aggregated.kv_cache.prefix_caching "
             "false: nothing is cached that could be evicted",
             "leave prefix_caching at true");
  const auto refuse_cache = [&](std::string_view cache) {
    f.refuse("kv_eviction_policy",
             fmt::format("belady goes not together with engine.workers.aggregated.kv_cache.{}: it "
                         "knows the linear cache alone",
                         cache),
             "remove one of them");
  };
  if (form.engine.rank.state) refuse_cache("state_cache");
  if (!form.engine.grouped.groups.empty()) refuse_cache("groups");
}

void describe_sla(Fields& f, Sla& sla) {
  f.real("ttft_ms", sla.ttft_ms, {.above = true},
         "Bound of the time to first token in ms, inclusive.");
  f.real("itl_ms", sla.itl_ms, {.above = true},
         "Bound of a request's mean gap between tokens in ms, inclusive.");
  f.real("e2e_ms", sla.e2e_ms, {.above = true},
         "Bound of the whole latency in ms, inclusive; excludes the others.");
  if (f.is_clean() && sla.e2e_ms && (sla.ttft_ms || sla.itl_ms))
    f.refuse("e2e_ms",
             fmt::format("goes not together with {}", sla.ttft_ms ? "ttft_ms" : "itl_ms"));
}

void describe(Fields& f, Form& form) {
  f.mapping("traffic", Presence::Defaulted, "What users send and when.",
            [&](Fields& b) { describe_traffic(b, form.traffic); });
  f.mapping("engine", Presence::Required, "Model, hardware and workers.",
            [&](Fields& b) { describe_engine(b, form.engine); });
  f.mapping("router", Presence::Defaulted, "Which worker gets a request.",
            [&](Fields& b) { describe_router(b, form.router); });
  describe_kv_eviction(f, form);
  f.mapping("evaluation", Presence::Defaulted, "What counts as good.", [&](Fields& e) {
    e.mapping("sla", Presence::Defaulted, "Latency bounds of a good request.",
              [&](Fields& b) { describe_sla(b, form.sla); });
  });
  f.later("execution", "", "limits on the simulator's own resources are not supported yet");
  f.later("planner", "", "scaling during a run is not supported yet");
  f.later("optimization", "", "belongs to recommend; predict runs one concrete configuration");
  f.later("optimizer", "", "belongs to recommend; predict runs one concrete configuration");
}

}  // namespace servecast::config
