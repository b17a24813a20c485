// SPDX-License-Identifier: Apache-2.0
// Caches beside the linear pool: recurrent state (engine-vllm.md 2.3 items 11 and 12) and groups
// (item 13; what concerns the groups themselves, cache::grouped_gate judges when it is deployed).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "config/describe.hpp"

namespace servecast::config {
namespace {

using cache::AlignBoundary;
using catalog::EngineKind;

constexpr std::string_view kState = "kv_cache.state_cache";
constexpr std::string_view kUnit = "kv_cache.prefix_match_unit";
constexpr std::string_view kGroups = "kv_cache.groups";

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
  const std::optional<std::uint32_t>& unit = engine.grouped.match_unit;
  if (unit && engine.rank.block_tokens % *unit != 0)
    f.refuse(kUnit, fmt::format("must divide kv_cache.block_size ({}), not {}",
                                engine.rank.block_tokens, *unit));
  if (unit && !engine.rank.prefix_caching)
    f.refuse(kUnit, "goes not together with kv_cache.prefix_caching false",
             "no prefix is matched then");
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
  engine.rank.state =
      scheduler::StateCacheSettings{.blocks = static_cast<std::uint32_t>(state),
                                    .match_unit = engine.grouped.match_unit.value_or(0),
                                    .boundary = caches.boundary};
}

void describe_group(Fields& f, cache::KvGroup& group) {
  using cache::GroupKind;
  using cache::MambaCacheMode;
  f.text("name", group.name, "Name of the group, such as full0.");
  f.word<GroupKind>(
      "kind", group.kind,
      {{"attention", GroupKind::Attention, {}},
       {"convolution", GroupKind::Convolution, {}},
       {"state", GroupKind::State, {}},
       {"ring", GroupKind::Ring, {}}},
      "What its layers keep: attention KV (of all tokens, of a window or of a chunk), "
      "the window of a convolution, recurrent state, or a ring of latest tokens.");
  f.whole("num_layers", group.num_layers, {.min = 1, .required = true}, "Layers of the group.");
  f.whole("block_size_tokens", group.block_size_tokens, {.min = 1, .required = true},
          "Tokens of one of its blocks.");
  f.whole("page_size_bytes", group.page_size_bytes,
          {.min = 1, .max = std::uint64_t{1} << 53, .required = true},
          "Bytes of one block on one GPU, of all its layers, padding included.");
  f.whole("sliding_window", group.sliding_window, {.min = 1},
          "Tokens that a token sees, itself included; of attention and convolution groups.");
  f.whole("attention_chunk", group.attention_chunk, {.min = 1},
          "Tokens of a chunk of chunked local attention.");
  f.boolean("prefix_cacheable", group.prefix_cacheable,
            "Does vLLM keep its blocks for equal prefixes? Needed for prefix caching.");
  f.whole("prefill_checkpoint_blocks", group.prefill_checkpoint_blocks, {},
          "State groups: blocks that a prefill may leave a state in before its end; since vLLM "
          "0.32.0.");
  f.word<MambaCacheMode>("mamba_cache_mode", group.mamba_cache_mode,
                         {{"none", MambaCacheMode::None, {}},
                          {"all", MambaCacheMode::All, {}},
                          {"align", MambaCacheMode::Align, {}}},
                         "State groups: when vLLM keeps a state; prefix caching needs align.");
}

void describe_probe(Fields& f, cache::ProbeEvidence& probe) {
  f.boolean("ran_with_prefix_caching", probe.ran_with_prefix_caching,
            "Was prefix caching on while the deployment was probed?");
  f.whole("hash_block_tokens", probe.hash_block_tokens, {.min = 1},
          "Tokens of a hash block, as the probe recorded them.");
}

// With groups the linear pool is unused, so its settings would have no effect (engine-vllm.md
// 10.1).
void check_groups(Fields& f, const Engine& engine, const CacheForm& caches) {
  const auto refuse = [&](std::string_view field, std::string_view other, std::string hint = {}) {
    f.refuse(field, fmt::format("goes not together with {}", other), std::move(hint));
  };
  if (engine.backend != EngineKind::Vllm)
    f.refuse(kGroups, fmt::format("goes only with engine.backend vllm, not {}",
                                  catalog::to_string(engine.backend)));
  if (engine.rank.speculation)
    refuse(kGroups,
           engine.rank.speculation->needs_last_block ? "engine.nextn"
                                                     : "speculation (of engine or vllm)",
           "remove one of them");
  if (engine.parallelism.pipeline > 1)
    refuse(kGroups, fmt::format("parallelism.pipeline {}", engine.parallelism.pipeline),
           "grouped caches are laid out for one pipeline stage");
  if (caches.state_bytes) refuse(kState, kGroups, "describe the state as a group");
  // What a resolved configuration spells out is the default, and says nothing.
  if (engine.backend == EngineKind::Vllm &&
      engine.rank.block_tokens != scheduler::RankConfig{}.block_tokens)
    refuse("kv_cache.block_size", kGroups, "each group has its own block_size_tokens");
  if (engine.kv_bytes_per_token)
    refuse("kv_cache.bytes_per_token", kGroups, "each group has its own page_size_bytes");
  if (engine.capacity.blocks)
    refuse("kv_cache.capacity.blocks", kGroups, "give capacity.bytes, which all groups share");
  if (!engine.grouped.key_output_blocks && !engine.rank.prefix_caching)
    refuse("kv_cache.key_output_blocks", "kv_cache.prefix_caching false",
           "nothing is kept for equal prefixes then");
}

void refuse_without_groups(Fields& f, const Engine& engine, const CacheForm& caches) {
  const auto refuse = [&](std::string_view field, std::string_view owner) {
    f.refuse(field, fmt::format("goes only with {}", owner));
  };
  if (engine.grouped.evidence) refuse("kv_cache.probe", kGroups);
  if (!engine.grouped.key_output_blocks) refuse("kv_cache.key_output_blocks", kGroups);
  if (engine.grouped.match_unit && !caches.state_bytes)
    refuse(kUnit, fmt::format("{} or {}", kState, kGroups));
}

}  // namespace

void describe_caches(Fields& f, Engine& engine, CacheForm& caches) {
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
  Grouped& grouped = engine.grouped;
  f.whole("prefix_match_unit", grouped.match_unit, {.min = 1, .max = 65536},
          "Tokens at whose multiples prefixes match; prefills stop where their state is kept.");
  f.list("groups",
         "Layers that keep KV in different shapes, in one pool; vllm only. Prefix caching needs a "
         "probe.",
         [&](Fields& b) { describe_group(b, grouped.groups.emplace_back()); });
  f.mapping("probe", Presence::Optional,
            "What a probe of the running deployment saw; without it groups run cold.",
            [&](Fields& b) { describe_probe(b, grouped.evidence.emplace()); });
  f.boolean("key_output_blocks", grouped.key_output_blocks,
            "Groups: also keep full blocks of generated tokens for equal prefixes, as vLLM does.");
}

void describe_cache_versions(Fields& f, Engine& engine, CacheForm& caches) {
  f.word<AlignBoundary>("align_boundary", caches.boundary,
                        {{"prompt_minus_one", AlignBoundary::PromptMinusOne, {}},
                         {"known_floor", AlignBoundary::KnownFloor, {}}},
                        "The last block boundary at which a prefill keeps its state: the last one "
                        "before the prompt's end, or, as older versions of vLLM, that of the known "
                        "tokens, which leaves an exactly aligned prompt without one.");
  f.text("version", engine.grouped.version,
         "Version of vLLM, by whose rules grouped caches work: 0.31.0 or 0.32.0.");
}

void set_caches(Fields& f, Engine& engine, const CacheForm& caches) {
  if (!f.is_clean()) return;
  if (!engine.grouped.groups.empty()) {
    check_groups(f, engine, caches);
  } else {
    refuse_without_groups(f, engine, caches);
    if (caches.state_bytes) check_state_cache(f, engine, caches);
  }
  if (caches.boundary != AlignBoundary::PromptMinusOne &&
      !(caches.state_bytes && engine.grouped.match_unit))
    f.refuse("vllm.align_boundary",
             fmt::format("known_floor goes only with {} and {}", kState, kUnit));
  if (f.is_clean() && caches.state_bytes) set_state_cache(f, engine, caches);
}

}  // namespace servecast::config
