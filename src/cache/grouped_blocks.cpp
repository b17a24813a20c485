// SPDX-License-Identifier: Apache-2.0
// Blocks that a request takes, holds and gives back. What it needs: grouped_need.cpp; what others
// can find of it: grouped_keys.cpp.
#include "cache/grouped_blocks.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::cache {

std::uint32_t GroupedLease::blocks() const {
  std::uint32_t count = 0;
  for (const Table& table : tables) {
    for (const BlockIndex block : table.blocks) count += block == kNoBlock ? 0 : 1;
  }
  return count;
}

double GroupedUsage::active() const {
  return static_cast<double>(used_bytes) / static_cast<double>(capacity_bytes);
}

double GroupedUsage::physical() const {
  return static_cast<double>(used_bytes + cached_bytes) / static_cast<double>(capacity_bytes);
}

GroupedBlocks::GroupedBlocks(GroupedRules rules) : rules_(std::move(rules)), pool_(rules_.blocks) {}

GroupedUsage GroupedBlocks::usage() const {
  return {.used_bytes = pool_.held() * rules_.page_bytes,
          .cached_bytes = pool_.cached() * rules_.page_bytes,
          .capacity_bytes = rules_.capacity_bytes};
}

void GroupedBlocks::begin_step() {
  end_step();
  ++step_;
}

void GroupedBlocks::end_step() {
  for (const BlockIndex block : held_for_step_) pool_.release(block);
  held_for_step_.clear();
}

bool GroupedBlocks::look_up(GroupedLease& lease, const KnownTokens& tokens) const {
  SERVECAST_CHECK(!lease.admitted);
  if (lease.hit_stamp == pool_.mutations()) return false;
  lease.hit = find_hit(rules_, pool_, tokens);
  lease.hit_stamp = pool_.mutations();
  return true;
}

void GroupedBlocks::drop_hit(GroupedLease& lease) const {
  SERVECAST_CHECK(!lease.admitted);
  lease.hit = {};
  lease.hit_stamp = pool_.mutations();
}

GroupedStep GroupedBlocks::step_of(const GroupedLease& lease, const KnownTokens& tokens,
                                   std::uint32_t end) const {
  return {.start = start_of(lease),
          .end = end,
          .prompt = tokens.prompt,
          .known = tokens.known,
          .junction = lease.admitted ? lease.junction : lease.hit.junction};
}

std::uint32_t GroupedBlocks::next_tokens(const GroupedLease& lease, const KnownTokens& tokens,
                                         std::uint32_t budget) const {
  const std::uint32_t start = start_of(lease);
  SERVECAST_CHECK(start <= tokens.known);
  const std::uint32_t end = start + std::min(tokens.known - start, budget);
  if (end == start) return 0;
  return grouped_split(rules_, step_of(lease, tokens, end)) - start;
}

void GroupedBlocks::admit(GroupedLease& lease, const KnownTokens& tokens, std::uint32_t count) {
  SERVECAST_CHECK(!lease.admitted && lease.hit_stamp == pool_.mutations());
  SERVECAST_CHECK(count > 0 && count <= tokens.known - lease.hit.tokens);
  SERVECAST_CHECK(need(lease, tokens, count) <= available());
  const GroupedStep step = step_of(lease, tokens, lease.hit.tokens + count);
  lease.tables.assign(group_count(), {});
  take_hit(lease);  // of all groups, before a group may evict what another one hit
  copy_hit_tails(lease);
  lease.junction = lease.hit.junction;
  grow(lease, step);
  key_blocks(lease, tokens, step);
  lease.admitted = true;
  lease.computed = step.end;
  lease.hit = {};
  lease.hit_stamp.reset();
  note_quiet(lease);
}

void GroupedBlocks::take_hit(GroupedLease& lease) {
  if (lease.hit.tokens == 0) return;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupedHit::Part& part = lease.hit.parts[g];
    Table& table = lease.tables[g];
    table.first = part.positions - static_cast<std::uint32_t>(part.blocks.size());
    table.blocks.assign(table.first, kNoBlock);
    table.blocks.insert(table.blocks.end(), part.blocks.begin(), part.blocks.end());
    for (const BlockIndex block : part.blocks) pool_.hold(block);
    table.keyed = lease.hit.tokens / rules_.groups[g].block;  // they have their keys
  }
}

// Where the hit ends inside a block the request writes into a copy of its own. A state is read by
// the first step and never written. What is copied or read stays until the step ends.
void GroupedBlocks::copy_hit_tails(GroupedLease& lease) {
  if (lease.hit.tokens == 0) return;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    if (!rule.is_cacheable()) continue;
    const bool inside = lease.hit.tokens % rule.block != 0;
    if (!inside && rule.kind != RuleKind::State) continue;
    BlockIndex& tail = lease.tables[g].blocks.back();
    held_for_step_.push_back(tail);
    tail = inside ? pool_.take() : kNoBlock;
  }
}

bool GroupedBlocks::allocate(GroupedLease& lease, const KnownTokens& tokens, std::uint32_t count) {
  SERVECAST_CHECK(lease.admitted && count > 0 && count <= tokens.known - lease.computed);
  const GroupedStep step = step_of(lease, tokens, lease.computed + count);
  if (!fits(lease, step)) return false;
  give_back(lease);
  copy_published_tails(lease);
  grow(lease, step);
  key_blocks(lease, tokens, step);
  lease.computed = step.end;
  note_quiet(lease);
  return true;
}

// A step needs the pool when it opens a block or fills one, when something it does not read any
// more goes, or when it would change a state that others can find.
void GroupedBlocks::note_quiet(GroupedLease& lease) const {
  lease.quiet_until = 0;
  if (lease.tail_published) return;
  std::uint64_t until = UINT32_MAX;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    if (rule.kind == RuleKind::Ring) continue;
    const Table& table = lease.tables[g];
    const std::uint64_t gone = rule.skipped_tokens(lease.computed) / rule.block;
    if (gone > table.first) return;
    until = std::min({until, table.blocks.size() * std::uint64_t{rule.block} - 1,
                      rule.computed_until_skipped((gone + 1) * rule.block)});
  }
  if (until > lease.computed) lease.quiet_until = static_cast<std::uint32_t>(until);
}

// Positions that hold what no later token reads: those before the window, finished chunks, all
// states but the last.
void GroupedBlocks::give_back(GroupedLease& lease) {
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    const GroupRule& rule = rules_.groups[g];
    Table& table = lease.tables[g];
    const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        rule.skipped_tokens(lease.computed) / rule.block, table.blocks.size()));
    for (std::uint32_t i = end; i > table.first; --i) {
      BlockIndex& block = table.blocks[i - 1];
      if (block == kNoBlock) continue;
      pool_.release(block);
      block = kNoBlock;
    }
    table.first = std::max(table.first, end);
  }
}

// The next write would change a state that others can find: they get a copy, which is complete when
// the step ends, and the request goes on in its own block.
void GroupedBlocks::copy_published_tails(GroupedLease& lease) {
  if (!lease.tail_published) return;
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    if (rules_.groups[g].kind != RuleKind::State) continue;
    const BlockIndex own = lease.tables[g].blocks.back();
    const BlockIndex copy = pool_.take();
    pool_.move_keys(own, copy);
    note_step(copy);
    held_for_step_.push_back(copy);
  }
  lease.tail_published = false;
}

GroupedBlocks::Growth GroupedBlocks::growth(const GroupRule& rule, std::uint64_t positions,
                                            const GroupedStep& step) const {
  if (rule.kind == RuleKind::Ring) return {.first = positions, .end = 1};
  const std::uint64_t end = div_ceil(step.end, rule.block);
  if (rule.kind != RuleKind::State) return {.first = positions, .end = end};
  // States between are not kept, their positions stay empty.
  const std::uint64_t kept = prefill_checkpoint(rules_, step) ? 2 : 1;
  return {.first = std::max(positions, end - kept), .end = end};
}

void GroupedBlocks::grow(GroupedLease& lease, const GroupedStep& step) {
  for (std::uint32_t g = 0; g < group_count(); ++g) {
    std::vector<BlockIndex>& blocks = lease.tables[g].blocks;
    const Growth filled = growth(rules_.groups[g], blocks.size(), step);
    blocks.resize(filled.first, kNoBlock);
    while (blocks.size() < filled.end) blocks.push_back(pool_.take());
  }
}

void GroupedBlocks::release(GroupedLease& lease) {
  for (Table& table : lease.tables) {
    for (std::size_t i = table.blocks.size(); i > table.first; --i) {
      if (table.blocks[i - 1] != kNoBlock) pool_.release(table.blocks[i - 1]);
    }
  }
  lease = {};
}

void GroupedBlocks::preempt(GroupedLease& lease) {
  for (const Table& table : lease.tables) {
    for (std::size_t i = table.first; i < table.blocks.size(); ++i) {
      const BlockIndex block = table.blocks[i];
      if (block == kNoBlock || !is_of_this_step(block)) continue;
      if (pool_.references(block) == 1) pool_.drop_keys(block);
    }
  }
  release(lease);
}

void GroupedBlocks::verify(std::span<const GroupedLease* const> leases) const {
  pool_.verify();
  std::vector<std::uint32_t> references(published_.size());
  const auto count = [&](BlockIndex block) {
    if (block >= references.size()) references.resize(block + std::size_t{1});
    ++references[block];
  };
  for (const BlockIndex block : held_for_step_) count(block);
  for (const GroupedLease* lease : leases) {
    SERVECAST_CHECK(lease->admitted && lease->tables.size() == rules_.groups.size());
    for (std::uint32_t g = 0; g < group_count(); ++g) {
      const GroupRule& rule = rules_.groups[g];
      const Table& table = lease->tables[g];
      const bool ring = rule.kind == RuleKind::Ring;
      SERVECAST_CHECK(table.blocks.size() == (ring ? 1 : div_ceil(lease->computed, rule.block)));
      SERVECAST_CHECK(table.blocks.back() != kNoBlock);
      for (std::size_t i = 0; i < table.blocks.size(); ++i) {
        SERVECAST_CHECK(i >= table.first || table.blocks[i] == kNoBlock);
        if (table.blocks[i] != kNoBlock) count(table.blocks[i]);
      }
    }
  }
  std::uint32_t held = 0;
  for (BlockIndex block = 0; block < references.size(); ++block) {
    if (references[block] == 0) continue;
    ++held;
    SERVECAST_CHECK(pool_.references(block) == references[block]);
  }
  SERVECAST_CHECK(held == pool_.held());
}

}  // namespace servecast::cache
