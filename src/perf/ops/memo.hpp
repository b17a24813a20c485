// SPDX-License-Identifier: Apache-2.0
// Values of a function of one number that are computed when they are first asked for and may be
// read by any thread. Two threads that compute the same value store the same bits, so that no lock
// is needed.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

namespace servecast::perf {

template <std::size_t N>
class LazyValues {
 public:
  LazyValues() {
    for (auto& value : values_)
      value.store(std::numeric_limits<double>::quiet_NaN(), std::memory_order_relaxed);
  }
  // requires: compute never gives NaN.
  template <class Compute>
  double get(std::size_t i, const Compute& compute) {
    const double known = values_[i].load(std::memory_order_relaxed);
    if (!std::isnan(known)) return known;
    const double value = compute(i);
    values_[i].store(value, std::memory_order_relaxed);
    return value;
  }

 private:
  std::array<std::atomic<double>, N> values_;
};

// N places, each made when it is first asked for.
template <class T, std::size_t N>
class LazyPlaces {
 public:
  LazyPlaces() = default;
  LazyPlaces(const LazyPlaces&) = delete;
  LazyPlaces& operator=(const LazyPlaces&) = delete;
  ~LazyPlaces() {
    for (auto& place : places_) delete place.load();
  }
  static constexpr std::size_t size() { return N; }
  T& get(std::size_t i) {
    T* known = places_[i].load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<T>();
    if (places_[i].compare_exchange_strong(known, made.get())) return *made.release();
    return *known;
  }

 private:
  std::array<std::atomic<T*>, N> places_{};
};

// A curve over tokens as straight pieces between knots at eighths of octaves: 1, 1.125, ...
// 2, 2.25, ...
inline constexpr std::size_t kOctaves = 26, kPerOctave = 8;
inline constexpr std::size_t kKnots = kOctaves * kPerOctave + 1;

inline double knot(std::size_t i) {
  const auto whole = static_cast<double>(std::uint64_t{1} << (i / kPerOctave));
  return whole + whole * static_cast<double>(i % kPerOctave) / static_cast<double>(kPerOctave);
}

// The piece that x lies on. requires: x is not negative and below 2^26; below 1 the first piece
// counts.
inline std::size_t piece_of(double x) {
  if (x < 1.0) return 0;
  const auto octave = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(x))) - 1;
  const auto whole = static_cast<double>(std::uint64_t{1} << octave);
  const auto part = static_cast<std::size_t>((x / whole - 1.0) * static_cast<double>(kPerOctave));
  return octave * kPerOctave + part;
}

using Knots = LazyValues<kKnots>;

}  // namespace servecast::perf
