// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/kv_recorder.hpp"

#include <iterator>

namespace servecast::scheduler {

void KvRecorder::stored(std::optional<std::uint64_t> parent, KvEvent::Block block,
                        std::span<const std::uint32_t> block_tokens,
                        std::optional<std::uint64_t> session) {
  const bool continues = !queue_.empty() && queue_.back().stored && parent.has_value() &&
                         queue_.back().blocks.back().hash == *parent &&
                         queue_.back().session == session;
  if (!continues) {
    queue_.push_back({.stored = true,
                      .has_parent = parent.has_value(),
                      .parent = parent.value_or(0),
                      .blocks = {},
                      .session = session});
  }
  queue_.back().add(block, block_tokens);
}

void KvRecorder::removed(std::span<const std::uint64_t> hashes) {
  if (hashes.empty()) return;
  if (queue_.empty() || queue_.back().stored) queue_.emplace_back();
  for (const std::uint64_t hash : hashes) queue_.back().blocks.push_back({hash, 0});
}

void KvRecorder::flush(std::vector<KvEvent>& out) {
  out.insert(out.end(), std::make_move_iterator(queue_.begin()),
             std::make_move_iterator(queue_.end()));
  queue_.clear();
}

}  // namespace servecast::scheduler
