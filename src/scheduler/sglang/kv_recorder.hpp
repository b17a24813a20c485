// SPDX-License-Identifier: Apache-2.0
// The KV events of an SGLang rank between the change of its radix tree and the flush that shows
// them (engine-sglang.md S6.3). Neighbours that continue each other are one event; the order is
// never changed, and a removal takes back no store.
//
//   recorder.stored(parent, {hash, tokens_hash}, tokens, session);   // page by page
//   recorder.removed(hashes);                                        // victim by victim
//   recorder.flush(events);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/kv_event.hpp"

namespace servecast::scheduler {

class KvRecorder {
 public:
  // A page that an insertion brought into the tree. `parent`: the hash of the page before it, none
  // of a first page. `session`: of the request that was inserted.
  void stored(std::optional<std::uint64_t> parent, KvEvent::Block block,
              std::span<const std::uint32_t> block_tokens, std::optional<std::uint64_t> session);
  // The pages of one or more victims, in order of eviction. None: no event.
  void removed(std::span<const std::uint64_t> hashes);
  // Moves all events to the end of `out`.
  void flush(std::vector<KvEvent>& out);

 private:
  std::vector<KvEvent> queue_;
};

}  // namespace servecast::scheduler
