// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/vision_cache.hpp"

#include <set>
#include <utility>

#include "base/check.hpp"

namespace servecast::scheduler {

using workload::Image;

// Whether the embedding is there. One of another length is that of another image: it goes.
bool VisionCache::look_up(const Image& image) {
  const auto found = by_identity_.find(image.identity);
  if (found == by_identity_.end()) return false;
  const Kept::iterator entry = found->second;
  if (entry->tokens() == image.tokens()) {
    kept_.splice(kept_.begin(), kept_, entry);
    return true;
  }
  used_bytes_ -= entry->bytes;
  kept_.erase(entry);
  by_identity_.erase(found);
  return false;
}

void VisionCache::keep(const Image& image) {
  if (const auto found = by_identity_.find(image.identity); found != by_identity_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    return;
  }
  const auto fits = [&] {
    return image.bytes <= capacity_bytes_ && used_bytes_ <= capacity_bytes_ - image.bytes;
  };
  while (!fits() && !kept_.empty()) {
    used_bytes_ -= kept_.back().bytes;
    by_identity_.erase(kept_.back().identity);
    kept_.pop_back();
  }
  if (!fits()) return;
  used_bytes_ += image.bytes;
  kept_.push_front(image);
  by_identity_.emplace(image.identity, kept_.begin());
}

std::uint32_t VisionCache::encode(std::span<const Image> images) {
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  std::vector<const Image*> misses;
  for (const Image& image : images) {
    if (!seen.emplace(image.identity, image.tokens()).second) continue;
    if (!look_up(image)) misses.push_back(&image);
  }
  for (const Image* image : misses) keep(*image);
  return static_cast<std::uint32_t>(misses.size());
}

void VisionCache::verify() const {
  std::uint64_t bytes = 0;
  for (const Image& image : kept_) {
    bytes += image.bytes;
    SERVECAST_CHECK(by_identity_.contains(image.identity));
  }
  SERVECAST_CHECK(bytes == used_bytes_ && used_bytes_ <= capacity_bytes_);
  SERVECAST_CHECK(by_identity_.size() == kept_.size());
}

}  // namespace servecast::scheduler
