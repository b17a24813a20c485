// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/int128.hpp"

namespace servecast {
namespace {

inline void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b;
  d = std::rotl(d ^ a, 16);
  c += d;
  b = std::rotl(b ^ c, 12);
  a += b;
  d = std::rotl(d ^ a, 8);
  c += d;
  b = std::rotl(b ^ c, 7);
}

}  // namespace

Random::Random(std::uint64_t seed) {
  // Seed expansion of replay.md 10.1: a linear congruential state whose permuted output fills the
  // key.
  std::uint64_t state = seed;
  for (std::uint32_t& word : key_) {
    state = state * 6364136223846793005ULL + 11634580027462260723ULL;
    const auto x = static_cast<std::uint32_t>(((state >> 18) ^ state) >> 27);
    word = std::rotr(x, static_cast<int>(state >> 59));
  }
}

Random::Random(std::uint64_t seed, std::string_view purpose)
    : Random(xxh3(purpose.data(), purpose.size(), seed)) {}

void Random::refill() {
  std::array<std::uint32_t, 16> start{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (std::size_t i = 0; i < 8; ++i) start[4 + i] = key_[i];
  start[12] = static_cast<std::uint32_t>(block_index_);
  start[13] = static_cast<std::uint32_t>(block_index_ >> 32);
  std::array<std::uint32_t, 16> x = start;
  for (int round = 0; round < 6; ++round) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    quarter_round(x[0], x[5], x[10], x[15]);
    quarter_round(x[1], x[6], x[11], x[12]);
    quarter_round(x[2], x[7], x[8], x[13]);
    quarter_round(x[3], x[4], x[9], x[14]);
  }
  for (std::size_t i = 0; i < 16; ++i) block_[i] = x[i] + start[i];
  ++block_index_;
  used_ = 0;
}

std::uint32_t Random::word() {
  if (used_ == 16) refill();
  return block_[used_++];
}

std::uint64_t Random::next() {
  const std::uint64_t low = word();
  return low | (static_cast<std::uint64_t>(word()) << 32);
}

double Random::unit() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

double Random::normal() {
  // 1 - U keeps the logarithm away from zero, as replay.md 10.2 does for exponential gaps.
  const double u1 = std::fmax(1.0 - unit(), std::numeric_limits<double>::min());
  const double u2 = unit();
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2);
}

std::uint64_t Random::below(std::uint64_t bound) {
  SERVECAST_CHECK(bound > 0);
  UInt128 product = UInt128{next()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = UInt128{next()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

void Random::seek(std::uint64_t index) {
  block_index_ = index / 16;
  refill();
  used_ = static_cast<unsigned>(index % 16);
}

}  // namespace servecast
