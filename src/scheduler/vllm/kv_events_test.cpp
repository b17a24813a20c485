// SPDX-License-Identifier: Apache-2.0
// Who follows a rank's KV events, as engines publish them, knows what its pool holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "cache/kv_residency.hpp"
#include "scheduler/spelling.hpp"
#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

cache::KvWireEvent wire_event(const KvEvent& event) {
  std::vector<cache::KvHash> hashes;
  for (const KvEvent::Block& block : event.blocks) hashes.emplace_back(block.hash);
  if (!event.stored) return cache::BlockRemoved{.block_hashes = hashes};
  cache::BlockStored stored{.block_hashes = hashes, .token_ids = event.tokens};
  stored.block_size = static_cast<std::uint32_t>(event.tokens.size() / hashes.size());
  if (event.has_parent) stored.parent_block_hash = event.parent;
  return stored;
}

// Reads the events of every pass from bytes, in one form after the other.
class Follower {
 public:
  void read(const std::vector<KvEvent>& events) {
    cache::KvBatch batch;
    for (const KvEvent& event : events) batch.events.push_back(wire_event(event));
    std::string bytes;
    cache::append_batch(bytes, batch,
                        {read_ % 2 == 0 ? cache::KvForm::Array : cache::KvForm::Map,
                         read_ % 4 < 2 ? cache::KvForm::Array : cache::KvForm::Map});
    ++read_;
    const Result<cache::KvBatch> again = decoder_.decode(bytes);
    ASSERT_TRUE(again) << to_text(again.error().front());
    ASSERT_EQ(*again, batch);
    index.apply(*again);
  }
  cache::KvResidency index;

 private:
  int read_ = 0;
  cache::KvWireDecoder decoder_;
};

// Names of all blocks that the request can ever fill.
void add_names(const Request& request, std::uint32_t block_tokens, std::set<std::uint64_t>& names) {
  Spelling spelling(block_tokens);
  std::uint64_t parent = 0;
  const std::uint32_t tokens = request.prompt_tokens + request.output_tokens;
  for (std::uint32_t block = 0; (block + 1) * block_tokens <= tokens; ++block) {
    parent = spelling.hash(request.content, request.prompt_tokens, block, parent).prefix;
    names.insert(parent);
  }
}

Ask a_random_ask(Random& random, std::uint32_t capacity_tokens) {
  Ask ask{.prompt = 1 + random.word() % (capacity_tokens * 2 / 3),
          .output = 1 + random.word() % (capacity_tokens / 3)};
  if (random.word() % 4 == 0) return ask;
  // Two ids, so that prompts share prefixes of every length.
  for (std::uint32_t at = 0; at < ask.prompt; at += ask.trace_block)
    ask.ids.push_back(random.word() % 4 == 0 ? 1 : 0);
  return ask;
}

TEST(KvEvents, FollowedThroughTheWireTellWhatThePoolHolds) {
  Random random(11);
  std::uint64_t evictions = 0, preemptions = 0, stored = 0;
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t blocks = 4 + random.word() % 16;
    RankConfig config = a_rank(blocks, 16 + random.word() % 32, 2 + random.word() % 4);
    config.max_sequences = 1 + random.word() % 5;
    Rank rank(Mode::Stepping, config);
    Follower follower;
    std::set<std::uint64_t> names;
    for (int step = 0; step < 60; ++step) {
      if (step < 30 && random.word() % 2 == 0) {
        const Slot slot = rank.submit(a_random_ask(random, blocks * config.block_tokens));
        add_names(rank[slot], config.block_tokens, names);
      }
      rank.pass();
      follower.read(rank.outcome.events);
      std::size_t held = 0;
      for (const std::uint64_t name : names) {
        const bool is_there = rank.scheduler.pool().find(name) != cache::kNoBlock;
        held += is_there ? 1 : 0;
        ASSERT_EQ(follower.index.holds({}, name), is_there)
            << "round " << round << " step " << step << " block " << name;
      }
      ASSERT_EQ(follower.index.size({}), held);
    }
    EXPECT_EQ(follower.index.counts().unknown_removals, 0U);
    EXPECT_EQ(follower.index.counts().stored_again, 0U);
    EXPECT_EQ(follower.index.counts().orphan_stores, 0U);
    EXPECT_EQ(follower.index.orphans(), 0U) << "a parent leaves after its children";
    evictions += follower.index.counts().removed_blocks;
    stored += follower.index.counts().stored_blocks;
    preemptions += rank.scheduler.preemptions();
  }
  EXPECT_GT(evictions, 100U);
  EXPECT_GT(stored, evictions);
  EXPECT_GT(preemptions, 10U);
}

TEST(KvEvents, TokensAreThoseOfTheBlocks) {
  Rank rank(Mode::Stepping, a_rank(8, 32));
  rank.submit({.prompt = 8, .output = 1, .ids = {7, 9}});
  rank.drain();
  ASSERT_THAT(rank.events, SizeIs(1));
  EXPECT_EQ(rank.events[0].tokens, (std::vector<std::uint32_t>{7, 7, 7, 7, 9, 9, 9, 9}));
  EXPECT_EQ(rank.events[0].blocks[1].tokens_hash,
            local_block_hash(std::vector<std::uint32_t>{9, 9, 9, 9}));
}

TEST(KvEvents, ABlockIsRemovedWithItsLastCopyOnly) {  // bugs.md A21
  Rank rank(Mode::Stepping, a_rank(4, 32));
  rank.submit({.prompt = 4, .output = 1, .ids = {7}});
  rank.submit({.prompt = 4, .output = 1, .ids = {7}});
  rank.drain();
  ASSERT_THAT(rank.events, SizeIs(1)) << "two copies, one store";
  ASSERT_EQ(rank.inactive(), 2U);
  const std::uint64_t name = rank.events[0].blocks[0].hash;
  rank.events.clear();
  rank.submit({.prompt = 12, .output = 1});
  rank.drain();
  ASSERT_THAT(rank.events, SizeIs(1)) << "evicts one copy, tells only its own store";
  EXPECT_TRUE(rank.events[0].stored);
  rank.events.clear();
  rank.submit({.prompt = 4, .output = 1});
  rank.drain();
  ASSERT_THAT(rank.events, SizeIs(2));
  EXPECT_FALSE(rank.events[0].stored);
  ASSERT_THAT(rank.events[0].blocks, SizeIs(1));
  EXPECT_EQ(rank.events[0].blocks[0].hash, name);
}

TEST(KvEvents, BlocksEvictedTogetherAreOneRemoval) {  // bugs.md A23
  Rank rank(Mode::Stepping, a_rank(8, 32));
  rank.submit({.prompt = 32, .output = 1});
  rank.drain();
  rank.events.clear();
  rank.submit({.prompt = 32, .output = 1});
  rank.drain();
  ASSERT_THAT(rank.events, SizeIs(2));
  EXPECT_FALSE(rank.events[0].stored);
  EXPECT_THAT(rank.events[0].blocks, SizeIs(8));
}

TEST(KvEvents, ThereAreNoneWithoutPrefixCaching) {  // bugs.md A20
  for (const bool caching : {false, true}) {
    RankConfig config = a_rank(4, 32);
    config.prefix_caching = caching;
    Rank rank(Mode::Stepping, config);
    for (int i = 0; i < 3; ++i) rank.submit({.prompt = 8, .output = 2});
    rank.drain();
    EXPECT_EQ(rank.events.empty(), !caching);
  }
}

}  // namespace
}  // namespace servecast::scheduler
