// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#include <openssl/sha.h>

#include <array>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace servecast {

static_assert(std::endian::native == std::endian::little, "block hashes are over little-endian words");

namespace {
constexpr std::uint64_t kBlockSeed = 1337;
}

std::uint64_t xxh3(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint64_t local_block_hash(std::span<const std::uint32_t> tokens) {
  return xxh3(tokens.data(), tokens.size_bytes(), kBlockSeed);
}

std::uint64_t chained_block_hash(std::uint64_t parent, std::uint64_t local) {
  const std::array<std::uint64_t, 2> words{parent, local};
  return xxh3(words.data(), sizeof words, kBlockSeed);
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace servecast
