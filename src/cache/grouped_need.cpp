// SPDX-License-Identifier: Apache-2.0
// How many blocks a request needs before it may go on (engine-vllm.md 10.6). The numbers are vLLM's
// estimates; where they exceed what is taken in the end they still decide who waits.
#include <algorithm>

#include "base/check.hpp"
#include "cache/grouped_blocks.hpp"

namespace servecast::cache {

std::uint64_t GroupedBlocks::cold_need(const KnownTokens& tokens) const {
  const GroupedStep all{.end = tokens.known, .prompt = tokens.prompt, .known = tokens.known};
  return waiting_need({}, all, Caps::Apply);
}

std::uint64_t GroupedBlocks::full_need(const GroupedLease& lease, const KnownTokens& tokens) const {
  SERVECAST_CHECK(!lease.admitted && lease.hit_stamp == pool_.mutations());
  return waiting_need(lease.hit, step_of(lease, tokens, tokens.known), Caps::Apply);
}

std::uint64_t GroupedBlocks::need(const GroupedLease& lease, const KnownTokens& tokens,
                                  std::uint32_t count) const {
  const GroupedStep step = step_of(lease, tokens, start_of(lease) + count);
  if (lease.admitted) return running_need(lease, step);
  SERVECAST_CHECK(lease.hit_stamp == pool_.mutations());
  return waiting_need(lease.hit, step, Caps::Ignore);
}

std::uint64_t GroupedBlocks::waiting_need(const GroupedHit& hit, const GroupedStep& step,
                                          Caps caps) const {
  if (waits_for_state(hit)) return std::uint64_t{capacity()} + 1;
  const GroupedHit::Part nothing = {};
  std::uint64_t blocks = 0;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupedHit::Part& part = hit.parts.empty() ? nothing : hit.parts[g];
    blocks += part_need(rules_.groups[g], part, step, caps);
  }
  return blocks;
}

// A state that a request of this step leaves is there when the step has run.
bool GroupedBlocks::waits_for_state(const GroupedHit& hit) const {
  for (std::uint32_t g = 0; g < hit.parts.size(); ++g) {
    if (rules_.groups[g].kind != RuleKind::State) continue;
    if (is_of_this_step(hit.parts[g].blocks.back())) return true;
  }
  return false;
}

std::uint64_t GroupedBlocks::part_need(const GroupRule& rule, const GroupedHit::Part& part,
                                       const GroupedStep& step, Caps caps) const {
  std::uint64_t required = div_ceil(step.end, rule.block);
  if (rule.kind == RuleKind::Ring) return 1;
  if (caps == Caps::Apply && rule.cap) required = std::min(required, *rule.cap);
  std::uint64_t fresh = required - std::min<std::uint64_t>(required, part.positions);
  // Hit blocks that nobody holds are available until this request takes them.
  std::uint64_t evictable = 0;
  for (const BlockIndex block : part.blocks) evictable += pool_.is_held(block) ? 0 : 1;
  const bool copies = !part.blocks.empty() && step.start % rule.block != 0;
  if (rule.kind == RuleKind::State) {
    if (fresh > 0 || copies) {
      fresh = 1 + (copies ? 1 : 0) + (prefill_checkpoint(rules_, step) ? 1 : 0);
    }
  } else if (copies) {
    ++fresh;
  }
  return fresh + evictable;
}

std::uint64_t GroupedBlocks::running_need(const GroupedLease& lease,
                                          const GroupedStep& step) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    if (rule.kind == RuleKind::Ring) continue;  // it owns its block since it was admitted
    const std::uint64_t required = div_ceil(step.end, rule.block);
    std::uint64_t fresh =
        required - std::min<std::uint64_t>(required, lease.tables[g].blocks.size());
    if (rule.kind == RuleKind::State) {
      const std::uint64_t copies = lease.tail_published ? 1 : 0;
      fresh += copies;
      // With a checkpoint every position up to the end is counted, empty ones too.
      if (fresh > 0 && !prefill_checkpoint(rules_, step)) fresh = 1 + copies;
    }
    blocks += fresh;
  }
  return blocks;
}

// What allocate() takes, to the block.
std::uint64_t GroupedBlocks::taken(const GroupedLease& lease, const GroupedStep& step) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    const Growth filled = growth(rule, lease.tables[g].blocks.size(), step);
    blocks += filled.end - std::min(filled.end, filled.first);
    blocks += rule.kind == RuleKind::State && lease.tail_published ? 1 : 0;
  }
  return blocks;
}

bool GroupedBlocks::fits(const GroupedLease& lease, const GroupedStep& step) const {
  const std::uint64_t room = std::uint64_t{available()} + given_back(lease);
  if (running_need(lease, step) <= room) return true;
  const bool alone = pool_.held() == lease.blocks() + held_for_step_.size();
  return alone && taken(lease, step) <= room;
}

bool GroupedBlocks::fits_alone(const GroupedLease& lease, const KnownTokens& tokens,
                               std::uint32_t count) const {
  // Nearly always it fits by this bound, which looks at no block.
  std::uint64_t at_most = taken(lease, step_of(lease, tokens, lease.computed + count));
  for (const Table& table : lease.tables) at_most += table.blocks.size() - table.first;
  return at_most <= capacity() || need_alone(lease, tokens, count) <= capacity();
}

std::uint64_t GroupedBlocks::need_alone(const GroupedLease& lease, const KnownTokens& tokens,
                                        std::uint32_t count) const {
  std::uint64_t blocks = taken(lease, step_of(lease, tokens, lease.computed + count));
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    const Table& table = lease.tables[g];
    for (std::uint64_t i = rule.skipped_tokens(lease.computed) / rule.block;
         i < table.blocks.size(); ++i)
      blocks += table.blocks[i] == kNoBlock ? 0 : 1;
  }
  return blocks;
}

// Blocks that allocate() would make available before it takes any.
std::uint32_t GroupedBlocks::given_back(const GroupedLease& lease) const {
  std::uint32_t count = 0;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    const Table& table = lease.tables[g];
    const std::uint64_t end = std::min<std::uint64_t>(
        rule.skipped_tokens(lease.computed) / rule.block, table.blocks.size());
    for (std::uint64_t i = table.first; i < end; ++i) {
      const BlockIndex block = table.blocks[i];
      count += block != kNoBlock && pool_.references(block) == 1 ? 1 : 0;
    }
  }
  return count;
}

}  // namespace servecast::cache
