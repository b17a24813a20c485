// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"

namespace servecast {

static_assert(std::endian::native == std::endian::little,
              "block hashes are over little-endian words");

namespace {

constexpr std::uint64_t kBlockSeed = 1337;

// What XXH3 derives from the seed for every long input, derived once.
const auto kBlockSecret = [] {
  std::array<unsigned char, XXH3_SECRET_DEFAULT_SIZE> secret{};
  XXH3_generateSecret_fromSeed(secret.data(), kBlockSeed);
  return secret;
}();

std::uint64_t block_hash(const void* bytes, std::size_t size) {
  return XXH3_64bits_withSecretandSeed(bytes, size, kBlockSecret.data(), kBlockSecret.size(),
                                       kBlockSeed);
}

}  // namespace

std::uint64_t xxh3(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint64_t local_block_hash(std::span<const std::uint32_t> tokens) {
  return block_hash(tokens.data(), tokens.size_bytes());
}

std::uint64_t chained_block_hash(std::uint64_t parent, std::uint64_t local) {
  const std::array<std::uint64_t, 2> words{parent, local};
  return block_hash(words.data(), sizeof words);
}

namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string to_hex(const Digest& digest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return to_hex(digest);
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SERVECAST_CHECK(state_->context != nullptr);
  SERVECAST_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view piece) {
  SERVECAST_CHECK(EVP_DigestUpdate(state_->context, piece.data(), piece.size()) == 1);
}

std::string Sha256::hex() {
  Digest digest{};
  SERVECAST_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) == 1);
  return to_hex(digest);
}

}  // namespace servecast
