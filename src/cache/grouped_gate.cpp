// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/check.hpp"

namespace servecast::cache {
namespace {

// Sums and products of pages stay exact in JSON and in double.
constexpr std::uint64_t kPageBytesMax = std::uint64_t{1} << 53;
// A ring buffer is addressed in steps of so many tokens, and so must be what is cut by it.
constexpr std::uint32_t kRingGridTokens = 4;
// Opens the messages of the rules that hold only with prefix caching.
constexpr std::string_view kCaching = "grouped caches with prefix caching";

const char* text_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::Attention:
      return "attention";
    case GroupKind::Convolution:
      return "convolution";
    case GroupKind::State:
      return "state";
    case GroupKind::Ring:
      return "ring";
  }
  return "";
}

std::string supported_versions() {
  std::string names;
  for (const GroupedVersion& version : kGroupedVersions) {
    names += names.empty() ? "" : ", ";
    names += version.name;
  }
  return names;
}

class Gate {
 public:
  explicit Gate(const GroupedSettings& settings) : s_(settings) {}

  GroupedGate run() {
    if (s_.groups.empty()) {
      if (s_.vllm_version) {
        refuse("vllm_version",
               fmt::format("is {}, but only grouped caches differ by version", *s_.vllm_version),
               "describe the groups or leave the version out");
      }
      return std::move(result_);
    }
    check_descriptors();
    check_version();
    if (!s_.prefix_caching) {
      if (s_.prefix_match_unit) {
        refuse("prefix_match_unit",
               fmt::format("is {}, but prefixes of grouped caches are matched with prefix caching "
                           "only",
                           *s_.prefix_match_unit),
               "set prefix_caching to true or leave the unit out");
      }
      return std::move(result_);
    }
    result_.cold_reason = unproven_prefix_caching(s_.evidence);
    if (result_.cold_reason) return std::move(result_);
    if (result_.refusals.empty()) check_caching();
    result_.prefix_caching = result_.refusals.empty();
    return std::move(result_);
  }

 private:
  void refuse(std::string field, std::string message, std::string hint = {}) {
    result_.refusals.push_back({std::move(field), std::move(message), std::move(hint)});
  }
  static std::string field(std::size_t group, std::string_view name) {
    return fmt::format("groups[{}].{}", group, name);
  }
  void positive(std::size_t group, std::string_view name, std::uint64_t value) {
    if (value == 0) refuse(field(group, name), "is 0; it must be at least 1");
  }

  // What a group may say, with or without prefix caching (engine-vllm.md 10.1).
  void check_descriptors() {
    for (std::size_t i = 0; i < s_.groups.size(); ++i) {
      check_name(i);
      check_sizes(i);
      check_fields_of_kind(i);
    }
  }

  void check_name(std::size_t i) {
    const std::string& name = s_.groups[i].name;
    if (name.find_first_not_of(" \t\r\n\v\f") == std::string::npos) {
      refuse(field(i, "name"), "is blank; each group needs a name of its own");
      return;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (s_.groups[j].name != name) continue;
      refuse(field(i, "name"), fmt::format("is '{}', as that of groups[{}] already; each group "
                                           "needs a name of its own",
                                           name, j));
      return;
    }
  }

  void check_sizes(std::size_t i) {
    const KvGroup& group = s_.groups[i];
    positive(i, "num_layers", group.num_layers);
    positive(i, "block_size_tokens", group.block_size_tokens);
    if (group.page_size_bytes == 0 || group.page_size_bytes > kPageBytesMax) {
      refuse(field(i, "page_size_bytes"),
             fmt::format("is {}; it must be from 1 to {}", group.page_size_bytes, kPageBytesMax));
    }
    if (group.sliding_window) positive(i, "sliding_window", *group.sliding_window);
    if (group.attention_chunk) positive(i, "attention_chunk", *group.attention_chunk);
  }

  void check_fields_of_kind(std::size_t i) {
    const KvGroup& group = s_.groups[i];
    const auto only_for = [&](std::string_view name, std::string_view kinds) {
      refuse(field(i, name), fmt::format("goes not with kind {}; only {} groups have it",
                                         text_of(group.kind), kinds));
    };
    const bool attention = group.kind == GroupKind::Attention;
    const bool convolution = group.kind == GroupKind::Convolution;
    const bool state = group.kind == GroupKind::State;
    if (group.sliding_window && !attention && !convolution) {
      only_for("sliding_window", "attention and convolution");
    }
    if (convolution && !group.sliding_window) {
      refuse(field(i, "sliding_window"), "is missing; a convolution group reads a window");
    }
    if (group.attention_chunk && !attention) only_for("attention_chunk", "attention");
    if (group.attention_chunk && group.sliding_window && attention) {
      refuse(field(i, "attention_chunk"), "goes not together with sliding_window",
             "give the one that the layers use");
    }
    if (group.prefill_checkpoint_blocks && !state) only_for("prefill_checkpoint_blocks", "state");
    if (group.mamba_cache_mode && !state) only_for("mamba_cache_mode", "state");
    if (group.kind == GroupKind::Ring && group.prefix_cacheable.value_or(false)) {
      refuse(field(i, "prefix_cacheable"),
             "is true, but a ring holds the latest tokens only; it must be false");
    }
  }

  void check_version() {
    if (!s_.vllm_version || find_grouped_version(*s_.vllm_version) != nullptr) return;
    refuse("vllm_version",
           fmt::format("is {}, whose rules for grouped caches are not known; supported: {}",
                       *s_.vllm_version, supported_versions()),
           fmt::format("the nearest is {}", nearest_grouped_version(*s_.vllm_version).name));
  }

  // What prefix caching asks for. Rules that compute with a value run once the value is fine.
  void check_caching() {
    check_declared();
    check_kinds();
    check_pages();
    check_rank();
    if (s_.vllm_version) check_checkpoints(*find_grouped_version(*s_.vllm_version));
    if (!result_.refusals.empty()) return;
    check_blocks();
    check_ring_grid();
    if (result_.refusals.empty()) check_capacity();
  }

  void check_declared() {
    bool some = false;
    for (std::size_t i = 0; i < s_.groups.size(); ++i) {
      const std::optional<bool>& cacheable = s_.groups[i].prefix_cacheable;
      some |= cacheable.value_or(true);
      if (cacheable) continue;
      refuse(field(i, "prefix_cacheable"),
             fmt::format("is missing; {} need it for every group", kCaching),
             "import the probe again, it records which groups vLLM caches");
    }
    if (!some) {
      refuse("groups",
             fmt::format("have no group with prefix_cacheable: true; {} need one", kCaching),
             "set prefix_caching to false");
    }
  }

  void check_kinds() {
    for (std::size_t i = 0; i < s_.groups.size(); ++i) {
      const KvGroup& group = s_.groups[i];
      if (group.kind == GroupKind::Convolution) {
        refuse(field(i, "kind"),
               fmt::format("is convolution; {} cannot resume one: no version keeps its window",
                           kCaching),
               "set prefix_caching to false");
      }
      if (group.kind == GroupKind::State && group.prefix_cacheable.value_or(false) &&
          group.mamba_cache_mode != MambaCacheMode::Align) {
        refuse(field(i, "mamba_cache_mode"),
               fmt::format("must be align; {} keep recurrent state at block boundaries only",
                           kCaching));
      }
    }
  }

  void check_pages() {
    const std::uint64_t first = s_.groups.front().page_size_bytes;
    for (std::size_t i = 1; i < s_.groups.size(); ++i) {
      const std::uint64_t page = s_.groups[i].page_size_bytes;
      if (page == first) continue;
      refuse(field(i, "page_size_bytes"),
             fmt::format("is {}, that of groups[0] {}; {} share one pool of blocks, so all pages "
                         "must be equal",
                         page, first, kCaching));
    }
  }

  void check_rank() {
    if (!s_.prefix_match_unit) {
      refuse("prefix_match_unit",
             fmt::format("is missing; {} need the tokens of a hash block", kCaching),
             fmt::format("the probe recorded {}", *s_.evidence->hash_block_tokens));
    } else if (*s_.prefix_match_unit != *s_.evidence->hash_block_tokens) {
      refuse("prefix_match_unit",
             fmt::format("is {}; {} need the hash block of the probe, {} tokens",
                         *s_.prefix_match_unit, kCaching, *s_.evidence->hash_block_tokens));
    }
    if (!s_.vllm_version) {
      refuse("vllm_version", fmt::format("is missing; {} differ by version; supported: {}",
                                         kCaching, supported_versions()));
    }
    if (!s_.max_model_len) {
      refuse("max_model_len",
             fmt::format("is missing; {} must hold one request of that length", kCaching));
    }
  }

  void check_checkpoints(const GroupedVersion& version) {
    for (std::size_t i = 0; i < s_.groups.size(); ++i) {
      const KvGroup& group = s_.groups[i];
      if (group.kind != GroupKind::State) continue;
      const std::optional<std::uint32_t>& blocks = group.prefill_checkpoint_blocks;
      if (version.prefill_checkpoints && !blocks) {
        refuse(field(i, "prefill_checkpoint_blocks"),
               fmt::format("is missing; {} in vLLM {} need it for every state group, 0 or more",
                           kCaching, version.name));
      }
      if (!version.prefill_checkpoints && blocks.value_or(0) > 0) {
        refuse(field(i, "prefill_checkpoint_blocks"),
               fmt::format("is {}; {} in vLLM {} have no prefill checkpoints, it must be 0",
                           *blocks, kCaching, version.name));
      }
    }
  }

  void check_blocks() {
    rules_.clear();
    for (const KvGroup& group : s_.groups) {
      rules_.push_back(group_rule(group, *s_.max_model_len, s_.max_num_batched_tokens));
    }
    std::optional<std::size_t> state;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (!rules_[i].is_cacheable()) continue;
      if (rules_[i].block % *s_.prefix_match_unit != 0) {
        refuse(field(i, "block_size_tokens"),
               fmt::format("is {}; {} need a multiple of prefix_match_unit, {}", rules_[i].block,
                           kCaching, *s_.prefix_match_unit));
      }
      if (rules_[i].kind != RuleKind::State) continue;
      // A prefill is split at the blocks of the state, and one split serves all groups.
      if (state && rules_[i].block != rules_[*state].block) {
        refuse(field(i, "block_size_tokens"),
               fmt::format("is {}, that of groups[{}] {}; {} need one block size for all state "
                           "groups",
                           rules_[i].block, *state, rules_[*state].block, kCaching));
      }
      if (!state) state = i;
    }
    if (!result_.refusals.empty()) return;
    const HitAlignment alignment = hit_alignment(rules_, *s_.prefix_match_unit);
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (rules_[i].kind != RuleKind::ChunkedLocal || rules_[i].block == alignment.tokens) continue;
      refuse(field(i, "block_size_tokens"),
             fmt::format("is {}; {} need a chunked-local group's block to be the hit alignment of "
                         "all groups, {}",
                         rules_[i].block, kCaching, alignment.tokens));
    }
  }

  void check_ring_grid() {
    const bool ring = std::any_of(rules_.begin(), rules_.end(), [](const GroupRule& rule) {
      return rule.kind == RuleKind::Ring;
    });
    if (!ring) return;
    const auto on_grid = [&](std::string_view name, std::uint32_t value) {
      if (value % kRingGridTokens == 0) return;
      refuse(std::string(name), fmt::format("is {}; {} with a ring buffer need a multiple of {}",
                                            value, kCaching, kRingGridTokens));
    };
    on_grid("prefix_match_unit", *s_.prefix_match_unit);
    on_grid("max_num_batched_tokens", s_.max_num_batched_tokens);
  }

  void check_capacity() {
    const std::uint64_t page = s_.groups.front().page_size_bytes;
    const std::uint64_t blocks = s_.capacity_bytes / page;
    const std::uint64_t needed = startup_blocks(rules_);
    if (blocks < needed) {
      refuse("capacity.bytes",
             fmt::format("is {}, which gives {} blocks of {} bytes; {} need {} blocks for one "
                         "request of max_model_len {}",
                         s_.capacity_bytes, blocks, page, kCaching, needed, *s_.max_model_len),
             "add cache memory or lower max_model_len");
    } else if (blocks > kGroupedBlocksMax) {
      refuse("capacity.bytes",
             fmt::format("is {}, which gives {} blocks of {} bytes; a pool has at most {}",
                         s_.capacity_bytes, blocks, page, kGroupedBlocksMax));
    }
  }

  const GroupedSettings& s_;
  std::vector<GroupRule> rules_;
  GroupedGate result_;
};

}  // namespace

std::optional<std::string> unproven_prefix_caching(const std::optional<ProbeEvidence>& evidence) {
  if (!evidence) {
    return "no runtime probe shows that the deployment reuses prefixes of grouped caches";
  }
  if (!evidence->ran_with_prefix_caching) return "the runtime probe ran without prefix caching";
  if (!evidence->hash_block_tokens) return "the runtime probe recorded no hash block";
  return std::nullopt;
}

GroupedGate grouped_gate(const GroupedSettings& settings) {
  SERVECAST_CHECK(settings.max_num_batched_tokens > 0);
  SERVECAST_CHECK(settings.max_model_len != 0U && settings.prefix_match_unit != 0U);
  return Gate(settings).run();
}

}  // namespace servecast::cache
