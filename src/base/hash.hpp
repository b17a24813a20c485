// SPDX-License-Identifier: Apache-2.0
// Hashes that leave the program (XXH3, SHA-256) and the fold that fingerprints a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace servecast {

std::uint64_t xxh3(const void* bytes, std::size_t size, std::uint64_t seed);

// Hash of one KV block's tokens as little-endian 32-bit words, XXH3-64 seed 1337
// (engine-vllm.md 1.1).
std::uint64_t local_block_hash(std::span<const std::uint32_t> tokens);
// Hash of the prefix that ends with a block, from the hash of the prefix before it
// (engine-vllm.md 1.1). The first block's prefix hash is its local hash.
std::uint64_t chained_block_hash(std::uint64_t parent, std::uint64_t local);

// Lower-case hex digest of a whole text.
std::string sha256_hex(std::string_view text);

// The same digest of a text that comes in pieces, such as a file too large to hold.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();
  void update(std::string_view piece);
  std::string hex();  // ends the text. requires: not called before
 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Folds one word into a running 64-bit digest; order matters, one multiplication.
inline std::uint64_t fold(std::uint64_t digest, std::uint64_t word) {
  const std::uint64_t x = (digest ^ word) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 29);
}

// A bijective mix: distinct inputs have distinct outputs (the finaliser of SplitMix64).
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace servecast
