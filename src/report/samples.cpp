// SPDX-License-Identifier: Apache-2.0
#include "report/samples.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"

namespace servecast::report {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{1} << 16;
constexpr unsigned kDigitBits = 12;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// The samples whose upper bits equal `prefix`, counted by their next digit. Some rank lies among
// them.
struct Group {
  std::uint64_t prefix = 0;
  std::uint64_t below = 0;  // samples smaller than the whole group
  std::vector<std::uint64_t> histogram = std::vector<std::uint64_t>(kDigits);
};

// Finds the group of a prefix in about one load: most samples belong to none.
class GroupIndex {
 public:
  explicit GroupIndex(const std::vector<Group>& groups) : groups_(groups) {
    SERVECAST_CHECK(groups.size() < kNone);
    first_.fill(kNone);
    for (std::size_t g = groups.size(); g-- > 0;) {
      first_[groups[g].prefix % kDigits] = static_cast<std::uint8_t>(g);
    }
  }
  // groups.size() when there is none.
  std::size_t find(std::uint64_t prefix) const {
    std::size_t g = first_[prefix % kDigits];
    if (g == kNone) return groups_.size();
    while (g < groups_.size() && groups_[g].prefix != prefix) ++g;
    return g;
  }

 private:
  static constexpr std::uint8_t kNone = 255;
  const std::vector<Group>& groups_;
  std::array<std::uint8_t, kDigits> first_;
};

// Which bits of (sample - min) are counted: `digit` bits above bit `shift`; those above are the
// prefix.
struct Digit {
  unsigned shift, bits;
  std::uint64_t of(std::uint64_t key) const { return (key >> shift) % (std::uint64_t{1} << bits); }
  std::uint64_t prefix(std::uint64_t key) const { return key >> (shift + bits); }
};

void count_all(std::span<const std::uint64_t> samples, std::uint64_t min, Digit digit,
               Group& group) {
  std::uint64_t* const histogram = group.histogram.data();
  for (const std::uint64_t sample : samples) ++histogram[(sample - min) >> digit.shift];
}

void count_members(std::span<const std::uint64_t> samples, std::uint64_t min, Digit digit,
                   const GroupIndex& index, std::vector<Group>& groups) {
  for (const std::uint64_t sample : samples) {
    const std::uint64_t key = sample - min;
    const std::size_t g = index.find(digit.prefix(key));
    if (g < groups.size()) ++groups[g].histogram[digit.of(key)];
  }
}

// Groups of the next, smaller digit: one for each distinct prefix in which a rank lies. `group_of`
// says in which group each rank lies, before and after.
std::vector<Group> refine(const std::vector<Group>& groups, unsigned bits,
                          std::span<const std::uint64_t> ranks,
                          std::vector<std::size_t>& group_of) {
  std::vector<Group> finer;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Group& group = groups[group_of[r]];
    std::uint64_t below = group.below;
    std::uint64_t value = 0;
    while (value < kDigits && below + group.histogram[value] <= ranks[r])
      below += group.histogram[value++];
    SERVECAST_CHECK(value < kDigits);
    const std::uint64_t prefix = (group.prefix << bits) | value;
    if (finer.empty() || finer.back().prefix != prefix) {
      finer.emplace_back();
      finer.back().prefix = prefix;
      finer.back().below = below;
    }
    group_of[r] = finer.size() - 1;
  }
  return finer;
}

}  // namespace

std::uint64_t rank_of(std::uint32_t percent, std::uint64_t count) {
  SERVECAST_CHECK(count > 0 && percent <= 100);
  return static_cast<std::uint64_t>((UInt128{count - 1} * percent + 50) / 100);
}

double ExactSums::mean() const {
  return static_cast<double>(sum) / static_cast<double>(count);
}

double ExactSums::standard_deviation() const {
  // With sum = count * m + r the squared deviations from m are squares - count * m^2 - 2 * m * r,
  // an exact integer, so nothing cancels.
  const UInt128 m = sum / count;
  const UInt128 r = sum - m * count;
  const UInt128 deviations = squares - UInt128{count} * m * m - 2 * m * r;
  const double n = static_cast<double>(count);
  const double offset = static_cast<double>(r) / n;
  return std::sqrt(std::max(0.0, static_cast<double>(deviations) / n - offset * offset));
}

SampleStore::SampleStore(std::uint64_t in_memory_max, std::string directory)
    : chunk_(std::clamp<std::uint64_t>(in_memory_max, 1, kChunk)),
      chunks_max_(std::max<std::uint64_t>(1, in_memory_max / chunk_)),
      file_(std::move(directory)) {}

void SampleStore::grow() {
  const bool full = chunks_.size() == chunks_max_;
  if (full || is_spilled()) {
    for (const auto& chunk : chunks_) file_.append(std::as_bytes(std::span(chunk.get(), chunk_)));
    chunks_.resize(1);
  } else {
    chunks_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(chunk_));
  }
  next_ = chunks_.back().get();
  end_ = next_ + chunk_;
}

Result<void> SampleStore::for_each_piece(
    const std::function<void(std::span<const std::uint64_t>)>& take) const {
  std::vector<std::uint64_t> aligned;
  auto read = file_.read([&](std::span<const std::byte> bytes) {
    aligned.resize(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    take(aligned);
  });
  if (!read) return read;
  for (std::size_t c = 0; c + 1 < chunks_.size(); ++c) take({chunks_[c].get(), chunk_});
  if (!chunks_.empty())
    take({chunks_.back().get(), static_cast<std::size_t>(next_ - chunks_.back().get())});
  return {};
}

Result<std::vector<std::uint64_t>> SampleStore::at_ranks(
    std::span<const std::uint64_t> ranks) const {
  SERVECAST_CHECK(std::is_sorted(ranks.begin(), ranks.end()));
  SERVECAST_CHECK(ranks.empty() || ranks.back() < count());
  if (auto problem = file_.problem()) return fail(*std::move(problem));
  if (ranks.empty()) return std::vector<std::uint64_t>{};

  std::vector<Group> groups(1);
  std::vector<std::size_t> group_of(ranks.size(), 0);
  const unsigned width = static_cast<unsigned>(std::bit_width(max_ - min_));
  for (unsigned left = width; left > 0;) {
    const unsigned bits = std::min(left, kDigitBits);
    const Digit digit{.shift = left - bits, .bits = bits};
    const GroupIndex index(groups);
    auto counted = for_each_piece([&](std::span<const std::uint64_t> samples) {
      if (left == width) {
        count_all(samples, min_, digit, groups[0]);
      } else {
        count_members(samples, min_, digit, index, groups);
      }
    });
    if (!counted) return tl::unexpected(counted.error());
    groups = refine(groups, bits, ranks, group_of);
    left = digit.shift;
  }
  std::vector<std::uint64_t> values;
  values.reserve(ranks.size());
  for (const std::size_t g : group_of) values.push_back(min_ + groups[g].prefix);
  return values;
}

}  // namespace servecast::report
