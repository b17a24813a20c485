// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::Each;
using testing::ElementsAre;

// A prompt and what is generated after it, with the lease.
struct Request {
  Request(std::vector<std::uint32_t> all_tokens, std::uint32_t prompt_tokens, std::uint32_t unit)
      : tokens(std::move(all_tokens)), prompt(prompt_tokens), hashes(unit_hashes(tokens, unit)) {}

  KnownTokens known() const {
    return {.hashes = hashes, .prompt = prompt, .known = static_cast<std::uint32_t>(tokens.size())};
  }
  std::vector<std::uint32_t> tokens;
  std::uint32_t prompt;
  std::vector<std::uint64_t> hashes;
  GroupedLease lease = {};
};

class Pool {
 public:
  Pool(const std::vector<KvGroup>& groups, std::uint32_t unit, std::uint32_t blocks,
       bool key_output_blocks = true)
      : unit_(unit), blocks_(grouped_rules(settings(groups, blocks, key_output_blocks))) {
    blocks_.begin_step();
  }
  GroupedBlocks* operator->() { return &blocks_; }

  Request request(std::uint32_t prompt, std::uint32_t generated = 0, std::uint32_t seed = 1) const {
    return {continued(a_prompt(prompt, seed), generated, 99), prompt, unit_};
  }
  // Admits it and computes up to each of these ends, each in a step of its own.
  void run(Request& request, const std::vector<std::uint32_t>& ends) {
    for (const std::uint32_t end : ends) {
      blocks_.begin_step();
      if (request.lease.admitted) {
        SERVECAST_CHECK(
            blocks_.allocate(request.lease, request.known(), end - request.lease.computed));
      } else {
        blocks_.look_up(request.lease, request.known());
        blocks_.admit(request.lease, request.known(), end - request.lease.hit.tokens);
      }
    }
    blocks_.end_step();
  }
  // Leaves what a request with these ends caches.
  void leave(const std::vector<std::uint32_t>& ends, std::uint32_t prompt,
             std::uint32_t generated = 0, std::uint32_t seed = 1) {
    Request one = request(prompt, generated, seed);
    run(one, ends);
    blocks_.release(one.lease);
    blocks_.begin_step();
  }
  GroupedHit look_up(const Request& request) {
    GroupedLease lease;
    blocks_.look_up(lease, request.known());
    return lease.hit;
  }
  // Does the group have a block for this prefix of the request?
  bool has(const Request& request, std::uint32_t group, std::uint32_t at) const {
    const GroupKey key{.hash = request.hashes[at / unit_ - 1], .group = group};
    return blocks_.pool().find(key) != kNoBlock;
  }
  // Prefixes of which the group has a block.
  std::vector<std::uint32_t> kept(const Request& request, std::uint32_t group) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t at = unit_; at <= request.tokens.size(); at += unit_) {
      if (has(request, group, at)) found.push_back(at);
    }
    return found;
  }

 private:
  static GroupedSettings settings(const std::vector<KvGroup>& groups, std::uint32_t unit,
                                  std::uint32_t blocks, bool key_output_blocks) {
    GroupedSettings s = a_setting(groups, unit, blocks);
    s.key_output_blocks = key_output_blocks;
    s.max_model_len = 8;  // so that small pools pass
    s.max_num_batched_tokens = 64;
    return s;
  }
  GroupedSettings settings(const std::vector<KvGroup>& groups, std::uint32_t blocks,
                           bool key_output_blocks) const {
    return settings(groups, unit_, blocks, key_output_blocks);
  }
  std::uint32_t unit_;
  GroupedBlocks blocks_;
};

TEST(GroupedNeed, OfAColdRequestIsTheSumOverItsGroups) {
  Pool pool({full(4), state(4), state(4, 0, "b"), ring(4)}, 4, 50);
  Request request = pool.request(30);
  EXPECT_EQ(pool->cold_need(request.known()), 8U + 1 + 1 + 1);
  pool->look_up(request.lease, request.known());
  EXPECT_EQ(pool->full_need(request.lease, request.known()), 11U);
  EXPECT_EQ(pool->need(request.lease, request.known(), 8), 2U + 1 + 1 + 1);
}

TEST(GroupedNeed, OfAWindowIsCappedForTheWholeSequenceAndNotForAChunk) {
  // max_model_len is 8, so the cap is cdiv(min(8 + 64, 8), 4) + 1 = 3 blocks.
  Pool pool({full(4), window(4, 9)}, 4, 50);
  Request request = pool.request(40);
  pool->look_up(request.lease, request.known());
  EXPECT_EQ(pool->full_need(request.lease, request.known()), 10U + 3);
  EXPECT_EQ(pool->cold_need(request.known()), 10U + 3);
  EXPECT_EQ(pool->need(request.lease, request.known(), 40), 10U + 10);
}

TEST(GroupedNeed, CountsHitBlocksThatNobodyHolds) {
  Pool pool({full(4), window(4, 5)}, 4, 50);
  pool.leave({20}, 20);
  Request first = pool.request(24), second = pool.request(24);
  pool->look_up(first.lease, first.known());
  EXPECT_EQ(first.lease.hit.tokens, 16U);
  // Four blocks of attention and one of the window become held, two each are new.
  EXPECT_EQ(pool->need(first.lease, first.known(), 8), 4U + 1 + 2 + 2);
  pool->admit(first.lease, first.known(), 8);
  EXPECT_EQ(pool->pool().held(), 9U);
  pool->look_up(second.lease, second.known());
  EXPECT_EQ(second.lease.hit.tokens, 20U);
  // Held but for the block up to 20: the older one is found, which nobody has taken again.
  EXPECT_EQ(pool->need(second.lease, second.known(), 4), 1U + 1 + 1);
}

TEST(GroupedNeed, OfARunningRequestIsWhatItsTablesLack) {
  Pool pool({full(4), window(4, 5), state(4), ring(4)}, 4, 50);
  Request request = pool.request(8, 8);
  pool.run(request, {8});
  EXPECT_EQ(pool->need(request.lease, request.known(), 1), 1U + 1 + 1);
  pool.run(request, {9});
  EXPECT_EQ(pool->need(request.lease, request.known(), 1), 0U);
  EXPECT_EQ(pool->need(request.lease, request.known(), 4), 1U + 1 + 1);
}

TEST(GroupedNeed, OfAStateThatEndsInsideABlockIncludesTheCopies) {
  Pool pool({full(16), state(16)}, 4, 50);
  pool.leave({12}, 12);
  Request request = pool.request(13);
  pool->look_up(request.lease, request.known());
  ASSERT_EQ(request.lease.hit.tokens, 12U);
  // Attention: the hit and its copy. State: the hit, its copy, and one that vLLM counts though the
  // token goes into the copy.
  EXPECT_EQ(pool->need(request.lease, request.known(), 1), 2U + 3);
  pool->admit(request.lease, request.known(), 1);
  EXPECT_EQ(pool->pool().held(), 4U);
}

TEST(GroupedNeed, OfARequestWhosePublishedTailIsWrittenOverIncludesACopy) {
  Pool pool({full(16), state(16)}, 4, 50);
  Request request = pool.request(14, 1);
  pool.run(request, {12});
  EXPECT_TRUE(request.lease.tail_published);
  EXPECT_EQ(pool->need(request.lease, request.known(), 2), 2U);  // again one more than is taken
  const std::uint32_t held = pool->pool().held();
  pool->begin_step();
  ASSERT_TRUE(pool->allocate(request.lease, request.known(), 2));
  EXPECT_EQ(pool->pool().held(), held + 1);
  EXPECT_FALSE(request.lease.tail_published);
  pool->end_step();
  EXPECT_EQ(pool->pool().held(), held);
  EXPECT_EQ(pool->pool().cached(), 1U);  // the copy, which others find
  EXPECT_TRUE(pool.has(request, 1, 12));
}

TEST(GroupedNeed, OfACheckpointIsOneMoreBlock) {
  Pool pool({full(4), state(4, 1)}, 4, 50);
  Request request = pool.request(18);
  EXPECT_EQ(pool->cold_need(request.known()), 5U + 2);
  pool.run(request, {8});
  // Running: every position up to the end counts, as in vLLM; two are taken.
  EXPECT_EQ(pool->need(request.lease, request.known(), 10), 3U + 3);
  pool.run(request, {18});
  EXPECT_EQ(request.lease.blocks(), 5U + 3);
}

TEST(GroupedNeed, IsMoreThanThePoolWhileTheStateIsOfThisStep) {
  Pool pool({full(4), state(4)}, 4, 50);
  Request first = pool.request(10), second = pool.request(10);
  pool->look_up(first.lease, first.known());
  pool->admit(first.lease, first.known(), 8);
  pool->look_up(second.lease, second.known());
  EXPECT_EQ(second.lease.hit.tokens, 8U);
  EXPECT_EQ(pool->full_need(second.lease, second.known()), 51U);
  EXPECT_EQ(pool->need(second.lease, second.known(), 2), 51U);
  pool->begin_step();
  EXPECT_FALSE(pool->look_up(second.lease, second.known()));  // nothing new to find
  EXPECT_LT(pool->full_need(second.lease, second.known()), 50U);
}

TEST(GroupedBlocks, OfAttentionAreVisibleInTheSameStep) {
  Pool pool({full(4), window(4, 5)}, 4, 50);
  Request first = pool.request(10), second = pool.request(10);
  pool->look_up(first.lease, first.known());
  pool->admit(first.lease, first.known(), 10);
  pool->look_up(second.lease, second.known());
  EXPECT_EQ(second.lease.hit.tokens, 8U);
  pool->admit(second.lease, second.known(), 2);
  EXPECT_EQ(second.lease.tables[0].blocks[1], first.lease.tables[0].blocks[1]);
}

TEST(GroupedBlocks, ThatWereHitStayAtTheirPlaceUntilAdmission) {
  Pool pool({full(4)}, 4, 5);
  pool.leave({8}, 8, 0, 1);
  pool.leave({8}, 8, 0, 2);
  Request waiting = pool.request(9, 0, 1);
  EXPECT_TRUE(pool->look_up(waiting.lease, waiting.known()));
  EXPECT_EQ(waiting.lease.hit.tokens, 8U);
  EXPECT_EQ(pool->available(), 5U);
  // The oldest goes first all the same, and of the request's the last one.
  Request other = pool.request(8, 0, 3);
  pool.run(other, {8});
  EXPECT_TRUE(pool->look_up(waiting.lease, waiting.known()));
  EXPECT_EQ(waiting.lease.hit.tokens, 4U);
}

TEST(GroupedBlocks, OfAllGroupsThatWereHitAreKeptFromTheAdmissionsOwnEvictions) {
  Pool pool({full(4), window(4, 5)}, 4, 6);
  pool.leave({9}, 9);  // three cached: 4 and 8 of attention, 8 of the window
  EXPECT_EQ(pool->pool().cached(), 3U);
  Request request = pool.request(13);
  pool->look_up(request.lease, request.known());
  ASSERT_EQ(request.lease.hit.tokens, 8U);
  EXPECT_EQ(pool->need(request.lease, request.known(), 4), 3U + 2);
  pool->admit(request.lease, request.known(), 4);
  EXPECT_EQ(pool->pool().evictions(), 0U);
  EXPECT_EQ(request.lease.blocks(), 5U);
}

TEST(GroupedBlocks, AreReleasedTailFirstAndGroupByGroup) {
  Pool pool({full(4), window(4, 9)}, 4, 12);
  Request request = pool.request(16);
  pool.run(request, {16});
  pool->release(request.lease);
  EXPECT_FALSE(request.lease.admitted);
  ASSERT_EQ(pool.kept(request, 0), (std::vector<std::uint32_t>{4, 8, 12, 16}));
  ASSERT_EQ(pool.kept(request, 1), (std::vector<std::uint32_t>{8, 12}));
  EXPECT_EQ(pool->pool().free(), 6U);
  // Six are free; each further block of another request evicts the oldest.
  Request other = pool.request(40, 0, 5);
  pool->look_up(other.lease, other.known());
  pool->admit(other.lease, other.known(), 12);
  for (const std::uint32_t left : {3U, 2U}) {
    ASSERT_TRUE(pool->allocate(other.lease, other.known(), 1));
    ASSERT_TRUE(pool->allocate(other.lease, other.known(), 3));
    EXPECT_LE(pool.kept(request, 0).size(), left);
    EXPECT_EQ(pool.kept(request, 1).size(), 2U);
  }
}

TEST(GroupedBlocks, OfAWindowAreGivenBackAtTheNextAllocation) {
  Pool pool({window(4, 5)}, 4, 20);
  Request request = pool.request(32);
  pool.run(request, {16});
  EXPECT_EQ(request.lease.blocks(), 4U);
  pool.run(request, {24});
  EXPECT_EQ(request.lease.blocks(), 3U);  // tokens 12 to 16 are read, 16 to 24 computed
  EXPECT_THAT(std::vector(request.lease.tables[0].blocks.begin(),
                          request.lease.tables[0].blocks.begin() + 3),
              Each(kNoBlock));
}

TEST(GroupedBlocks, OfAStateAreTheOneReadAndTheOneWritten) {
  Pool pool({state(4)}, 4, 20);
  Request request = pool.request(30);
  for (const std::uint32_t end : {8U, 16U, 28U}) {
    pool.run(request, {end});
    EXPECT_EQ(request.lease.blocks(), end == 8 ? 1U : 2U);
  }
  pool.run(request, {29, 30});  // both in the block after, the one read goes with the second
  EXPECT_EQ(request.lease.blocks(), 1U);
}

TEST(GroupedBlocks, AFailedAllocationChangesNothing) {
  Pool pool({full(4), window(4, 5)}, 4, 8);
  Request request = pool.request(12, 10), other = pool.request(4, 0, 2);
  pool.run(request, {12});
  pool.run(other, {4});
  const GroupedPool& blocks = pool->pool();
  const std::uint64_t mutations = blocks.mutations();
  EXPECT_EQ(blocks.available(), 0U);
  // It would give back two of the window's blocks and needs six.
  EXPECT_FALSE(pool->allocate(request.lease, request.known(), 10));
  EXPECT_EQ(blocks.available(), 0U);
  EXPECT_EQ(blocks.mutations(), mutations);
  EXPECT_EQ(request.lease.computed, 12U);
  EXPECT_TRUE(pool->allocate(request.lease, request.known(), 4));  // two for two
  pool->verify(std::vector<const GroupedLease*>{&request.lease, &other.lease});
}

TEST(GroupedBlocks, GivesBackNoRoomWhereOthersHoldTheBlocksToo) {
  Pool pool({window(4, 5)}, 4, 6);
  Request first = pool.request(12, 4), second = pool.request(12, 4);
  pool.run(first, {12});
  pool.run(second, {12});  // shares the block before 8 and has one of its own
  EXPECT_EQ(pool->available(), 2U);
  EXPECT_TRUE(pool->allocate(first.lease, first.known(), 4));
  pool->verify(std::vector<const GroupedLease*>{&first.lease, &second.lease});
}

TEST(GroupedKeys, OfAWindowAreThoseAtTheEndOfThePromptAndOfASharedPrefix) {
  Pool pool({full(4), window(4, 9)}, 4, 50);
  Request first = pool.request(30);
  pool.run(first, {30});
  EXPECT_THAT(pool.kept(first, 1), ElementsAre(24, 28));  // two blocks before 28 = floor(29)
  EXPECT_EQ(pool.kept(first, 0).size(), 7U);
  // Another one that shares 14 tokens finds attention for 12 and no window there.
  Request second{continued(std::vector(first.tokens.begin(), first.tokens.begin() + 14), 20, 9), 34,
                 4};
  pool->look_up(second.lease, second.known());
  EXPECT_EQ(second.lease.hit.tokens, 0U);
  EXPECT_EQ(second.lease.hit.junction, 12U);
  pool->admit(second.lease, second.known(), 34);
  EXPECT_THAT(pool.kept(second, 1), ElementsAre(8, 12, 28, 32));
}

TEST(GroupedKeys, OfPromptsAloneOrOfOutputsToo) {
  for (const bool outputs : {true, false}) {
    Pool pool({full(4), window(4, 5), chunked(4, 8)}, 4, 50, outputs);
    Request request = pool.request(10, 10);
    pool.run(request, {10, 20});
    EXPECT_EQ(pool.kept(request, 0).back(), outputs ? 20U : 8U);
    EXPECT_THAT(pool.kept(request, 1), ElementsAre(8));
    EXPECT_EQ(pool.kept(request, 2).back(), outputs ? 20U : 8U);
  }
}

TEST(GroupedKeys, OfUnequalBlocksEndAtTheCommonAlignment) {
  Pool pool({full(4), full(12, "wide")}, 4, 50);
  Request request = pool.request(22);
  pool.run(request, {22});
  EXPECT_THAT(pool.kept(request, 0), ElementsAre(4, 8, 12));  // 16 and 20 could serve no hit
  EXPECT_THAT(pool.kept(request, 1), ElementsAre(12));
}

TEST(GroupedKeys, OfAStateAreTheLastBoundaryBeforeTheEndOfThePromptOnly) {
  Pool pool({full(4), state(4)}, 4, 50);
  Request request = pool.request(14, 6);
  pool.run(request, {4, 8, 12, 14, 15, 16, 17});
  EXPECT_THAT(pool.kept(request, 1), ElementsAre(12));
  Request aligned = pool.request(16, 0, 2);  // computed in one go: nothing before its end
  pool.run(aligned, {16});
  EXPECT_TRUE(pool.kept(aligned, 1).empty());
}

TEST(GroupedKeys, OfAPromptThatEndsInsideABlockAreItsLastUnitToo) {
  Pool pool({full(16), state(16)}, 4, 50);
  Request request = pool.request(27, 10);
  pool.run(request, {16, 24, 27, 28});
  EXPECT_THAT(pool.kept(request, 0), ElementsAre(16, 24));
  EXPECT_THAT(pool.kept(request, 1), ElementsAre(16, 24));
  pool.run(request, {32});  // the block is full now and serves both prefixes
  EXPECT_THAT(pool.kept(request, 0), ElementsAre(16, 24, 32));
  EXPECT_EQ(pool.look_up(pool.request(40)).tokens, 24U);
}

TEST(GroupedKeys, OfACheckpointNameThePrefixInside) {
  Pool pool({full(16), state(16, 1)}, 4, 50);
  Request request = pool.request(47);
  pool.run(request, {47});
  EXPECT_THAT(pool.kept(request, 1), ElementsAre(44));
  EXPECT_THAT(pool.kept(request, 0), ElementsAre(16, 32, 44));
  pool->begin_step();
  EXPECT_EQ(pool.look_up(pool.request(47)).tokens, 44U);
}

TEST(GroupedKeys, OfACopyAreWaitedFor) {
  Pool pool({full(16), state(16)}, 4, 50);
  Request owner = pool.request(14, 1), other = pool.request(14);
  pool.run(owner, {12});
  pool->begin_step();
  ASSERT_TRUE(pool->allocate(owner.lease, owner.known(), 2));  // the state moves into a copy
  pool->look_up(other.lease, other.known());
  EXPECT_EQ(other.lease.hit.tokens, 12U);
  EXPECT_EQ(pool->full_need(other.lease, other.known()), 51U);
  pool->begin_step();
  pool->look_up(other.lease, other.known());
  pool->admit(other.lease, other.known(), 2);
  pool->verify(std::vector<const GroupedLease*>{&owner.lease, &other.lease});
}

TEST(GroupedBlocks, OfAPreemptedRequestLoseTheKeysOfTheStep) {
  Pool pool({full(4), state(4)}, 4, 50);
  Request request = pool.request(14);
  pool.run(request, {8});
  pool->begin_step();
  ASSERT_TRUE(pool->allocate(request.lease, request.known(), 4));
  EXPECT_TRUE(pool.has(request, 0, 12) && pool.has(request, 1, 12));
  pool->preempt(request.lease);
  EXPECT_THAT(pool.kept(request, 0), ElementsAre(4, 8));  // those of the step before
  EXPECT_FALSE(pool.has(request, 1, 12));
  EXPECT_EQ(pool->pool().held(), 0U);
  EXPECT_FALSE(request.lease.admitted);
}

TEST(GroupedBlocks, OfAFinishedRequestKeepTheKeysOfTheStep) {
  Pool pool({full(4), state(4)}, 4, 50);
  Request request = pool.request(14);
  pool.run(request, {12});
  pool->release(request.lease);
  EXPECT_TRUE(pool.has(request, 0, 12) && pool.has(request, 1, 12));
}

TEST(GroupedBlocks, RememberALookupUntilKeysChange) {
  Pool pool({full(4)}, 4, 50);
  pool.leave({8}, 8);
  Request waiting = pool.request(12), other = pool.request(3, 0, 2), third = pool.request(4, 0, 3);
  EXPECT_TRUE(pool->look_up(waiting.lease, waiting.known()));
  EXPECT_FALSE(pool->look_up(waiting.lease, waiting.known()));
  pool.run(other, {3});  // takes a block but no key
  EXPECT_FALSE(pool->look_up(waiting.lease, waiting.known()));
  pool.run(third, {4});
  EXPECT_TRUE(pool->look_up(waiting.lease, waiting.known()));
  EXPECT_EQ(waiting.lease.hit.tokens, 8U);
}

TEST(GroupedBlocks, DropAHitUntilKeysChange) {
  Pool pool({full(4)}, 4, 50);
  pool.leave({8}, 8);
  Request waiting = pool.request(12);
  pool->look_up(waiting.lease, waiting.known());
  pool->drop_hit(waiting.lease);
  EXPECT_EQ(waiting.lease.hit.tokens, 0U);
  EXPECT_FALSE(pool->look_up(waiting.lease, waiting.known()));
  EXPECT_EQ(pool->full_need(waiting.lease, waiting.known()), 3U);
  pool->admit(waiting.lease, waiting.known(), 12);
  EXPECT_EQ(waiting.lease.computed, 12U);
}

TEST(GroupedBlocks, AStateThatWasHitIsHeldUntilTheStepEnds) {
  Pool pool({full(4), state(4)}, 4, 50);
  pool.leave({12, 14}, 14);
  Request request = pool.request(20);
  pool->look_up(request.lease, request.known());
  ASSERT_EQ(request.lease.hit.tokens, 12U);
  pool->admit(request.lease, request.known(), 8);
  EXPECT_EQ(pool->held_for_step().size(), 1U);
  EXPECT_EQ(pool->pool().held(), 5U + 1 + 1);
  pool->end_step();
  EXPECT_EQ(pool->pool().held(), 5U + 1);
  EXPECT_TRUE(pool.has(request, 1, 12));
}

TEST(GroupedBlocks, NextTokensEndAtTheBudgetAndAtTheSplit) {
  Pool pool({full(4), state(4)}, 4, 50);
  Request request = pool.request(30, 1);
  pool->look_up(request.lease, request.known());
  EXPECT_EQ(pool->next_tokens(request.lease, request.known(), 64), 28U);
  EXPECT_EQ(pool->next_tokens(request.lease, request.known(), 10), 8U);
  EXPECT_EQ(pool->next_tokens(request.lease, request.known(), 0), 0U);
  pool.run(request, {28, 30, 31});
  EXPECT_EQ(pool->next_tokens(request.lease, request.known(), 64), 0U);
  Pool plain({full(4), window(4, 5)}, 4, 50);
  plain->look_up(request.lease = {}, request.known());
  EXPECT_EQ(plain->next_tokens(request.lease, request.known(), 10), 10U);
}

TEST(GroupedUsage, CountsCachedBlocksAsPhysicalOnly) {
  Pool pool({full(4)}, 4, 8);
  pool.leave({8}, 8);
  Request request = pool.request(12, 0, 2);
  pool.run(request, {12});
  const GroupedUsage usage = pool->usage();
  EXPECT_EQ(usage.used_bytes, 3 * kPage);
  EXPECT_EQ(usage.cached_bytes, 2 * kPage);
  EXPECT_EQ(usage.capacity_bytes, 8 * kPage);
  EXPECT_EQ(usage.active(), 0.375);
  EXPECT_EQ(usage.physical(), 0.625);
}

}  // namespace
}  // namespace servecast::cache
