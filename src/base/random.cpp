// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/int128.hpp"

namespace servecast {
namespace {

// A row of the 4 x 4 state; the four columns are mixed at once.
using Row = std::uint32_t __attribute__((vector_size(16)));

template <int Bits>
Row rotl(Row x) {
  return (x << Bits) | (x >> (32 - Bits));
}

template <int Places>
Row turn(Row x) {
  return __builtin_shufflevector(x, x, Places, (Places + 1) % 4, (Places + 2) % 4,
                                 (Places + 3) % 4);
}

inline void mix_columns(Row& a, Row& b, Row& c, Row& d) {
  a += b;
  d = rotl<16>(d ^ a);
  c += d;
  b = rotl<12>(b ^ c);
  a += b;
  d = rotl<8>(d ^ a);
  c += d;
  b = rotl<7>(b ^ c);
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
  const Row words{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  const Row key_low{key_[0], key_[1], key_[2], key_[3]};
  const Row key_high{key_[4], key_[5], key_[6], key_[7]};
  const Row count{static_cast<std::uint32_t>(block_index_),
                  static_cast<std::uint32_t>(block_index_ >> 32), 0, 0};
  Row a = words, b = key_low, c = key_high, d = count;
  for (int round = 0; round < 6; ++round) {
    mix_columns(a, b, c, d);
    b = turn<1>(b);  // the diagonals become columns
    c = turn<2>(c);
    d = turn<3>(d);
    mix_columns(a, b, c, d);
    b = turn<3>(b);
    c = turn<2>(c);
    d = turn<1>(d);
  }
  const std::array<Row, 4> rows{a + words, b + key_low, c + key_high, d + count};
  std::memcpy(block_.data(), rows.data(), sizeof block_);
  ++block_index_;
  used_ = 0;
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
