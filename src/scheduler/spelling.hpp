// SPDX-License-Identifier: Apache-2.0
// Real tokens and real block hashes of a request (replay.md 12, engine-vllm.md 1.1): the names that
// the reference mode uses and that KV events carry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "scheduler/content.hpp"

namespace servecast::scheduler {

class Spelling {
 public:
  explicit Spelling(std::uint32_t block_tokens);

  struct Hashes {
    std::uint64_t local;   // of the block's tokens
    std::uint64_t prefix;  // of everything up to its end
  };
  // requires: every token of the block is known, `parent` is the prefix hash of block - 1 (ignored
  // for 0).
  Hashes hash(const Content& content, std::uint32_t prompt_tokens, std::uint32_t block,
              std::uint64_t parent);
  // The tokens of the block that was hashed last.
  std::span<const std::uint32_t> tokens() const { return tokens_; }

 private:
  void spell_prompt(const Content& content, std::uint64_t first, std::uint64_t end,
                    std::uint32_t* out);
  void spell_output(const Content& content, std::uint64_t first, std::uint64_t end,
                    std::uint32_t* out);

  std::uint32_t block_tokens_;
  Random plan_;
  std::vector<std::uint32_t> tokens_;
};

}  // namespace servecast::scheduler
