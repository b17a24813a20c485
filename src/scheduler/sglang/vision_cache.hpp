// SPDX-License-Identifier: Apache-2.0
// What the vision tower of a rank has to encode, and the embeddings that it keeps, the least
// recently used ones going first (engine-sglang.md S10).
//
//   VisionCache cache(100 << 20);
//   std::uint32_t misses = cache.encode(images);  // of one pass
//
// Invariant: the bytes of the embeddings kept are no more than the capacity.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "workload/workload.hpp"

namespace servecast::scheduler {

class VisionCache {
 public:
  explicit VisionCache(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // The images of one pass, in the order of its requests: returns how many the tower encodes. Every
  // one is looked up before any is kept. An embedding larger than the cache still empties it.
  std::uint32_t encode(std::span<const workload::Image> images);

  std::uint64_t used_bytes() const { return used_bytes_; }
  void verify() const;

 private:
  bool look_up(const workload::Image& image);
  void keep(const workload::Image& image);

  using Kept = std::list<workload::Image>;
  std::uint64_t capacity_bytes_;
  std::uint64_t used_bytes_ = 0;
  Kept kept_;  // the most recently used first
  std::unordered_map<std::uint64_t, Kept::iterator> by_identity_;
};

}  // namespace servecast::scheduler
