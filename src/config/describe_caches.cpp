// SPDX-License-Identifier: Apache-2.0
// Caches beside the linear pool: recurrent state (engine-vllm.md 2.3 items 11 and 12).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "config/describe.hpp"

namespace servecast::config {
namespace {

using cache::AlignBoundary;
using catalog::EngineKind;

constexpr std::string_view kState = "kv_cache.state_cache";
constexpr std::string_view kUnit = "kv_cache.prefix_match_unit";

// A state shares the pool with KV, so what a block is must be said and not derived.
void want_explicit_pool(Fields& f, const Engine& engine, const CacheForm& caches) {
  std::vector<std::string_view> missing;
  if (engine.capacity.kind != Capacity::Kind::Fixed)
    missing.push_back("kv_cache.capacity {type: fixed}");
  if (!caches.block_size_is_given) missing.push_back("kv_cache.block_size");
  if (!engine.kv_bytes_per_token) missing.push_back("kv_cache.bytes_per_token");
  if (missing.empty()) return;
  f.refuse(kState,
           fmt::format("needs a fixed capacity, block_size and bytes_per_token; missing: {}",
                       fmt::join(missing, ", ")),
           "write all three, so that the blocks of a state are known");
}

void check_state_cache(Fields& f, const Engine& engine, const CacheForm& caches) {
  if (engine.backend != EngineKind::Vllm)
    f.refuse(kState, fmt::format("goes only with engine.backend vllm, not {}",
                                 catalog::to_string(engine.backend)));
  if (engine.rank.speculation)
    f.refuse(kState,
             fmt::format("goes not together with {}", engine.rank.speculation->needs_last_block
                                                          ? "engine.nextn"
                                                          : "speculation (of engine or vllm)"),
             "remove one of them");
  want_explicit_pool(f, engine, caches);
  if (caches.match_unit && engine.rank.block_tokens % *caches.match_unit != 0)
    f.refuse(kUnit, fmt::format("must divide kv_cache.block_size ({}), not {}",
                                engine.rank.block_tokens, *caches.match_unit));
}

void set_state_cache(Fields& f, Engine& engine, const CacheForm& caches) {
  const std::uint64_t state = cache::state_blocks(*caches.state_bytes, engine.rank.block_tokens,
                                                  *engine.kv_bytes_per_token);
  if (engine.fixed_blocks() <= state) {
    f.refuse("kv_cache.capacity",
             fmt::format("gives {} blocks; with {} a state takes {} and tokens need one more",
                         engine.fixed_blocks(), kState, state),
             fmt::format("give at least {} blocks", state + 1));
    return;
  }
  engine.rank.state = scheduler::StateCacheSettings{.blocks = static_cast<std::uint32_t>(state),
                                                    .match_unit = caches.match_unit.value_or(0),
                                                    .boundary = caches.boundary};
}

}  // namespace

void describe_caches(Fields& f, CacheForm& caches) {
  f.mapping("state_cache", Presence::Optional,
            "Recurrent state that each request keeps beside its KV, in blocks of the same pool "
            "(Mamba, linear attention); vllm only.",
            [&](Fields& b) {
              std::uint64_t bytes = 0;
              b.whole("bytes_per_request", bytes,
                      {.min = 1, .max = std::uint64_t{1} << 53, .required = true},
                      "Bytes of the state of one request on one GPU.");
              caches.state_bytes = bytes;
            });
  f.whole("prefix_match_unit", caches.match_unit, {.min = 1, .max = 65536},
          "Tokens at whose multiples prefixes match; prefills stop where their state is kept.");
  f.later("groups", "", "grouped KV caches are not supported yet");
}

void describe_cache_versions(Fields& f, CacheForm& caches) {
  f.word<AlignBoundary>("align_boundary", caches.boundary,
                        {{"prompt_minus_one", AlignBoundary::PromptMinusOne, {}},
                         {"known_floor", AlignBoundary::KnownFloor, {}}},
                        "The last block boundary at which a prefill keeps its state: the last one "
                        "before the prompt's end, or, as older versions of vLLM, that of the known "
                        "tokens, which leaves an exactly aligned prompt without one.");
  f.later("version", "", "version rules of vLLM are not supported yet");
}

void set_caches(Fields& f, Engine& engine, const CacheForm& caches) {
  if (!f.is_clean()) return;
  if (caches.state_bytes)
    check_state_cache(f, engine, caches);
  else if (caches.match_unit)
    f.refuse(kUnit, "goes only with kv_cache.state_cache", "remove it, or describe the state");
  if (caches.boundary != AlignBoundary::PromptMinusOne &&
      !(caches.state_bytes && caches.match_unit))
    f.refuse("vllm.align_boundary",
             fmt::format("known_floor goes only with {} and {}", kState, kUnit));
  if (f.is_clean() && caches.state_bytes) set_state_cache(f, engine, caches);
}

}  // namespace servecast::config
