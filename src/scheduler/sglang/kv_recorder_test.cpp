// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/kv_recorder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace servecast::scheduler {
namespace {

constexpr std::array<std::uint32_t, 2> kTokens = {8, 9};

std::vector<std::uint64_t> hashes(const KvEvent& event) {
  std::vector<std::uint64_t> all;
  for (const KvEvent::Block& block : event.blocks) all.push_back(block.hash);
  return all;
}
using Hashes = std::vector<std::uint64_t>;

std::vector<KvEvent> flushed(KvRecorder& recorder) {
  std::vector<KvEvent> events;
  recorder.flush(events);
  return events;
}

// S23 C29.
TEST(KvRecorder, MakesOneEventOfPagesThatFollowEachOther) {
  KvRecorder recorder;
  recorder.stored({}, {10, 1}, kTokens, {});
  recorder.stored(10, {11, 2}, kTokens, {});
  const std::vector<KvEvent> events = flushed(recorder);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].stored);
  EXPECT_FALSE(events[0].has_parent);
  EXPECT_EQ(hashes(events[0]), (Hashes{10, 11}));
  EXPECT_EQ(events[0].blocks[1].tokens_hash, 2U);
  EXPECT_EQ(events[0].tokens, (std::vector<std::uint32_t>{8, 9, 8, 9}));
}

TEST(KvRecorder, NamesTheParentOfTheFirstPageOfAnEvent) {
  KvRecorder recorder;
  recorder.stored(11, {12, 1}, kTokens, {});
  const std::vector<KvEvent> events = flushed(recorder);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].has_parent);
  EXPECT_EQ(events[0].parent, 11U);
}

TEST(KvRecorder, KeepsPagesApartThatDoNotFollowTheLast) {
  KvRecorder recorder;
  recorder.stored({}, {10, 1}, kTokens, {});
  recorder.stored({}, {20, 1}, kTokens, {});
  recorder.stored(10, {11, 1}, kTokens, {});  // only the tail is looked at
  EXPECT_EQ(flushed(recorder).size(), 3U);
}

TEST(KvRecorder, KeepsSessionsApart) {
  KvRecorder recorder;
  recorder.stored({}, {10, 1}, kTokens, 1);
  recorder.stored(10, {11, 1}, kTokens, 1);
  recorder.stored(11, {12, 1}, kTokens, 2);
  recorder.stored(12, {13, 1}, kTokens, {});
  const std::vector<KvEvent> events = flushed(recorder);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(hashes(events[0]), (Hashes{10, 11}));
  EXPECT_EQ(events[0].session, 1U);
  EXPECT_EQ(events[1].session, 2U);
  EXPECT_FALSE(events[2].session.has_value());
}

TEST(KvRecorder, JoinsVictimsThatGoOneAfterTheOther) {
  KvRecorder recorder;
  recorder.removed(Hashes{5});
  recorder.removed(Hashes{});
  recorder.removed(Hashes{6, 7});
  const std::vector<KvEvent> events = flushed(recorder);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_FALSE(events[0].stored);
  EXPECT_EQ(hashes(events[0]), (Hashes{5, 6, 7}));
}

TEST(KvRecorder, KeepsTheOrderOfStoresAndRemovals) {
  KvRecorder recorder;
  recorder.stored({}, {10, 1}, kTokens, {});
  recorder.removed(Hashes{10});
  recorder.stored(10, {11, 1}, kTokens, {});
  recorder.removed(Hashes{11});
  const std::vector<KvEvent> events = flushed(recorder);
  ASSERT_EQ(events.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].stored, i % 2 == 0);
}

TEST(KvRecorder, JoinsNothingToWhatHasLeft) {
  KvRecorder recorder;
  recorder.stored({}, {10, 1}, kTokens, {});
  std::vector<KvEvent> events;
  recorder.flush(events);
  recorder.stored(10, {11, 1}, kTokens, {});
  recorder.flush(events);
  recorder.flush(events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(hashes(events[1]), (Hashes{11}));
}

}  // namespace
}  // namespace servecast::scheduler
