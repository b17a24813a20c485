// SPDX-License-Identifier: Apache-2.0
// What became visible in a rank's prefix cache, or left it (engine-vllm.md 6.6,
// engine-sglang.md S6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace servecast::scheduler {

struct KvEvent {
  struct Block {
    std::uint64_t hash, tokens_hash;
  };
  bool stored = false;                      // else removed
  std::optional<std::uint32_t> group = {};  // of grouped caches
  bool has_parent = false;
  std::uint64_t parent = 0;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> tokens = {};  // stored: of all blocks, one after the other
  // Stored: of the request that made the blocks, where that keeps events apart (engine-sglang.md
  // S6.3).
  std::optional<std::uint64_t> session = {};

  void add(Block block, std::span<const std::uint32_t> block_tokens) {
    blocks.push_back(block);
    tokens.insert(tokens.end(), block_tokens.begin(), block_tokens.end());
  }
};

}  // namespace servecast::scheduler
