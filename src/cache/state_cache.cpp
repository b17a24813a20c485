// SPDX-License-Identifier: Apache-2.0
#include "cache/state_cache.hpp"

#include <algorithm>
#include <ranges>

#include "base/check.hpp"

namespace servecast::cache {

StateCache::StateCache(const StateCacheConfig& config)
    : rule_(config.align),
      state_blocks_(config.state_blocks),
      prefix_caching_(config.prefix_caching),
      pool_(config.capacity) {
  SERVECAST_CHECK(rule_.block_tokens > 0 && state_blocks_ > 0 && config.capacity > state_blocks_);
  SERVECAST_CHECK(rule_.match_unit == 0 || rule_.block_tokens % rule_.match_unit == 0);
  // A working state for each page is there to be kept; without caching vLLM keeps one state.
  if (!prefix_caching_) rule_.match_unit = 0;
}

void StateCache::begin_step() {
  for (const Hold& hold : holds_) pool_.release(hold.block);
  holds_.clear();
  step_serial_ = next_serial_;
  ++step_;
}

// Of copies of one slot the primary is the oldest publication, so if that one is of this step, all
// are.
bool StateCache::is_restorable(std::uint64_t prefix) const {
  for (std::uint32_t slot = 0; slot < state_blocks_; ++slot) {
    const BlockIndex block = pool_.find_state(prefix, slot);
    if (block == kNoBlock || of_this_step(*pool_.key(block, KeyKind::State))) return false;
  }
  return true;
}

StateHit StateCache::look_up(const Query& query) const {
  StateHit hit;
  if (!prefix_caching_) return hit;
  const std::uint32_t page_units = rule_.block_tokens / unit();
  const auto limit =
      static_cast<std::uint32_t>(std::min<std::size_t>(query.hashes.size(), query.known / unit()));

  // Tokens first: full pages from the first on, then the longest published tail of the next page.
  std::uint32_t units = 0;
  for (; units + page_units <= limit; units += page_units) {
    const BlockIndex page = pool_.find_page(query.hashes[units + page_units - 1]);
    if (page == kNoBlock) break;
    hit.pages.push_back(page);
  }
  const auto full = static_cast<std::uint32_t>(hit.pages.size());
  BlockIndex tail = kNoBlock;
  for (std::uint32_t end = std::min(limit, units + page_units - 1); end > units; --end) {
    tail = pool_.find_page(query.hashes[end - 1]);
    if (tail == kNoBlock) continue;
    units = end;
    break;
  }
  if (query.needs_logits)
    units = std::min(units, (query.known - std::min(query.known, 1U)) / unit());
  if (query.needs_logits && query.drafter && units > 0) --units;

  // Then the last state in them. The drop for a drafter is not made again here (9.2). The page that
  // covers the end is shared whether or not it has a tail key there: its tokens are the same.
  while (units > 0 && !is_restorable(query.hashes[units - 1])) --units;
  if (units == 0) return {};
  hit.tokens = units * unit();
  hit.removals = pool_.removals();
  if (units % page_units != 0) {
    const std::uint32_t page = units / page_units;
    hit.shared_page = page < full ? hit.pages[page] : tail;
  }
  hit.pages.resize(units / page_units);
  for (std::uint32_t slot = 0; slot < state_blocks_; ++slot) {
    hit.state.push_back(pool_.find_state(query.hashes[units - 1], slot));
  }
  return hit;
}

bool StateCache::accepts(std::uint32_t known) const {
  return known > 0 && std::uint64_t{pages_for(known)} + state_blocks_ <= pool_.capacity();
}

std::uint64_t StateCache::peak(std::uint32_t known, const StateHit& hit) const {
  return std::uint64_t{pages_for(known)} + state_blocks_ + hit.state.size() +
         (hit.shared_page == kNoBlock ? 0 : 1);
}

std::uint32_t StateCache::active_in(const StateHit& hit) const {
  const auto active = [&](BlockIndex block) { return pool_.is_active(block); };
  auto count = std::ranges::count_if(hit.pages, active) + std::ranges::count_if(hit.state, active);
  if (hit.shared_page != kNoBlock && active(hit.shared_page)) ++count;
  return static_cast<std::uint32_t>(count);
}

std::uint64_t StateCache::need(std::uint32_t known, const StateHit& hit) const {
  return peak(known, hit) - active_in(hit);
}

bool StateCache::admit(StateLease& lease, const StateHit& hit, std::uint32_t target) {
  SERVECAST_CHECK(lease.empty() && target > 0 && target >= hit.tokens);
  SERVECAST_CHECK(hit.tokens == 0 || hit.removals == pool_.removals());
  // Inactive blocks of the hit cannot make room; what the hit needs to become active is in peak().
  if (need(target, hit) > pool_.room()) return false;

  lease.id = ++last_lease_;
  lease.computed = hit.tokens;
  for (const BlockIndex page : hit.pages) pool_.reference(page);
  for (const BlockIndex block : hit.state) pool_.reference(block);
  if (hit.shared_page != kNoBlock) {
    pool_.reference(hit.shared_page);
    hold(lease, hit.state);
    holds_.push_back({lease.id, hit.shared_page});
  } else {
    lease.previous = hit.state;
    lease.previous_step = step_;
  }
  lease.pages = hit.pages;
  while (lease.pages.size() < pages_for(target)) lease.pages.push_back(pool_.take());
  take_state(lease.working);
  lease.slot = slot_of(target);
  return true;
}

bool StateCache::is_published(const StateLease& lease) const {
  return pool_.key(lease.working.front(), KeyKind::State) != nullptr;
}

// A write must not change a snapshot, and in align mode each page has a state of its own.
bool StateCache::moves_to_new_state(const StateLease& lease, std::uint32_t target) const {
  return is_published(lease) || (rule_.match_unit > 0 && slot_of(target) != lease.slot);
}

bool StateCache::allocate(StateLease& lease, std::uint32_t target) {
  SERVECAST_CHECK(!lease.empty());
  if (target <= lease.computed) return true;
  if (!extend(lease, target, moves_to_new_state(lease, target))) return false;
  lease.slot = slot_of(target);
  return true;
}

std::uint64_t StateCache::compute_need(const StateLease& lease, std::uint32_t target) const {
  const bool writes = target > lease.computed;
  return held_alone(lease, target, writes && moves_to_new_state(lease, target));
}

bool StateCache::can_compute(const StateLease& lease, std::uint32_t target) const {
  return target <= lease.computed || compute_need(lease, target) <= pool_.capacity();
}

std::uint64_t StateCache::fresh_blocks(const StateLease& lease, std::uint64_t tokens,
                                       bool new_state) const {
  const std::uint64_t pages = std::max<std::uint64_t>(pages_for(tokens), lease.pages.size());
  return pages - lease.pages.size() + (new_state ? state_blocks_ : 0);
}

// Sources of an earlier step are dead by then; what this step has read already still counts.
std::uint64_t StateCache::held_alone(const StateLease& lease, std::uint64_t tokens,
                                     bool new_state) const {
  std::uint64_t blocks =
      lease.pages.size() + lease.working.size() + fresh_blocks(lease, tokens, new_state);
  if (lease.previous_step == step_) blocks += lease.previous.size();
  for (const Hold& hold : holds_) blocks += hold.lease == lease.id ? 1 : 0;
  return blocks;
}

bool StateCache::extend(StateLease& lease, std::uint64_t tokens, bool new_state) {
  const bool previous_is_dead = lease.previous_step != step_;
  std::uint64_t room = pool_.room();
  if (previous_is_dead) {
    room += static_cast<std::uint64_t>(std::ranges::count_if(
        lease.previous, [&](BlockIndex block) { return pool_.references(block) == 1; }));
  }
  const std::uint64_t fresh = fresh_blocks(lease, tokens, new_state);
  if (fresh > room) return false;

  if (previous_is_dead) release_state(lease.previous);
  while (lease.pages.size() < pages_for(tokens)) lease.pages.push_back(pool_.take());
  if (!new_state) return true;
  // The state that was written last is read by this write. In align mode it was another page's and
  // stays until the next allocation; a snapshot of this very page, and any in default mode, is
  // what a copy is taken of: it is held for the step. (That the cached identity moves to the copy
  // and not the other way round makes no difference to blocks that are all alike.)
  const bool other_page =
      rule_.match_unit > 0 && slot_of(static_cast<std::uint32_t>(tokens)) != lease.slot;
  if (other_page) {
    lease.previous.insert(lease.previous.end(), lease.working.begin(), lease.working.end());
    lease.previous_step = step_;
  } else {
    hold(lease, lease.working);
  }
  lease.working.clear();
  take_state(lease.working);
  return true;
}

std::span<const std::uint32_t> StateCache::finalise(StateLease& lease, const Progress& progress) {
  const std::uint32_t before = lease.computed, after = progress.after;
  SERVECAST_CHECK(before <= after && pages_for(after) <= lease.pages.size());
  lease.computed = after;
  visible_.clear();
  if (!prefix_caching_ || before == after) return visible_;
  SERVECAST_CHECK(after / unit() <= progress.hashes.size());
  const auto hash_at = [&](std::uint32_t tokens) { return progress.hashes[tokens / unit() - 1]; };

  const std::uint32_t full = after / rule_.block_tokens;
  for (std::uint32_t page = before / rule_.block_tokens; page < full; ++page) {
    const std::uint64_t prefix = hash_at((page + 1) * rule_.block_tokens);
    if (pool_.publish(lease.pages[page], {.kind = KeyKind::Page, .hash = prefix})) {
      visible_.push_back(page);
    }
  }
  if (rule_.match_unit == 0) {
    if (after % rule_.block_tokens != 0) return visible_;
    publish_state(lease, hash_at(after));
  } else if (keeps_state(rule_, {before, progress.prompt, progress.known, after - before})) {
    publish_state(lease, hash_at(after));
    if (after % rule_.block_tokens != 0) {
      pool_.publish(lease.pages[full], {.kind = KeyKind::Tail, .hash = hash_at(after)});
    }
  }
  return visible_;
}

// The snapshot is the working state itself: it takes no block until the next write.
void StateCache::publish_state(StateLease& lease, std::uint64_t prefix) {
  const std::uint64_t serial = next_serial_++;
  for (std::uint32_t slot = 0; slot < state_blocks_; ++slot) {
    pool_.publish(lease.working[slot],
                  {.kind = KeyKind::State, .slot = slot, .hash = prefix, .serial = serial});
  }
  if (rule_.match_unit > 0) return;  // both replay points of a prompt stay
  discard_checkpoint(lease);
  lease.checkpoint = lease.working;
  lease.checkpoint_serial = serial;
}

// Only an inactive one goes: the copy of a snapshot that the step before published is still held
// when chunks end on full pages step after step, and then it stays as cache.
void StateCache::discard_checkpoint(StateLease& lease) {
  std::erase_if(lease.checkpoint, [&](BlockIndex block) {  // evicted
    const BlockKey* key = pool_.key(block, KeyKind::State);
    return key == nullptr || key->serial != lease.checkpoint_serial;
  });
  const auto active = [&](BlockIndex block) { return pool_.is_active(block); };
  if (std::ranges::any_of(lease.checkpoint, active)) return;
  for (const BlockIndex block : lease.checkpoint) pool_.withdraw(block, KeyKind::State);
}

std::uint32_t StateCache::burst_need(const StateLease& lease, std::uint32_t burst) const {
  SERVECAST_CHECK(rule_.match_unit == 0 && burst > 0);
  const std::uint64_t tokens = std::uint64_t{lease.computed} + burst;
  return static_cast<std::uint32_t>(fresh_blocks(lease, tokens, burst >= 2 && is_published(lease)));
}

bool StateCache::can_burst(const StateLease& lease, std::uint32_t burst) const {
  return held_alone(lease, std::uint64_t{lease.computed} + burst,
                    burst >= 2 && is_published(lease)) <= pool_.capacity();
}

bool StateCache::reserve_burst(StateLease& lease, std::uint32_t burst) {
  SERVECAST_CHECK(rule_.match_unit == 0 && burst > 0);
  return extend(lease, std::uint64_t{lease.computed} + burst, burst >= 2 && is_published(lease));
}

void StateCache::trim(StateLease& lease, std::uint32_t known) {
  SERVECAST_CHECK(known >= lease.computed);
  while (lease.pages.size() > pages_for(known)) {
    pool_.release(lease.pages.back());
    lease.pages.pop_back();
  }
}

void StateCache::release(StateLease& lease) {
  if (lease.empty()) return;
  release_state(lease.working);
  release_state(lease.previous);
  const auto is_own = [&](const Hold& hold) { return hold.lease == lease.id; };
  for (const Hold& hold : holds_) {
    if (is_own(hold)) pool_.release(hold.block);
  }
  std::erase_if(holds_, is_own);
  for (const BlockIndex page : std::views::reverse(lease.pages)) pool_.release(page);
  lease = {};
}

void StateCache::preempt(StateLease& lease) {
  for (const BlockIndex block : lease.working) withdraw_if_of_this_step(block);
  for (const BlockIndex block : lease.previous) withdraw_if_of_this_step(block);
  for (const Hold& hold : holds_) {
    if (hold.lease == lease.id) withdraw_if_of_this_step(hold.block);
  }
  release(lease);
}

void StateCache::withdraw_if_of_this_step(BlockIndex block) {
  const BlockKey* key = pool_.key(block, KeyKind::State);
  if (key != nullptr && of_this_step(*key)) pool_.withdraw(block, KeyKind::State);
}

void StateCache::take_state(std::vector<BlockIndex>& state) {
  for (std::uint32_t slot = 0; slot < state_blocks_; ++slot) state.push_back(pool_.take());
}

void StateCache::release_state(std::vector<BlockIndex>& state) {
  for (const BlockIndex block : std::views::reverse(state)) pool_.release(block);
  state.clear();
}

void StateCache::hold(const StateLease& lease, const std::vector<BlockIndex>& state) {
  for (const BlockIndex block : std::views::reverse(state)) holds_.push_back({lease.id, block});
}

void StateCache::verify() const {
  pool_.verify();
  SERVECAST_CHECK(step_serial_ <= next_serial_);
  for (const Hold& hold : holds_) {
    SERVECAST_CHECK(hold.lease > 0 && hold.lease <= last_lease_ && pool_.is_active(hold.block));
  }
}

void StateCache::verify(const StateLease& lease) const {
  if (lease.empty()) {
    SERVECAST_CHECK(lease.pages.empty() && lease.working.empty() && lease.previous.empty());
    for (const Hold& hold : holds_) SERVECAST_CHECK(hold.lease != lease.id);
    return;
  }
  SERVECAST_CHECK(lease.working.size() == state_blocks_);
  SERVECAST_CHECK(lease.pages.size() >= pages_for(lease.computed));
  const std::uint32_t full = lease.computed / rule_.block_tokens;
  for (std::uint32_t page = 0; page < lease.pages.size(); ++page) {
    const BlockIndex block = lease.pages[page];
    const bool is_page = pool_.key(block, KeyKind::Page) != nullptr;
    SERVECAST_CHECK(pool_.is_active(block) && is_page == (prefix_caching_ && page < full));
  }
  for (const BlockIndex block : lease.previous) SERVECAST_CHECK(pool_.is_active(block));
  const std::uint32_t sharers = is_published(lease) ? UINT32_MAX : 1;
  for (const BlockIndex block : lease.working) {
    SERVECAST_CHECK(pool_.is_active(block) && pool_.references(block) <= sharers);
  }
}

}  // namespace servecast::cache
