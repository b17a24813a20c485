// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state_kv.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::scheduler {
namespace {

cache::StateCacheConfig cache_config(const RankConfig& config) {
  return {.capacity = config.blocks,
          .state_blocks = config.state->blocks,
          .align = {.block_tokens = config.block_tokens,
                    .match_unit = config.state->match_unit,
                    .boundary = config.state->boundary},
          .prefix_caching = config.prefix_caching};
}

std::uint32_t unit_of(const RankConfig& config) {
  return config.state->match_unit > 0 ? config.state->match_unit : config.block_tokens;
}

}  // namespace

StateKv::StateKv(const RankConfig& config, const KvNaming& naming, const RequestSlab& requests)
    : requests_(requests),
      block_tokens_(config.block_tokens),
      unit_(unit_of(config)),
      max_batched_tokens_(config.max_batched_tokens),
      prefix_caching_(config.prefix_caching),
      keep_events_(naming.events && config.prefix_caching),
      cache_(cache_config(config)),
      names_(unit_, naming.real_hashes),
      pages_(config.block_tokens) {
  if (keep_events_) cache_.keep_evicted_names();
}

void StateKv::begin_step() {
  cache_.begin_step();
}

void StateKv::extend_names(Slot slot) {
  if (prefix_caching_) names_.extend(entry(slot).names, requests_[slot]);
}

RankKv::Found StateKv::look_up(Slot slot, std::uint32_t budget, bool alone) {
  const Request& request = requests_[slot];
  const std::uint32_t known = request.known();
  hit_ = {};
  if (!cache_.accepts(known)) return {.room = Room::Never};
  extend_names(slot);
  hit_ = cache_.look_up(
      {.hashes = entry(slot).names, .known = known, .needs_logits = request.remaining() > 0});
  if (alone && cache_.peak(known, hit_) > cache_.pool().capacity()) hit_ = {};
  const bool fits = cache_.need(known, hit_) <= cache_.room();
  return {.cached = hit_.tokens,
          .chunk = next_tokens(slot, budget),
          .room = fits ? Room::Enough : Room::Wait};
}

void StateKv::admit(Slot slot, std::uint32_t chunk) {
  const bool admitted = cache_.admit(entry(slot).lease, hit_, hit_.tokens + chunk);
  SERVECAST_CHECK(admitted);
  if (keep_events_) publish_removed();
}

std::uint32_t StateKv::next_tokens(Slot slot, std::uint32_t budget) const {
  const Request& request = requests_[slot];
  const std::uint32_t start = start_of(slot), known = request.known();
  return cache_.split({.start = start,
                       .prompt = request.prompt_tokens,
                       .known = known,
                       .tokens = std::min(known - start, budget)},
                      max_batched_tokens_);
}

RankKv::Room StateKv::room_alone(Slot slot, std::uint32_t chunk) const {
  const bool fits = cache_.accepts(requests_[slot].known()) &&
                    cache_.can_compute(entries_[slot].lease, start_of(slot) + chunk);
  return fits ? Room::Enough : Room::Never;
}

bool StateKv::allocate(Slot slot, std::uint32_t chunk) {
  if (!cache_.allocate(entries_[slot].lease, start_of(slot) + chunk)) return false;
  if (keep_events_) publish_removed();
  return true;
}

void StateKv::finalise(Slot slot) {
  const Request& request = requests_[slot];
  extend_names(slot);
  Entry& own = entry(slot);
  const std::span<const std::uint32_t> pages =
      cache_.finalise(own.lease, {.hashes = own.names,
                                  .after = request.computed,
                                  .prompt = request.prompt_tokens,
                                  .known = request.known()});
  if (keep_events_) publish_stored(slot, pages);
}

void StateKv::preempt(Slot slot) {
  cache_.preempt(entries_[slot].lease);
}

void StateKv::release(Slot slot) {
  Entry& own = entry(slot);
  cache_.release(own.lease);
  own.names.clear();
}

KvCounts StateKv::counts() const {
  const cache::KeyedPool& pool = cache_.pool();
  return {.capacity = pool.capacity(),
          .active = pool.active(),
          .inactive = pool.inactive(),
          .free = pool.free(),
          .evictions = pool.evictions()};
}

std::uint32_t StateKv::held(Slot slot) const {
  const cache::StateLease& lease = entries_[slot].lease;
  return static_cast<std::uint32_t>(lease.pages.size() + lease.working.size() +
                                    lease.previous.size());
}

std::uint64_t StateKv::need_alone(Slot slot, std::uint32_t target) const {
  std::uint64_t needed = cache_.peak(std::max(target, requests_[slot].known()), {});
  if (slot < entries_.size() && !entries_[slot].lease.empty()) {
    needed = std::max(needed, cache_.compute_need(entries_[slot].lease, target));
  }
  return needed;
}

void StateKv::publish_removed() {
  std::vector<std::uint64_t>& names = cache_.evicted_names();
  if (names.empty()) return;
  KvEvent& event = events_.emplace_back();
  for (const std::uint64_t name : names) event.blocks.push_back({name, 0});
  names.clear();
}

// One event for each run of pages that follow each other.
void StateKv::publish_stored(Slot slot, std::span<const std::uint32_t> pages) {
  const Request& request = requests_[slot];
  const std::vector<std::uint64_t>& names = entries_[slot].names;
  const std::uint32_t page_units = block_tokens_ / unit_;
  const auto name_of = [&](std::uint32_t page) { return names[(page + 1) * page_units - 1]; };
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::uint32_t page = pages[i];
    if (i == 0 || page != pages[i - 1] + 1) {
      events_.push_back({.stored = true,
                         .has_parent = page > 0,
                         .parent = page > 0 ? name_of(page - 1) : 0,
                         .blocks = {}});
    }
    const std::uint64_t tokens_hash =
        pages_.hash(request.content, request.prompt_tokens, page, 0).local;
    events_.back().add({name_of(page), tokens_hash}, pages_.tokens());
  }
}

void StateKv::verify(const std::vector<Slot>& running) const {
  cache_.verify();
  std::vector<bool> runs(entries_.size());
  for (const Slot slot : running) {
    runs[slot] = true;
    cache_.verify(entries_[slot].lease);
    SERVECAST_CHECK(entries_[slot].lease.computed == requests_[slot].computed);
  }
  for (std::size_t slot = 0; slot < entries_.size(); ++slot) {
    if (!runs[slot]) SERVECAST_CHECK(entries_[slot].lease.empty());
  }
  if (running.empty()) SERVECAST_CHECK(cache_.pool().active() == 0);
}

}  // namespace servecast::scheduler
