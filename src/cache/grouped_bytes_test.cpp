// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_bytes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = ByteVerdict::Kind;

KvGroup paged(KvGroup group, std::uint64_t page_bytes) {
  group.page_size_bytes = page_bytes;
  return group;
}
KvGroup convolution(std::uint32_t block, std::uint32_t tokens) {
  KvGroup group = window(block, tokens);
  group.kind = GroupKind::Convolution;
  group.name = "convolution";
  return group;
}

void verify(const GroupedBytes& pool, std::vector<const ByteLease*> leases) {
  pool.verify(leases);
}

TEST(GroupedBytes, MoveTheRangesOfARequestInOneTransition) {
  GroupedBytes pool({paged(full(4), 8), paged(window(2, 3), 6)}, 42);
  ByteLease first, second;
  ASSERT_TRUE(pool.allocate(first, 0, 4));
  EXPECT_EQ(pool.used_bytes(), 20U);
  ASSERT_TRUE(pool.allocate(second, 0, 2));
  EXPECT_EQ(second.bytes, 14U);
  EXPECT_FALSE(pool.allocate(first, 4, 8));  // 16 + 18 beside 14
  EXPECT_EQ(pool.used_bytes(), 34U);
  EXPECT_EQ(first.bytes, 20U);
  EXPECT_THAT(first.ranges, ElementsAre(BlockRange{0, 1}, BlockRange{0, 2}));
  verify(pool, {&first, &second});

  pool.release(second);
  EXPECT_THAT(second.ranges, IsEmpty());
  ASSERT_TRUE(pool.allocate(first, 4, 8));
  EXPECT_THAT(first.ranges, ElementsAre(BlockRange{0, 2}, BlockRange{1, 4}));
  EXPECT_EQ(pool.used_bytes(), 34U);
  ASSERT_TRUE(pool.allocate(first, 8, 9));
  EXPECT_THAT(first.ranges, ElementsAre(BlockRange{0, 3}, BlockRange{3, 5}));
  EXPECT_EQ(pool.used_bytes(), 36U);
  verify(pool, {&first});
  pool.release(first);
  EXPECT_EQ(pool.used_bytes(), 0U);
}

// Computed tokens after each step, and the bytes held then.
std::vector<std::uint64_t> bytes_over(GroupedBytes& pool, const std::vector<std::uint32_t>& ends) {
  ByteLease lease;
  std::vector<std::uint64_t> used;
  std::uint32_t before = 0;
  for (const std::uint32_t end : ends) {
    EXPECT_TRUE(pool.allocate(lease, before, end));
    used.push_back(pool.used_bytes());
    before = end;
  }
  return used;
}

TEST(GroupedBytes, OfAWindowStopGrowing) {
  GroupedBytes pool({paged(window(4, 4), 8)}, 24);
  EXPECT_THAT(bytes_over(pool, {8, 16, 24, 32, 33, 34}), ElementsAre(16, 24, 24, 24, 16, 16));
}

TEST(GroupedBytes, OfThreeKindsAddUp) {
  GroupedBytes pool({paged(full(4), 8), paged(window(4, 4), 4), paged(convolution(2, 2), 2)}, 1000);
  EXPECT_THAT(bytes_over(pool, {4, 8, 12, 16, 17}), ElementsAre(16, 30, 38, 46, 52));
}

TEST(GroupedBytes, RefuseAForwardThatIsTooLarge) {
  GroupedBytes pool({paged(window(4, 4), 4)}, 8);
  ByteLease lease;
  ASSERT_TRUE(pool.allocate(lease, 0, 8));
  EXPECT_EQ(pool.bytes(8, 16), 12U);
  EXPECT_FALSE(pool.allocate(lease, 8, 16));
  EXPECT_EQ(pool.used_bytes(), 8U);
  EXPECT_THAT(lease.ranges, ElementsAre(BlockRange{0, 2}));
}

TEST(GroupedBytes, OfOneWindowInNumbers) {
  const KvGroup sliding = paged(window(16, 32), 160);
  GroupedBytes pool({sliding}, 10'000);
  EXPECT_EQ(pool.bytes(0, 32), 320U);
  EXPECT_EQ(live_blocks(sliding, 32, 33), (BlockRange{0, 3}));
  EXPECT_EQ(live_blocks(sliding, 48, 49), (BlockRange{1, 4}));
  EXPECT_EQ(pool.bytes(64, 65), 480U);
  EXPECT_EQ(GroupedBytes({paged(full(16), 160)}, 1).bytes(64, 65), 800U);
  EXPECT_EQ(live_blocks(sliding, 512, 640), (BlockRange{30, 40}));
  EXPECT_EQ(pool.bytes(512, 640), 1600U);
}

TEST(GroupedBytes, PeakIsThatOfTheWindowAndAChunk) {
  const std::vector<KvGroup> sliding{paged(window(16, 32), 160)};
  EXPECT_EQ(peak_request_bytes(sliding, 4096, 128), 1760U);
  EXPECT_EQ(peak_request_bytes(sliding, 1152, 1), 480U);
  EXPECT_EQ(peak_request_bytes(sliding, 20, 128), 320U);
  const std::vector<KvGroup> rest{paged(full(16), 10), state(16), ring(16)};
  EXPECT_EQ(peak_request_bytes(rest, 4096, 128), 2560U + 2 * kPage);
}

TEST(GroupedBytes, OfStatesAndRingsAreOnePage) {
  KvGroup scratch = full(4, "scratch");
  scratch.prefix_cacheable = false;
  GroupedBytes pool({state(4), ring(4), scratch}, 10 * kPage);
  EXPECT_EQ(pool.bytes(0, 4), 3 * kPage);
  EXPECT_EQ(pool.bytes(90, 100), 3 * kPage);
}

TEST(GroupedBytes, OfFinishedChunksAreGivenBack) {
  EXPECT_EQ(live_blocks(chunked(4, 8), 7, 9), (BlockRange{0, 3}));
  EXPECT_EQ(live_blocks(chunked(4, 8), 8, 9), (BlockRange{2, 3}));
}

TEST(GroupedBytes, RejectARequestWhoseLastStepNeverFits) {
  GroupedBytes pool({paged(full(4), 8)}, 32);
  EXPECT_EQ(pool.judge({.known = 16, .budget = 8}).kind, Kind::Admit);
  EXPECT_EQ(pool.judge({.known = 17, .budget = 8}),
            (ByteVerdict{.kind = Kind::Reject, .bytes_needed = 40}));
}

TEST(GroupedBytes, RejectWhatOverflows) {
  const GroupedBytes pool({paged(full(1), std::uint64_t{1} << 53)}, UINT64_MAX);
  EXPECT_EQ(pool.bytes(0, 4096), UINT64_MAX);
  EXPECT_EQ(pool.judge({.known = 2047, .budget = 1}).kind, Kind::Admit);
  const GroupedBytes smaller({paged(full(1), std::uint64_t{1} << 53)}, UINT64_MAX - 1);
  EXPECT_EQ(smaller.judge({.known = 4096, .budget = 1}).kind, Kind::Reject);
}

TEST(GroupedBytes, LetARequestWaitForBudgetAndForBytes) {
  GroupedBytes pool({paged(full(4), 8)}, 32);
  EXPECT_EQ(pool.judge({.known = 8, .budget = 0}).kind, Kind::Wait);
  ByteLease other;
  ASSERT_TRUE(pool.allocate(other, 0, 12));
  EXPECT_EQ(pool.judge({.known = 8, .budget = 8}),
            (ByteVerdict{.kind = Kind::Wait, .bytes_needed = 16}));
  EXPECT_EQ(pool.judge({.known = 8, .budget = 4}).kind, Kind::Admit);
}

TEST(GroupedBytes, SayWhenTheFirstPassIsTooLargeForTheEmptyPool) {
  const GroupedBytes pool({paged(window(4, 4), 4)}, 8);
  EXPECT_EQ(pool.judge({.known = 16, .budget = 12}),
            (ByteVerdict{.kind = Kind::Oversized, .bytes_needed = 12}));
  EXPECT_EQ(pool.judge({.known = 16, .budget = 8}).kind, Kind::Admit);
}

TEST(GroupedBytes, UsageIsOfTheCapacity) {
  GroupedBytes pool({paged(full(4), 8)}, 64);
  ByteLease lease;
  ASSERT_TRUE(pool.allocate(lease, 0, 8));
  EXPECT_EQ(pool.usage(), 0.25);
  EXPECT_EQ(GroupedBytes({full(4)}, 0).usage(), 0);
}

// The peak bounds every forward pass, and leases add up to what is used.
TEST(GroupedBytes, AddUpOverRandomRequests) {
  Random random(5);
  const std::vector<KvGroup> groups{paged(full(4), 8), paged(window(4, 9), 4),
                                    paged(convolution(2, 3), 2), paged(chunked(3, 7), 5), state(4)};
  GroupedBytes pool(groups, 8000);
  std::vector<ByteLease> leases(5);
  std::vector<std::uint32_t> computed(5);
  std::uint32_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t at = random.below(leases.size());
    if (random.below(8) == 0) {
      pool.release(leases[at]);
      computed[at] = 0;
    } else {
      const auto after = static_cast<std::uint32_t>(computed[at] + 1 + random.below(40));
      ASSERT_LE(pool.bytes(computed[at], after), peak_request_bytes(groups, after, 40));
      const std::uint64_t used = pool.used_bytes();
      if (pool.allocate(leases[at], computed[at], after)) {
        computed[at] = after;
      } else {
        ++refused;
        ASSERT_EQ(pool.used_bytes(), used);
      }
    }
    verify(pool, {&leases[0], &leases[1], &leases[2], &leases[3], &leases[4]});
  }
  EXPECT_GT(refused, 50U);
}

}  // namespace
}  // namespace servecast::cache
