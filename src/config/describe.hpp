// SPDX-License-Identifier: Apache-2.0
// The tables: every field of the configuration, its limits, its one sentence, and the rules between
// fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/align_split.hpp"
#include "config/config.hpp"
#include "config/fields.hpp"
#include "workload/spec.hpp"

namespace servecast::config {

// The `traffic` block as fields; the three sources side by side until the type is known.
struct TrafficForm {
  enum class Source : std::uint8_t { Synthetic, Session, Trace };
  Source source = Source::Synthetic;
  workload::SyntheticSource synthetic = {};
  workload::SessionSource session = {};
  workload::TraceSource trace = {};
  workload::Load load = {};
  std::optional<double> cancel_after_ms = {};
  std::optional<double> requests_per_second;
  std::optional<double> sessions_per_second;
  struct Stop {
    std::optional<std::uint64_t> requests;
    std::optional<std::uint64_t> sessions;
    std::optional<double> requests_per_load_unit;
    std::optional<double> sessions_per_load_unit;
    std::optional<double> max_virtual_time_seconds = {};
  } stop;
};

// Everything the document says.
struct Form {
  TrafficForm traffic = {};
  Engine engine = {};
  router::Spec router = {};
  replay::EvictionPolicy kv_eviction_policy = replay::EvictionPolicy::Lru;
  Sla sla = {};
};

// What a worker's block says of caches beside the linear pool, until its rules can be checked.
struct CacheForm {
  bool block_size_is_given = false;
  std::optional<std::uint64_t> state_bytes = {};  // of the recurrent state of a request
  cache::AlignBoundary boundary = cache::AlignBoundary::PromptMinusOne;
};
// Fields of kv_cache, fields of vllm, and the rules between them and the rest of the worker.
void describe_caches(Fields& f, Engine& engine, CacheForm& caches);
void describe_cache_versions(Fields& f, Engine& engine, CacheForm& caches);
void set_caches(Fields& worker, Engine& engine, const CacheForm& caches);

// What a worker's block says of SGLang, until its rules can be checked.
struct SglangForm {
  scheduler::SglangSettings settings = {};
  std::optional<std::uint32_t> chunked_prefill_size = {};
  std::optional<std::uint32_t> page_size = {};
  bool has_frontend = false;
  bool vision = false;
  std::optional<std::uint64_t> vlm_cache_bytes = {};
};
// Fields of sglang and of scheduler, the defaults elsewhere that follow from them, and the rules
// between them and the rest of the worker; the last one fills the settings of the rank.
void describe_sglang(Fields& f, SglangForm& form);
void describe_prefill_decode_interval(Fields& scheduler, SglangForm& form);
void set_sglang_defaults(Engine& engine, const SglangForm& form);
void set_sglang(Fields& worker, Engine& engine, const SglangForm& form);

void describe(Fields& f, Form& form);
void describe_traffic(Fields& f, TrafficForm& traffic);
void describe_engine(Fields& f, Engine& engine);
void describe_router(Fields& f, router::Spec& router);
void describe_kv_eviction(Fields& f, Form& form);
void describe_sla(Fields& f, Sla& sla);

// The checked form of the traffic block.
workload::Spec traffic_spec(const TrafficForm& traffic);

}  // namespace servecast::config
