// SPDX-License-Identifier: Apache-2.0
#include "cache/clairvoyant.hpp"

#include "base/check.hpp"

namespace servecast::cache {

void Clairvoyant::add(BlockIndex block, const Content& content) {
  if (block >= keys_.size()) keys_.resize(block + std::size_t{1});
  keys_[block] = key_of(block, content, releases_++);
  order_.insert(keys_[block]);
}

void Clairvoyant::place(BlockIndex block, const Content& content) {
  const std::uint64_t released = keys_[block].released;
  remove(block);
  keys_[block] = key_of(block, content, released);
  order_.insert(keys_[block]);
}

void Clairvoyant::remove(BlockIndex block) {
  const std::size_t removed = order_.erase(keys_[block]);
  SERVECAST_CHECK(removed == 1);
}

}  // namespace servecast::cache
