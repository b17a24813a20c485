// SPDX-License-Identifier: Apache-2.0
// What a step leaves for others to find (engine-vllm.md 10.7, "Caching at finalisation").
#include <algorithm>

#include "base/check.hpp"
#include "cache/grouped_blocks.hpp"

namespace servecast::cache {

bool GroupedBlocks::is_of_this_step(BlockIndex block) const {
  return block < published_.size() && published_[block] == step_;
}

void GroupedBlocks::note_step(BlockIndex block) {
  if (block >= published_.size()) published_.resize(block + std::size_t{1});
  published_[block] = step_;
}

void GroupedBlocks::publish(BlockIndex block, std::uint32_t group, std::uint64_t boundary,
                            const KnownTokens& tokens) {
  SERVECAST_CHECK(boundary > 0 && boundary % rules_.unit == 0);
  SERVECAST_CHECK(boundary / rules_.unit <= tokens.hashes.size());
  const GroupKey key{.hash = tokens.hashes[boundary / rules_.unit - 1], .group = group};
  const bool is_new = keeps_changes_ && pool_.find(key) == kNoBlock;
  if (!pool_.add_key(block, key)) return;
  note_step(block);
  if (is_new) new_keys_.push_back({group, boundary});
}

void GroupedBlocks::key_blocks(GroupedLease& lease, const KnownTokens& tokens,
                               const GroupedStep& step) {
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    switch (rules_.groups[g].kind) {
      case RuleKind::Full:
      case RuleKind::Window:
      case RuleKind::ChunkedLocal:
        key_attention(lease.tables[g], g, tokens, step);
        break;
      case RuleKind::State:
        key_state(lease, g, tokens, step);
        break;
      case RuleKind::Ring:
        break;
    }
  }
}

// Full blocks, as far as a hit can end. A prompt that ends inside a block also leaves its last unit
// boundary, where hits may: its block goes on being written, behind what others read.
void GroupedBlocks::key_attention(Table& table, std::uint32_t group, const KnownTokens& tokens,
                                  const GroupedStep& step) {
  const GroupRule& rule = rules_.groups[group];
  std::uint64_t end = rules_.key_output_blocks ? step.end : std::min(step.end, step.prompt);
  if (!rules_.alignment.fine_grained) end = floor_to(end, rules_.alignment.tokens);
  const auto full = static_cast<std::uint32_t>(end / rule.block);
  for (std::uint32_t i = table.keyed; i < full; ++i) {
    if (table.blocks[i] == kNoBlock || !retained(rule, i, step)) continue;
    publish(table.blocks[i], group, (i + std::uint64_t{1}) * rule.block, tokens);
  }
  table.keyed = std::max(table.keyed, full);

  if (!rules_.alignment.fine_grained || rule.kind != RuleKind::Full) return;
  const std::uint64_t tail = floor_to(step.prompt, rules_.unit);
  if (tail % rule.block == 0 || tail > step.end) return;
  publish(table.blocks[tail / rule.block], group, tail, tokens);
}

// Of a window only the blocks are kept that a hit at the end of the prompt, or of a prefix that is
// shared already, would read.
bool GroupedBlocks::retained(const GroupRule& rule, std::uint64_t position,
                             const GroupedStep& step) const {
  if (rule.kind != RuleKind::Window) return true;
  const std::uint64_t needed = div_ceil(rule.span - 1, rule.block);
  const auto reads = [&](std::uint64_t boundary) {
    const std::uint64_t end = floor_to(boundary, rules_.alignment.tokens) / rule.block;
    return position < end && position + needed >= end;
  };
  return reads(step.prompt - 1) || (step.junction && reads(*step.junction));
}

// The state at the end of the step, if that is the last boundary before the end of the prompt or
// the end of a shared prefix; or the one that the step leaves inside.
void GroupedBlocks::key_state(GroupedLease& lease, std::uint32_t group, const KnownTokens& tokens,
                              const GroupedStep& step) {
  const std::uint64_t block = rules_.groups[group].block;
  const std::vector<BlockIndex>& blocks = lease.tables[group].blocks;
  if (const auto checkpoint = prefill_checkpoint(rules_, step)) {
    publish(blocks[blocks.size() - 2], group, *checkpoint, tokens);
    return;
  }
  if (step.end % block != 0) {
    if (!rules_.alignment.fine_grained || step.end != floor_to(step.prompt, rules_.unit)) return;
    publish(blocks.back(), group, step.end, tokens);
    lease.tail_published = true;
    return;
  }
  const auto ends_at = [&](std::uint64_t boundary) {
    return step.end == floor_to(floor_to(boundary, rules_.alignment.tokens), block);
  };
  if (ends_at(step.prompt - 1) || (step.junction && ends_at(*step.junction))) {
    publish(blocks.back(), group, step.end, tokens);
  }
}

}  // namespace servecast::cache
