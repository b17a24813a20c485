// SPDX-License-Identifier: Apache-2.0
#include "scheduler/grouped_bytes_kv.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::scheduler {

GroupedBytesKv::GroupedBytesKv(const RankConfig& config, const RequestSlab& requests)
    : requests_(requests), pool_(config.grouped->groups, config.grouped->capacity_bytes) {}

RankKv::Found GroupedBytesKv::look_up(Slot slot, std::uint32_t budget, bool) {
  using Kind = cache::ByteVerdict::Kind;
  const std::uint32_t known = requests_[slot].known();
  Found found{.chunk = std::min(known, budget)};
  switch (pool_.judge({.known = known, .budget = budget}).kind) {
    case Kind::Admit:
      break;
    case Kind::Wait:
      found.room = Room::Wait;
      break;
    case Kind::Reject:
      found.room = Room::Never;
      break;
    case Kind::Oversized:
      found.room = Room::Oversized;
      break;
  }
  return found;
}

void GroupedBytesKv::admit(Slot slot, std::uint32_t chunk) {
  if (slot >= leases_.size()) leases_.resize(slot + std::size_t{1});
  const bool allocated = pool_.allocate(leases_[slot], 0, chunk);
  SERVECAST_CHECK(allocated);
}

std::uint32_t GroupedBytesKv::next_tokens(Slot slot, std::uint32_t budget) const {
  const Request& request = requests_[slot];
  return std::min(request.known() - request.computed, budget);
}

RankKv::Room GroupedBytesKv::room_alone(Slot slot, std::uint32_t chunk) const {
  const std::uint32_t from = requests_[slot].computed;
  if (pool_.bytes(from, from + chunk) <= pool_.capacity_bytes()) return Room::Enough;
  const bool fewer_fit = pool_.bytes(from, from + 1) <= pool_.capacity_bytes();
  return fewer_fit ? Room::Oversized : Room::Never;
}

bool GroupedBytesKv::allocate(Slot slot, std::uint32_t chunk) {
  const std::uint32_t from = requests_[slot].computed;
  return pool_.allocate(leases_[slot], from, from + chunk);
}

void GroupedBytesKv::release(Slot slot) {
  if (slot < leases_.size()) pool_.release(leases_[slot]);
}

KvCounts GroupedBytesKv::counts() const {
  return {.used_bytes = pool_.used_bytes(), .capacity_bytes = pool_.capacity_bytes()};
}

// Of the forward pass that ends with `target` tokens.
std::uint64_t GroupedBytesKv::need_alone(Slot slot, std::uint32_t target) const {
  const std::uint32_t from = requests_[slot].computed;
  return pool_.bytes(from < target ? from : target - 1, target);
}

void GroupedBytesKv::verify(const std::vector<Slot>& running) const {
  std::vector<const cache::ByteLease*> held;
  std::vector<bool> runs(leases_.size());
  for (const Slot slot : running) {
    runs[slot] = true;
    held.push_back(&leases_[slot]);
  }
  for (std::size_t slot = 0; slot < leases_.size(); ++slot) {
    if (!runs[slot]) SERVECAST_CHECK(leases_[slot].bytes == 0);
  }
  pool_.verify(held);
}

}  // namespace servecast::scheduler
