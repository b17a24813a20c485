// SPDX-License-Identifier: Apache-2.0
// Who may enter, in the reference mode and in the fast mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;

class VllmAdmission : public testing::TestWithParam<Mode> {
 protected:
  Mode mode() const { return GetParam(); }
  bool stepping() const { return mode() == Mode::Stepping; }
};

INSTANTIATE_TEST_SUITE_P(, VllmAdmission, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return name_of(mode.param);
                         });

// Who may enter.

TEST_P(VllmAdmission, ActiveHitsNeedNoRoom) {  // C10
  Rank rank(mode(), a_rank(3, 100));
  rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  const Slot b = rank.submit({.prompt = 12, .output = 1, .ids = {1, 2, 3}});
  rank.pass();
  EXPECT_EQ(rank[b].ending, Ending::Completed) << "needed 3 - 2 blocks, 1 was free";
  EXPECT_EQ(rank[b].reused_first, 8U);
}

TEST_P(VllmAdmission, InactiveHitsNeedRoom) {  // C10, second half
  Rank rank(mode(), a_rank(3, 100));
  rank.submit({.prompt = 8, .output = 1, .ids = {1, 2}});
  rank.drain();
  rank.submit({.prompt = 3, .output = 2});
  const Slot b = rank.submit({.prompt = 12, .output = 1, .ids = {1, 2, 3}});
  rank.pass();
  EXPECT_EQ(rank[b].state, State::Waiting) << "needed 3 blocks, 2 were not active";
  rank.pass();  // the other one completes
  rank.pass();
  EXPECT_EQ(rank[b].ending, Ending::Completed);
  EXPECT_EQ(rank[b].reused_first, 8U);
}

TEST_P(VllmAdmission, RejectsWhatNeverFitsAndTakesWhatMayNotFitLater) {  // C11
  Rank rank(mode(), a_rank(4, 100));
  const Slot large = rank.submit({.prompt = 20, .output = 1});
  const Slot exact = rank.submit({.prompt = 16, .output = 1});
  rank.pass();
  EXPECT_EQ(rank[large].ending, Ending::Rejected);
  EXPECT_EQ(rank[large].reason, Reason::PoolTooSmall);
  EXPECT_EQ(rank[large].kv_needed, 5U);
  EXPECT_EQ(rank.scheduler.kv_limit(), 4U);
  EXPECT_EQ(rank[large].first_token, kNever);
  EXPECT_EQ(rank[large].first_admit, kNever);
  EXPECT_EQ(rank[exact].ending, Ending::Completed) << "no block is held back (bugs.md A04)";
  EXPECT_THAT(rank.outcome.ended, ElementsAre(exact, large)) << "rejected ones come last";
  const Slot long_output = rank.submit({.prompt = 8, .output = 32});
  rank.pass();
  EXPECT_EQ(rank[long_output].state, State::Running);
}

TEST_P(VllmAdmission, TheModelLengthRejectsPromptsAndEndsOutputs) {  // C15
  RankConfig config = a_rank(16, 100);
  config.max_model_len = 8;
  Rank rank(mode(), config);
  const Slot eight = rank.submit({.prompt = 8, .output = 1});
  const Slot nine = rank.submit({.prompt = 9, .output = 1});
  const Slot seven = rank.submit({.prompt = 7, .output = 4});
  const Slot five = rank.submit({.prompt = 5, .output = 9});
  EXPECT_EQ(rank.drain(), 3);
  for (const Slot slot : {eight, nine}) {
    EXPECT_EQ(rank[slot].ending, Ending::Rejected);
    EXPECT_EQ(rank[slot].reason, Reason::ModelLength);
    EXPECT_EQ(rank[slot].generated, 0U);
  }
  EXPECT_EQ(rank[seven].ending, Ending::Completed);
  EXPECT_EQ(rank[seven].generated, 1U);
  EXPECT_EQ(rank[seven].last_token, Time{10});
  EXPECT_EQ(rank[five].ending, Ending::Completed);
  EXPECT_EQ(rank[five].generated, 3U);
}

TEST_P(VllmAdmission, ARequestWithoutOutputEndsWithoutAToken) {  // C16
  Rank rank(mode(), a_rank(8, 100));
  const Ask ask{.prompt = 4, .output = 0, .ids = {1}};
  const Slot first = rank.submit(ask);
  rank.pass();
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank[first].first_token, kNever);
  EXPECT_EQ(rank[first].reused_first, 0U);
  EXPECT_EQ(rank.shape.prefill_isl, 4U);
  EXPECT_EQ(rank.shape.decode_requests, 0U);
  const Slot again = rank.submit(ask);
  rank.pass();
  EXPECT_EQ(rank[again].ending, Ending::Completed);
  EXPECT_EQ(rank[again].reused_first, 4U) << "nothing must be computed, so all may be hit";
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 0U);
  EXPECT_EQ(rank.shape.decode_context, 0U);
  EXPECT_EQ(rank.inactive(), 1U);
}

TEST_P(VllmAdmission, AdmissionIsStrictlyFirstComeFirstServed) {
  Rank rank(mode(), a_rank(4, 100));
  rank.submit({.prompt = 8, .output = 3});
  rank.pass();
  const Slot head = rank.submit({.prompt = 16, .output = 1});
  const Slot small = rank.submit({.prompt = 1, .output = 1});
  rank.pass();
  EXPECT_EQ(rank[small].state, State::Waiting) << "it would fit, but it is not its turn";
  rank.drain();
  EXPECT_LE(rank[head].first_admit, rank[small].first_admit);
}

TEST_P(VllmAdmission, NoMoreRunThanThereAreSeats) {
  RankConfig config = a_rank(100, 100);
  config.max_sequences = 2;
  Rank rank(mode(), config);
  for (int i = 0; i < 5; ++i) rank.submit({.prompt = 1, .output = 2});
  rank.pass();
  EXPECT_EQ(rank.scheduler.running(), 2U);
  EXPECT_EQ(rank.scheduler.waiting(), 3U);
  EXPECT_EQ(rank.drain(), 5);
}

TEST_P(VllmAdmission, APassAdmitsNobodyWhenItIsTold) {
  Rank rank(mode(), a_rank(100, 100));
  rank.submit({.prompt = 1, .output = 9});
  rank.pass();
  rank.submit({.prompt = 1, .output = 1});
  rank.pass(Admit::No);
  EXPECT_EQ(rank.scheduler.waiting(), 1U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
}

TEST_P(VllmAdmission, SubmitSaysWhetherTheNextPassMayTreatTheRequest) {
  RankConfig config = a_rank(4, 100);
  config.max_sequences = 2;
  Rank rank(mode(), config);
  rank.submit({.prompt = 8, .output = 9});
  EXPECT_TRUE(rank.testable);
  rank.pass();
  rank.submit({.prompt = 12, .output = 1});  // 2 blocks are free
  EXPECT_TRUE(rank.testable) << "nobody has tested this one yet";
  rank.pass();
  rank.submit({.prompt = 1, .output = 1});
  EXPECT_FALSE(rank.testable) << "its head waits for blocks";
  rank.drain();

  rank.submit({.prompt = 1, .output = 9});
  rank.submit({.prompt = 1, .output = 9});
  rank.pass();
  rank.submit({.prompt = 1, .output = 1});
  EXPECT_FALSE(rank.testable) << "no seat is free";
}

// decisions.md 17: a rejection and one admission without tokens fit into a pass that is full.
TEST_P(VllmAdmission, AFullPassStillRejectsAndTakesOneRequestThatNeedsNothing) {
  Rank rank(mode(), a_rank(4, 4));
  const Ask nothing{.prompt = 4, .output = 0, .ids = {1}};
  rank.submit({.prompt = 4, .output = 1, .ids = {1}});
  rank.drain();
  const Slot full = rank.submit({.prompt = 4, .output = 2, .ids = {2}});
  const Slot rejected = rank.submit({.prompt = 20, .output = 1});
  const Slot first = rank.submit(nothing);
  const Slot second = rank.submit(nothing);
  rank.pass();
  EXPECT_EQ(rank[full].state, State::Running);
  EXPECT_EQ(rank[rejected].ending, Ending::Rejected);
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank[first].reused_first, 4U);
  EXPECT_EQ(rank[second].state, State::Waiting);
  rank.drain();
  EXPECT_EQ(rank[second].ending, Ending::Completed);
}

// seam-notes W3: a half-full block of a running prefill becomes an active hit of the waiting head
// without taking a block.
TEST_P(VllmAdmission, AHeadThatWaitsForBlocksEntersWhenARunningPrefillSealsItsPrefix) {
  Rank rank(mode(), a_rank(4, 7));
  rank.submit({.prompt = 12, .output = 4, .ids = {1, 2, 3}});
  const Slot head = rank.submit({.prompt = 16, .output = 1, .ids = {1, 2, 3, 4}});
  rank.pass();
  EXPECT_EQ(rank[head].state, State::Waiting);
  rank.pass();
  EXPECT_EQ(rank[head].state, State::Running);
  EXPECT_EQ(rank[head].first_admit, Time{10});
  EXPECT_EQ(rank[head].reused_first, 12U);
}

// Without chunked prefill (decisions.md 12).

TEST_P(VllmAdmission, AWholePromptWaitsForAPassThatHoldsIt) {
  Rank rank(mode(), whole_prompts(32, 12));
  const Slot a = rank.submit({.prompt = 8, .output = 1});
  const Slot b = rank.submit({.prompt = 8, .output = 1});
  rank.pass();
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  EXPECT_EQ(rank[b].state, State::Waiting);
  rank.pass();
  EXPECT_EQ(rank[b].ending, Ending::Completed);
  EXPECT_EQ(rank.shape.prefill_isl, 8U);
}

TEST_P(VllmAdmission, APromptThatNoPassHoldsIsRejectedAtTheHead) {  // C21
  Rank rank(mode(), whole_prompts(32, 12));
  const Slot exact = rank.submit({.prompt = 12, .output = 1});
  const Slot large = rank.submit({.prompt = 13, .output = 1});
  const Slot next = rank.submit({.prompt = 1, .output = 1});
  rank.drain();
  EXPECT_EQ(rank[exact].ending, Ending::Completed);
  EXPECT_EQ(rank[large].ending, Ending::Rejected);
  EXPECT_EQ(rank[large].reason, Reason::PromptExceedsStepBudget);
  EXPECT_EQ(rank[large].admissions, 0U);
  EXPECT_EQ(rank[next].ending, Ending::Completed);
}

// Y, 20 tokens in passes of 12, may enter for its hit of 12. Preempted, it loses all but its first
// block to Z; it has been admitted once, so it is computed in parts and not rejected.
TEST_P(VllmAdmission, AHitMakesAPromptFitAndALostHitSplitsItRatherThanRejects) {
  Rank rank(mode(), whole_prompts(7, 12));
  rank.submit({.prompt = 12, .output = 1, .ids = {1, 2, 3}});
  rank.drain();
  const Slot z = rank.submit({.prompt = 4, .output = 18});
  const Slot y = rank.submit({.prompt = 20, .output = 6, .ids = {1, 2, 3, 4, 5}});
  rank.pass();
  EXPECT_EQ(rank[y].reused_first, 12U);
  EXPECT_EQ(rank.shape.prefill_isl, 4U + 20);
  rank.pass();
  EXPECT_EQ(rank[y].state, State::Preempted);
  while (rank[z].state != State::Ended) rank.pass();
  EXPECT_EQ(rank[y].state, State::Preempted);
  rank.pass();
  EXPECT_EQ(rank[y].state, State::Running);
  EXPECT_EQ(rank.shape.prefill_prefix, 4U);
  EXPECT_EQ(rank.shape.prefill_isl, 16U);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_isl, 20U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  rank.drain();
  EXPECT_EQ(rank[y].ending, Ending::Completed);
  EXPECT_EQ(rank[y].generated, 6U);
}

TEST_P(VllmAdmission, GeneratedTokensOfAPreemptedRequestAreComputedInParts) {
  RankConfig config = whole_prompts(6, 10);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Slot a = rank.submit({.prompt = 1, .output = 12});
  const Slot b = rank.submit({.prompt = 9, .output = 12});
  while (rank[b].state != State::Preempted && rank.scheduler.has_work()) rank.pass();
  const std::uint32_t known = rank[b].known();
  ASSERT_GT(known, 10U);
  while (rank[b].state != State::Running && rank.scheduler.has_work()) rank.pass();
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  EXPECT_EQ(rank.shape.prefill_isl, 9U);
  EXPECT_EQ(rank.shape.decode_requests, 0U) << "one pass does not hold all its tokens";
  rank.drain();
  EXPECT_EQ(rank[b].ending, Ending::Completed);
  EXPECT_EQ(rank[b].generated, 12U);
}

// decisions.md 16. A's second block is active and its first is a copy, so the room test, which
// counts active hits before the cap on hits, is one block too generous for B.
TEST(VllmCandidate, AWaitingCandidateThatFindsNoBlockWaitsAndPreemptsNobody) {
  Rank rank(Mode::Stepping, a_rank(3, 5));
  rank.submit({.prompt = 3, .output = 2, .ids = {5}, .authored = {5, 5}});
  rank.submit({.prompt = 8, .output = 3, .ids = {5, 6}});
  rank.pass();  // three tokens of the first, two of A
  rank.pass();  // the first one's output completes A's first block before A does
  ASSERT_EQ(rank.inactive(), 1U);
  ASSERT_EQ(rank.active(), 2U);
  const Slot b = rank.submit({.prompt = 8, .output = 1, .ids = {5, 6}});
  rank.pass();
  EXPECT_EQ(rank[b].state, State::Waiting);
  EXPECT_EQ(rank.scheduler.preemptions(), 0U);
  rank.drain();
  EXPECT_EQ(rank[b].ending, Ending::Completed);
  EXPECT_EQ(rank.scheduler.preemptions(), 0U);
}

}  // namespace
}  // namespace servecast::scheduler
