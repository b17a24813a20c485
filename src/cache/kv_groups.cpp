// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_groups.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/check.hpp"
#include "base/int128.hpp"

namespace servecast::cache {
namespace {

// 0.32.1 as 32'001; what is no number counts as 0.
std::uint64_t version_number(std::string_view text) {
  constexpr std::uint64_t kPartMax = 999;
  std::uint64_t number = 0;
  for (int part = 0; part < 3; ++part) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    number = number * (kPartMax + 1) + std::min(error == std::errc() ? value : 0, kPartMax);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return number;
}

RuleKind rule_kind(const KvGroup& group) {
  if (!group.prefix_cacheable.value_or(false)) return RuleKind::Ring;
  if (group.kind == GroupKind::State) return RuleKind::State;
  SERVECAST_CHECK(group.kind == GroupKind::Attention);
  if (group.attention_chunk) return RuleKind::ChunkedLocal;
  return group.sliding_window ? RuleKind::Window : RuleKind::Full;
}

std::vector<std::vector<std::uint32_t>> lookups(std::span<const GroupRule> rules) {
  std::vector<std::vector<std::uint32_t>> found;
  const auto add = [&](std::uint32_t group) {
    for (std::vector<std::uint32_t>& members : found) {
      if (!rules[members.front()].looks_like(rules[group])) continue;
      members.push_back(group);
      return;
    }
    found.push_back({group});
  };
  const auto count = static_cast<std::uint32_t>(rules.size());
  for (std::uint32_t group = 0; group < count; ++group) {
    if (rules[group].kind == RuleKind::Full) add(group);
  }
  for (std::uint32_t group = 0; group < count; ++group) {
    if (rules[group].is_cacheable() && rules[group].kind != RuleKind::Full) add(group);
  }
  return found;
}

}  // namespace

const GroupedVersion* find_grouped_version(std::string_view name) {
  for (const GroupedVersion& version : kGroupedVersions) {
    if (version.name == name) return &version;
  }
  return nullptr;
}

const GroupedVersion& nearest_grouped_version(std::string_view name) {
  const std::uint64_t wanted = version_number(name);
  const auto distance = [&](const GroupedVersion& version) {
    const std::uint64_t number = version_number(version.name);
    return number > wanted ? number - wanted : wanted - number;
  };
  return *std::min_element(
      kGroupedVersions.begin(), kGroupedVersions.end(),
      [&](const GroupedVersion& a, const GroupedVersion& b) { return distance(a) < distance(b); });
}

std::uint64_t GroupRule::skipped_tokens(std::uint64_t computed) const {
  switch (kind) {
    case RuleKind::Window:
      return computed + 1 - std::min<std::uint64_t>(computed + 1, span);
    case RuleKind::ChunkedLocal:
      return floor_to(computed, span);
    case RuleKind::State:
      return computed - std::min<std::uint64_t>(computed, 1);
    case RuleKind::Full:
    case RuleKind::Ring:
      return 0;
  }
  return 0;
}

std::uint64_t GroupRule::computed_until_skipped(std::uint64_t tokens) const {
  switch (kind) {
    case RuleKind::Window:
      return tokens + span - 1;
    case RuleKind::ChunkedLocal:
      return div_ceil(tokens, span) * span;
    case RuleKind::State:
      return tokens + 1;
    case RuleKind::Full:
    case RuleKind::Ring:
      return UINT32_MAX;
  }
  return UINT32_MAX;
}

GroupRule group_rule(const KvGroup& group, std::uint32_t max_model_len,
                     std::uint32_t max_tokens_in_flight) {
  GroupRule rule{.kind = rule_kind(group), .block = group.block_size_tokens};
  const auto blocks_of = [&](std::uint64_t tokens) {
    return div_ceil(std::min<std::uint64_t>(tokens, max_model_len), rule.block);
  };
  switch (rule.kind) {
    case RuleKind::Full:
      rule.startup_blocks = blocks_of(max_model_len);
      break;
    case RuleKind::Window:
      rule.span = *group.sliding_window;
      // One more, since the window need not begin with a block.
      rule.startup_blocks = blocks_of(std::uint64_t{rule.span} - 1 + max_tokens_in_flight) + 1;
      rule.cap = rule.startup_blocks;
      break;
    case RuleKind::ChunkedLocal:
      rule.span = *group.attention_chunk;
      rule.startup_blocks = blocks_of(std::uint64_t{rule.span} + max_tokens_in_flight);
      rule.cap = rule.startup_blocks;
      break;
    case RuleKind::State:
      rule.checkpoint_blocks = group.prefill_checkpoint_blocks.value_or(0);
      rule.startup_blocks = 2 + std::uint64_t{rule.checkpoint_blocks};  // one is read, one written
      break;
    case RuleKind::Ring:
      rule.startup_blocks = 1;
      rule.cap = 1;
      break;
  }
  return rule;
}

HitAlignment hit_alignment(std::span<const GroupRule> rules, std::uint32_t unit) {
  bool wide_state = false, all_fine = true;
  std::uint64_t common = 1;
  for (const GroupRule& rule : rules) {
    if (!rule.is_cacheable()) continue;
    wide_state |= rule.kind == RuleKind::State && rule.block > unit;
    all_fine &= rule.kind == RuleKind::Full || rule.kind == RuleKind::State || rule.block == unit;
    // Blocks without a common multiple that a prompt could reach: no prefix is ever reused.
    const UInt128 multiple = UInt128{common / std::gcd(common, rule.block)} * rule.block;
    common = static_cast<std::uint64_t>(std::min<UInt128>(multiple, std::uint64_t{1} << 62));
  }
  if (wide_state && all_fine) return {.tokens = unit, .fine_grained = true};
  return {.tokens = common, .fine_grained = false};
}

std::uint64_t startup_blocks(std::span<const GroupRule> rules) {
  std::uint64_t blocks = 0;
  for (const GroupRule& rule : rules) blocks += rule.startup_blocks;
  return blocks;
}

GroupedRules grouped_rules(const GroupedSettings& settings) {
  SERVECAST_CHECK(!settings.groups.empty() && settings.prefix_match_unit && settings.max_model_len);
  GroupedRules rules;
  rules.prefill_checkpoints = true;
  for (const KvGroup& group : settings.groups) {
    rules.groups.push_back(
        group_rule(group, *settings.max_model_len, settings.max_num_batched_tokens));
    const GroupRule& rule = rules.groups.back();
    if (rule.kind != RuleKind::State) continue;
    rules.state_block = rule.block;
    // A group without the block would lose the state at which the others do not stop.
    rules.prefill_checkpoints &= rule.checkpoint_blocks > 0;
  }
  rules.prefill_checkpoints &= rules.state_block > 0;
  rules.lookups = lookups(rules.groups);
  rules.unit = *settings.prefix_match_unit;
  rules.alignment = hit_alignment(rules.groups, rules.unit);
  rules.max_batched_tokens = settings.max_num_batched_tokens;
  rules.page_bytes = settings.groups.front().page_size_bytes;
  rules.capacity_bytes = settings.capacity_bytes;
  const std::uint64_t blocks = settings.capacity_bytes / rules.page_bytes;
  SERVECAST_CHECK(blocks >= startup_blocks(rules.groups) && blocks <= kGroupedBlocksMax);
  rules.blocks = static_cast<std::uint32_t>(blocks);
  rules.key_output_blocks = settings.key_output_blocks;
  return rules;
}

}  // namespace servecast::cache
