// SPDX-License-Identifier: Apache-2.0
// Grouped ranks from end to end: the worked traces of engine-vllm.md 19.5 and 19.6 and the
// conformance cases C38-C40.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/a_grouped_rank.hpp"
#include "cache/grouped_gate.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;

// Steps of 8,192 tokens; a pool of 64 blocks unless said otherwise.
class Glm {
 public:
  explicit Glm(std::uint32_t checkpoints, std::uint32_t blocks = 64)
      : groups_(glm_groups(checkpoints)), rank_(settings(blocks)) {}
  TinyRank& operator*() { return rank_; }
  TinyRank* operator->() { return &rank_; }

 private:
  GroupedSettings settings(std::uint32_t blocks) {
    GroupedSettings s = a_setting(groups_, 2176, blocks);
    s.max_model_len = 20'000;
    EXPECT_TRUE(grouped_gate(s).prefix_caching);
    return s;
  }
  std::vector<KvGroup> groups_;
  TinyRank rank_;
};

const std::vector<std::uint32_t> kTurn1 = a_prompt(9000, 1);
const std::vector<std::uint32_t> kTurn2 = continued(kTurn1, 4000, 2);

TEST(GroupedTrace, APrefillStopsWhereItsStateIsKept) {
  Glm glm(0);
  const std::size_t turn1 = glm->submit(kTurn1, 1);
  glm->drain();
  EXPECT_EQ((*glm)[turn1].reused, 0U);
  EXPECT_THAT((*glm)[turn1].ends, ElementsAre(6528, 8704, 9000));
}

TEST(GroupedTrace, ACheckpointBlockSavesTheStop) {
  Glm glm(1);
  const std::size_t turn1 = glm->submit(kTurn1, 1);
  glm->drain();
  EXPECT_THAT((*glm)[turn1].ends, ElementsAre(6528, 9000));
}

TEST(GroupedTrace, AFinishedRequestLeavesItsBlocksAsCache) {
  for (const std::uint32_t checkpoints : {0U, 1U}) {
    Glm glm(checkpoints);
    glm->submit(kTurn1, 1);
    glm->drain();
    EXPECT_EQ(glm->cached(), 8U);  // four of attention and four states, all at 8,704
    EXPECT_EQ(glm->held(), 0U);
    EXPECT_EQ(glm->blocks().usage().physical(), 0.125);
    EXPECT_EQ(glm->blocks().usage().active(), 0);
  }
}

TEST(GroupedTrace, TheNextTurnResumesFromTheStateBeforeThePromptsEnd) {
  Glm glm(0);
  glm->submit(kTurn1, 1);
  glm->drain();
  const std::size_t turn2 = glm->submit(kTurn2, 1);
  glm->begin_pass();
  EXPECT_EQ((*glm)[turn2].reused, 8704U);
  EXPECT_EQ((*glm)[turn2].junction, std::nullopt);
  EXPECT_THAT((*glm)[turn2].ends, ElementsAre(10880));
  EXPECT_EQ(glm->held(), 14U);  // 5 of attention, 4 states read, 4 written, 1 ring
  glm->end_pass();
  EXPECT_EQ(glm->held(), 10U);
  glm->drain();
  const std::size_t turn3 = glm->submit(kTurn2, 1);
  glm->drain();
  EXPECT_EQ((*glm)[turn3].reused, 10880U);
}

TEST(GroupedTrace, TheNextTurnWithCheckpointsTakesOneChunk) {
  Glm glm(1);
  glm->submit(kTurn1, 1);
  glm->drain();
  const std::size_t turn2 = glm->submit(kTurn2, 2);
  glm->begin_pass();
  EXPECT_EQ((*glm)[turn2].reused, 8704U);
  EXPECT_THAT((*glm)[turn2].ends, ElementsAre(13000));
  EXPECT_EQ(glm->held(), 19U);  // 6 of attention, 4 states read, 4 checkpoints, 4 written, 1 ring
  glm->end_pass();
  EXPECT_EQ(glm->held(), 15U);
  glm->pass();
  const std::size_t turn3 = glm->submit(kTurn2, 1);
  glm->drain();
  EXPECT_EQ((*glm)[turn3].reused, 10880U);
}

TEST(GroupedTrace, ASharedPrefixIsKeptForTheThirdWhoHasIt) {
  Glm glm(0);
  glm->submit(kTurn1, 1);
  glm->drain();
  const std::vector<std::uint32_t> shared(kTurn1.begin(), kTurn1.begin() + 2176);
  const std::size_t second = glm->submit(continued(shared, 5000, 7), 1);
  glm->drain();
  EXPECT_EQ((*glm)[second].reused, 0U);
  EXPECT_EQ((*glm)[second].junction, 2176U);
  EXPECT_THAT((*glm)[second].ends, ElementsAre(2176, 6528, 7176));
  const std::size_t third = glm->submit(continued(shared, 3000, 8), 1);
  glm->drain();
  EXPECT_EQ((*glm)[third].reused, 2176U);
}

TEST(GroupedTrace, APromptThatNeverFitsIsRejected) {
  std::vector<KvGroup> groups = glm_groups();
  GroupedSettings s = a_setting(groups, 2176, 20);
  s.max_model_len = 20'000;
  TinyRank rank(s);
  const auto prompt = a_prompt(40'000, 1);
  const auto hashes = unit_hashes(prompt, 2176);
  EXPECT_EQ(rank.blocks().cold_need({.hashes = hashes, .prompt = 40'000, .known = 40'000}), 24U);
  const std::size_t request = rank.submit(prompt, 1);
  rank.pass();
  EXPECT_TRUE(rank[request].rejected);
}

// One group of full attention and one of states, blocks of 16 tokens, matched by 4: room for one
// request of 34 tokens.
class Small {
 public:
  Small() : groups_{full(16), state(16)}, rank_(settings()) {}
  TinyRank& operator*() { return rank_; }
  TinyRank* operator->() { return &rank_; }

 private:
  GroupedSettings settings() {
    GroupedSettings s = a_setting(groups_, 4, 5);
    s.max_model_len = 34;
    EXPECT_TRUE(grouped_gate(s).prefix_caching);
    return s;
  }
  std::vector<KvGroup> groups_;
  TinyRank rank_;
};

const std::vector<std::uint32_t> kShort = a_prompt(13, 1);
const std::vector<std::uint32_t> kLong = continued(kShort, 20, 2);

TEST(GroupedTrace, AHitMayNeedMoreThanAColdStart) {
  Small small;
  const std::size_t first = small->submit(kShort, 1);
  small->drain();
  EXPECT_THAT((*small)[first].ends, ElementsAre(12, 13));
  EXPECT_EQ(small->cached(), 2U);
  const auto hashes = unit_hashes(kLong, 4);
  const KnownTokens tokens{.hashes = hashes, .prompt = 33, .known = 33};
  GroupedLease lease;
  small->blocks().begin_step();  // the state is visible in the step after
  small->blocks().look_up(lease, tokens);
  EXPECT_EQ(lease.hit.tokens, 12U);
  EXPECT_EQ(small->blocks().full_need(lease, tokens), 7U);
  EXPECT_EQ(small->blocks().cold_need(tokens), 4U);
}

TEST(GroupedTrace, AHitThatNeverFitsIsDroppedWhenNobodyRuns) {
  Small small;
  small->submit(kShort, 1);
  small->drain();
  const std::size_t again = small->submit(kLong, 1);
  small->drain();
  EXPECT_TRUE((*small)[again].dropped_hit);
  EXPECT_EQ((*small)[again].reused, 0U);
  EXPECT_TRUE((*small)[again].finished);
}

TEST(GroupedTrace, AHitThatNeverFitsWaitsUntilOthersEvictIt) {
  Small small;
  small->submit(kShort, 1);
  small->drain();
  const std::size_t other = small->submit(a_prompt(14, 5), 20);
  small->pass();
  const std::size_t again = small->submit(kLong, 1);
  small->pass();
  EXPECT_TRUE(small->is_running(other));
  EXPECT_FALSE(small->is_running(again));
  small->drain();
  EXPECT_EQ((*small)[again].reused, 0U);
  EXPECT_FALSE((*small)[again].dropped_hit);
  EXPECT_TRUE((*small)[other].finished && (*small)[again].finished);
}

// Whatever vLLM estimates: a pool that the gate accepts runs one request of max_model_len.
TEST(GroupedTrace, OneRequestOfTheLargestLengthRunsInTheSmallestPool) {
  struct Case {
    std::vector<KvGroup> groups;
    std::uint32_t unit, blocks, max_model_len, prompt, outputs;
  };
  const std::vector<Case> cases{
      {{full(16), state(16)}, 4, 5, 40, 39, 1},  // its last step copies a state
      {{full(16), state(16)}, 4, 5, 40, 20, 20},
      {{full(4), window(4, 9)}, 4, 19, 40, 30, 10},
      {glm_groups(0), 2176, 70, 131'072, 131'000, 3},
      {glm_groups(1), 2176, 74, 131'072, 131'000, 3},  // its last chunk spans positions
  };
  for (const Case& c : cases) {
    GroupedSettings s = a_setting(c.groups, c.unit, c.blocks);
    s.max_model_len = c.max_model_len;
    s.max_num_batched_tokens = c.unit == 4 ? 24 : 8192;
    ASSERT_TRUE(grouped_gate(s).prefix_caching);
    s.capacity_bytes -= kPage;
    ASSERT_FALSE(grouped_gate(s).prefix_caching);
    s.capacity_bytes += kPage;
    TinyRank rank(s);
    const std::size_t request = rank.submit(a_prompt(c.prompt, 1), c.outputs);
    while (!rank[request].finished) {
      rank.begin_pass();
      ASSERT_TRUE(rank.is_running(request)) << c.prompt;
      rank.end_pass();
    }
    // And once more, with what the first one left.
    const std::size_t again = rank.submit(a_prompt(c.prompt, 1), c.outputs);
    rank.drain();
    EXPECT_TRUE(rank[again].finished);
  }
}

TEST(GroupedTrace, WithoutChunkedPrefillOnlyWhatFollowsTheHitMustFitTheBudget) {
  const std::vector<KvGroup> groups{full(4), state(4)};
  GroupedSettings s = a_setting(groups, 4, 64);
  s.max_num_batched_tokens = 16;
  TinyRank rank(s, /*chunked_prefill=*/false);
  const auto prompt = a_prompt(15, 1);
  // Leaves the state after 12 tokens: with chunks of a budget of 16 the prompt is cut there.
  rank.submit(prompt, 1);
  rank.drain();
  for (const std::uint32_t seed : {2U, 3U}) rank.submit(a_prompt(3, seed), 30);
  rank.pass();
  const std::size_t hit = rank.submit(prompt, 1), cold = rank.submit(a_prompt(15, 4), 1);
  rank.begin_pass();
  EXPECT_EQ(rank[hit].reused, 12U);  // 3 tokens of the 14 that are left
  EXPECT_THAT(rank[hit].ends, ElementsAre(15));
  EXPECT_FALSE(rank.is_running(cold));  // 15 tokens of 11
  rank.end_pass();
}

}  // namespace
}  // namespace servecast::cache
