// SPDX-License-Identifier: Apache-2.0
// Names of the wire's fields in the order of its arrays (realdata.md 4.2). Private to
// kv_wire_*.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace servecast::cache::wire {

enum BatchField : std::size_t { kTs, kEvents, kRank };
inline constexpr std::array<std::string_view, 3> kBatchFields{"ts", "events", "data_parallel_rank"};

inline constexpr std::string_view kTypeKey = "type";  // of an event's tag in a map

inline constexpr std::string_view kStoredTag = "BlockStored";
enum StoredField : std::size_t {
  kBlockHashes,
  kParent,
  kTokenIds,
  kBlockSize,
  kLoraId,
  kMedium,
  kLoraName,
  kExtraKeys,
  kGroupIdx,
  kSpecKind,
  kSlidingWindow
};
inline constexpr std::array<std::string_view, 11> kStoredFields{"block_hashes",
                                                                "parent_block_hash",
                                                                "token_ids",
                                                                "block_size",
                                                                "lora_id",
                                                                "medium",
                                                                "lora_name",
                                                                "extra_keys",
                                                                "group_idx",
                                                                "kv_cache_spec_kind",
                                                                "kv_cache_spec_sliding_window"};

inline constexpr std::string_view kRemovedTag = "BlockRemoved";
enum RemovedField : std::size_t { kRemovedHashes, kRemovedMedium, kRemovedGroup };
inline constexpr std::array<std::string_view, 3> kRemovedFields{"block_hashes", "medium",
                                                                "group_idx"};

inline constexpr std::string_view kClearedTag = "AllBlocksCleared";

}  // namespace servecast::cache::wire
