// SPDX-License-Identifier: Apache-2.0
// The rules of a vLLM rank, pass by pass, each in the reference mode and in the fast mode.
#include "scheduler/vllm/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kPassNs = 10;

enum class Mode : bool { Stepping, Fast };

struct Ask {
  std::uint32_t prompt = 1, output = 1;
  // One id for four prompt tokens, or for `trace_block`; none: content of its own.
  std::vector<std::uint32_t> ids = {};
  std::uint32_t trace_block = 4;
  std::vector<std::uint32_t> authored = {};
};

RankConfig a_rank(std::uint32_t blocks, std::uint32_t budget, std::uint32_t block_tokens = 4) {
  return {.blocks = blocks,
          .block_tokens = block_tokens,
          .max_batched_tokens = budget,
          .max_model_len = std::nullopt};
}

VllmScheduler::Options options_of(Mode mode) {
  const bool stepping = mode == Mode::Stepping;
  return {.stepping = stepping,
          .take_back = true,
          .trace = stepping,
          .events = stepping,
          .history = true};
}

// A rank whose passes take 10 ns each, verified after each.
class Rank {
 public:
  Rank(Mode mode, const RankConfig& config)
      : mode_(mode), config_(config), scheduler(config, options_of(mode), requests) {}

  Slot submit(const Ask& ask) {
    const Slot slot = add(ask);
    testable = scheduler.submit(slot);
    return slot;
  }
  void pass(Admit admit = Admit::Yes, std::int64_t ns = kPassNs) {
    shape = scheduler.schedule(now, admit);
    now = now + Duration{ns};
    scheduler.complete(now, outcome);
    scheduler.verify();
    for (const std::int64_t gap : outcome.gaps_ns) gaps.push_back(gap);
    for (std::uint32_t i = 0; i < outcome.cohort_tokens; ++i) gaps.push_back(ns);
    for (const KvEvent& event : outcome.events) events.push_back(event);
    if (mode_ == Mode::Fast) return;
    for (const Slot slot : outcome.ended) {
      const std::vector<Time>& times = requests[slot].token_times;
      for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back((times[i] - times[i - 1]).ns);
    }
  }
  void passes(int count) {
    for (; count > 0; --count) pass();
  }
  // Runs until nothing is left; how many passes that took.
  int drain() {
    int count = 0;
    for (; scheduler.has_work(); ++count) {
      pass();
      if (count == 10000) {
        ADD_FAILURE() << "the rank does not come to an end";
        break;
      }
    }
    return count;
  }

  // Gaps of the requests that have completed (fast mode: of all).
  std::vector<std::int64_t> sorted_gaps() const {
    std::vector<std::int64_t> sorted = gaps;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  const Request& operator[](Slot slot) const { return requests[slot]; }
  std::uint32_t active() const { return scheduler.pool().active(); }
  std::uint32_t inactive() const { return scheduler.pool().inactive(); }
  std::uint32_t free() const { return scheduler.pool().free(); }

  // Leading blocks of a prompt that another request could reuse.
  std::uint32_t cached_blocks(const Ask& ask) {
    const Slot probe = add(ask);
    const Content content = requests[probe].content;
    requests.remove(probe);
    Spelling spelling(config_.block_tokens);
    std::uint64_t parent = 0;
    std::uint32_t block = 0;
    for (; (block + 1) * config_.block_tokens <= ask.prompt; ++block) {
      parent = mode_ == Mode::Stepping
                   ? spelling.hash(content, ask.prompt, block, parent).prefix
                   : provenance_name(content, block, config_.block_tokens, parent);
      if (scheduler.pool().find(parent) == cache::kNoBlock) break;
    }
    return block;
  }

 private:
  Slot add(const Ask& ask) {
    const Slot slot = requests.add();
    Request& request = requests[slot];
    request.ordinal = next_ordinal_++;
    request.prompt_tokens = ask.prompt;
    request.output_tokens = ask.output;
    request.arrival = now;
    Content& content = request.content;
    content.owner = request.ordinal;
    content.prompt_first = request.ordinal * 1000003;
    content.plan_offset = request.ordinal * 100000;
    if (!ask.ids.empty()) {
      content.ids = kept_.emplace_back(ask.ids);
      content.trace_block = ask.trace_block;
      content.shared_tokens = content.shareable_tokens = ask.prompt;
    }
    if (!ask.authored.empty()) content.authored = kept_.emplace_back(ask.authored).data();
    return slot;
  }

  Mode mode_;
  RankConfig config_;
  std::deque<std::vector<std::uint32_t>> kept_;
  std::uint64_t next_ordinal_ = 0;

 public:
  RequestSlab requests;
  VllmScheduler scheduler;
  Time now;
  perf::StepShape shape;
  Outcome outcome;
  bool testable = false;
  std::vector<std::int64_t> gaps;
  std::vector<KvEvent> events;
};

class VllmRank : public testing::TestWithParam<Mode> {
 protected:
  Mode mode() const { return GetParam(); }
  bool stepping() const { return mode() == Mode::Stepping; }
};

INSTANTIATE_TEST_SUITE_P(, VllmRank, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return mode.param == Mode::Stepping ? "Stepping" : "Fast";
                         });

// The worked traces of the specification.

TEST_P(VllmRank, SharesAPrefixWithinAPass) {  // engine-vllm.md 19.1, C7
  Rank rank(mode(), a_rank(12, 12));
  const Ask ask_b{.prompt = 12, .output = 2, .ids = {1, 2, 3}};
  const Slot a = rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  const Slot b = rank.submit(ask_b);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 2U);
  EXPECT_EQ(rank.shape.prefill_isl, 20U);
  EXPECT_EQ(rank.shape.prefill_prefix, 8U);
  EXPECT_EQ(rank.shape.decode_requests, 0U) << "both first tokens come from the prefill";
  EXPECT_EQ(rank[a].first_token, Time{10});
  EXPECT_EQ(rank[b].first_token, Time{10});
  EXPECT_EQ(rank[a].reused_first, 0U);
  EXPECT_EQ(rank[b].reused_first, 8U);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 9U + 13);
  EXPECT_THAT(rank.outcome.ended, ElementsAre(a, b));
  EXPECT_EQ(rank[a].second_token, Time{20});
  EXPECT_EQ(rank[b].last_token, Time{20});
  EXPECT_EQ(rank.inactive(), 3U);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.cached_blocks(ask_b), 3U);

  // Ten blocks of something else: nine are free, one is evicted, and that is B's last.
  rank.submit({.prompt = 40, .output = 1});
  rank.drain();
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  EXPECT_EQ(rank.cached_blocks(ask_b), 2U);
}

TEST(VllmEvents, AStoredRunNamesTheBlockBeforeIt) {  // engine-vllm.md 19.1, C7
  Rank rank(Mode::Stepping, a_rank(12, 12));
  rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  rank.submit({.prompt = 12, .output = 2, .ids = {1, 2, 3}});
  rank.pass();
  ASSERT_EQ(rank.events.size(), 2U);
  EXPECT_TRUE(rank.events[0].stored);
  EXPECT_FALSE(rank.events[0].has_parent);
  ASSERT_EQ(rank.events[0].blocks.size(), 2U);
  EXPECT_TRUE(rank.events[1].has_parent);
  EXPECT_EQ(rank.events[1].parent, rank.events[0].blocks[1].hash);
  ASSERT_EQ(rank.events[1].blocks.size(), 1U);
  rank.drain();
  EXPECT_EQ(rank.events.size(), 2U) << "the private partial blocks have no name";
}

TEST_P(VllmRank, APromptIsComputedInChunksBesideADecode) {  // engine-vllm.md 19.2
  Rank rank(mode(), a_rank(30, 8));
  const Ask prompt{.prompt = 20, .output = 2, .ids = {1, 2, 3, 4, 5}};
  rank.submit({.prompt = 4, .output = 9});
  rank.pass();
  const Slot p = rank.submit(prompt);
  struct Step {
    std::uint32_t isl, prefix, decode_context, cached;
  };
  for (const Step& step : {Step{7, 0, 5, 1}, Step{14, 7, 6, 3}, Step{20, 14, 7, 5}}) {
    rank.pass();
    EXPECT_EQ(rank.shape.prefill_requests, 1U);
    EXPECT_EQ(rank.shape.prefill_isl, step.isl);
    EXPECT_EQ(rank.shape.prefill_prefix, step.prefix);
    EXPECT_EQ(rank.shape.decode_requests, 1U);
    EXPECT_EQ(rank.shape.decode_context, step.decode_context);
    EXPECT_EQ(rank.cached_blocks(prompt), step.cached);
  }
  EXPECT_EQ(rank[p].first_token, rank.now);
  rank.pass();
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 8U + 21);
  EXPECT_EQ(rank[p].last_token, rank.now);
}

TEST_P(VllmRank, PreemptsTheLastAndComputesItAgain) {  // engine-vllm.md 19.3, C19
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Slot first = rank.submit({.prompt = 4, .output = 8});
  const Slot second = rank.submit({.prompt = 4, .output = 8});
  rank.passes(5);  // five tokens each
  EXPECT_EQ(rank.scheduler.preemptions(), 0U);
  EXPECT_EQ(rank.active(), 4U);
  rank.pass();
  EXPECT_EQ(rank.scheduler.preemptions(), 1U);
  EXPECT_EQ(rank[second].state, State::Preempted);
  EXPECT_EQ(rank[second].known(), 9U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.active(), 3U);
  rank.passes(2);
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank[first].last_token, Time{80});
  EXPECT_EQ(rank[second].state, State::Preempted) << "needed 3 blocks, 1 was free";
  rank.pass();
  EXPECT_EQ(rank[second].state, State::Running);
  EXPECT_EQ(rank.shape.prefill_requests, 1U);
  EXPECT_EQ(rank.shape.prefill_isl, 4U) << "generated tokens are no prefill";
  EXPECT_EQ(rank.shape.prefill_prefix, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.decode_context, 9U);
  if (stepping()) {
    ASSERT_EQ(rank.outcome.trace.scheduled.size(), 1U);
    EXPECT_EQ(rank.outcome.trace.scheduled[0].from, 0U);
    EXPECT_EQ(rank.outcome.trace.scheduled[0].to, 9U);
  }
  EXPECT_EQ(rank.drain(), 2);
  EXPECT_EQ(rank[second].generated, 8U);
  EXPECT_EQ(rank[second].admissions, 2U);
  EXPECT_EQ(rank[second].preemptions, 1U);
  EXPECT_EQ(rank[second].first_token, Time{10});
  EXPECT_EQ(rank[second].second_token, Time{20});
  EXPECT_EQ(rank.free(), 4U);
}

// What a request reuses.

// bugs.md A06 and C8: logits need a computed token, so a wholly cached prompt computes its last
// block again.
TEST_P(VllmRank, ACachedPromptComputesAtLeastItsLastToken) {
  for (const std::uint32_t block : {2U, 3U, 4U, 16U}) {
    for (std::uint32_t prompt = 1; prompt <= 5 * block; ++prompt) {
      Rank rank(mode(), a_rank(64, 1024, block));
      const Ask ask{.prompt = prompt,
                    .output = 1,
                    .ids = std::vector<std::uint32_t>(prompt, 7),
                    .trace_block = 1};
      rank.submit(ask);
      rank.pass();
      const Slot again = rank.submit(ask);
      rank.pass();
      const std::uint32_t reused = (prompt - 1) / block * block;
      EXPECT_EQ(rank[again].reused_first, reused) << "block " << block << ", prompt " << prompt;
      EXPECT_EQ(rank.shape.prefill_isl - rank.shape.prefill_prefix, prompt - reused);
      EXPECT_FALSE(rank.scheduler.has_work());
    }
  }
}

TEST_P(VllmRank, ReusesTheCachedPrefixOfALongerPrompt) {  // bugs.md A06, second half
  Rank rank(mode(), a_rank(32, 1024, 16));
  rank.submit({.prompt = 64, .output = 1, .ids = {1, 2, 3, 4}, .trace_block = 16});
  rank.pass();
  const Slot longer =
      rank.submit({.prompt = 65, .output = 1, .ids = {1, 2, 3, 4, 5}, .trace_block = 16});
  const Slot other =
      rank.submit({.prompt = 65, .output = 1, .ids = {1, 2, 9, 4, 5}, .trace_block = 16});
  rank.pass();
  EXPECT_EQ(rank[longer].reused_first, 64U);
  EXPECT_EQ(rank[other].reused_first, 32U) << "what follows a different block is different";
}

TEST_P(VllmRank, ReusesNothingWithoutPrefixCaching) {  // bugs.md A20
  RankConfig config = a_rank(8, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  rank.submit(ask);
  rank.pass();
  const Slot again = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[again].reused_max, 0U);
  EXPECT_EQ(rank.free(), 8U);
  EXPECT_THAT(rank.events, IsEmpty());
}

TEST_P(VllmRank, ABlockIsVisibleWhenItIsFull) {  // C12
  Rank rank(mode(), a_rank(8, 2));
  const Ask ask{.prompt = 4, .output = 1, .ids = {1}};
  rank.submit(ask);
  rank.pass();
  EXPECT_EQ(rank.cached_blocks(ask), 0U);
  EXPECT_THAT(rank.events, IsEmpty());
  rank.pass();
  EXPECT_EQ(rank.cached_blocks(ask), 1U);
  if (stepping()) {
    ASSERT_EQ(rank.events.size(), 1U);
    EXPECT_EQ(rank.events[0].blocks.size(), 1U);
  }
}

TEST_P(VllmRank, TheLastTokenTakesNoBlockAndLeavesAreEvictedFirst) {  // C13
  Rank rank(mode(), a_rank(2, 100));
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  const Slot first = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.inactive(), 2U);
  rank.submit({.prompt = 4, .output = 1, .ids = {9}});
  rank.drain();
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  const Slot probe = rank.submit({.prompt = 5, .output = 1, .ids = {1, 2}});
  rank.drain();
  EXPECT_EQ(rank[probe].reused_first, 4U);
}

TEST_P(VllmRank, ARepeatedPromptOccupiesASecondCopyOfItsLastBlock) {  // C14
  Rank rank(mode(), a_rank(8, 100));
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  rank.submit(ask);
  rank.drain();
  const Slot again = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[again].reused_first, 4U);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.inactive(), 3U);
}

// C9: prompt 6, three tokens generated, preempted: both full blocks are hit, one token is computed.
TEST_P(VllmRank, APreemptedRequestFindsItsOwnBlocksAgain) {
  Rank rank(mode(), a_rank(5, 100));
  const Slot a = rank.submit({.prompt = 6, .output = 6});
  const Slot b = rank.submit({.prompt = 6, .output = 6});
  rank.passes(4);
  EXPECT_EQ(rank[b].state, State::Preempted);
  EXPECT_EQ(rank[b].known(), 9U);
  EXPECT_EQ(rank.inactive(), 2U);
  rank.passes(2);
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.decode_context, 9U);
  ASSERT_EQ(rank[b].history.size(), 2U);
  EXPECT_EQ(rank[b].history[1].reused_tokens, 6U) << "clamped to the prompt (decisions.md 14)";
  if (stepping()) {
    ASSERT_EQ(rank.outcome.trace.admitted.size(), 1U);
    EXPECT_EQ(rank.outcome.trace.admitted[0].reused_tokens, 8U);
  }
  rank.drain();
  EXPECT_EQ(rank[b].generated, 6U);
  EXPECT_EQ(rank[b].reused_first, 0U);
  EXPECT_EQ(rank[b].reused_max, 6U);
}

// The same, but the other one grows into one of its blocks: the leaf goes first.
TEST_P(VllmRank, APreemptedRequestLosesItsLeafFirst) {
  Rank rank(mode(), a_rank(5, 100));
  const Slot a = rank.submit({.prompt = 6, .output = 8});
  const Slot b = rank.submit({.prompt = 6, .output = 6});
  rank.passes(8);
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  rank.pass();
  ASSERT_EQ(rank[b].history.size(), 2U);
  EXPECT_EQ(rank[b].history[1].reused_tokens, 4U);
}

// Who may enter.

TEST_P(VllmRank, ActiveHitsNeedNoRoom) {  // C10
  Rank rank(mode(), a_rank(3, 100));
  rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  const Slot b = rank.submit({.prompt = 12, .output = 1, .ids = {1, 2, 3}});
  rank.pass();
  EXPECT_EQ(rank[b].ending, Ending::Completed) << "needed 3 - 2 blocks, 1 was free";
  EXPECT_EQ(rank[b].reused_first, 8U);
}

TEST_P(VllmRank, InactiveHitsNeedRoom) {  // C10, second half
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

TEST_P(VllmRank, RejectsWhatNeverFitsAndTakesWhatMayNotFitLater) {  // C11
  Rank rank(mode(), a_rank(4, 100));
  const Slot large = rank.submit({.prompt = 20, .output = 1});
  const Slot exact = rank.submit({.prompt = 16, .output = 1});
  rank.pass();
  EXPECT_EQ(rank[large].ending, Ending::Rejected);
  EXPECT_EQ(rank[large].reason, Reason::PoolTooSmall);
  EXPECT_EQ(rank[large].blocks_needed, 5U);
  EXPECT_EQ(rank[large].blocks_available, 4U);
  EXPECT_EQ(rank[large].first_token, kNever);
  EXPECT_EQ(rank[large].first_admit, kNever);
  EXPECT_EQ(rank[exact].ending, Ending::Completed) << "no block is held back (bugs.md A04)";
  EXPECT_THAT(rank.outcome.ended, ElementsAre(exact, large)) << "rejected ones come last";
  const Slot long_output = rank.submit({.prompt = 8, .output = 32});
  rank.pass();
  EXPECT_EQ(rank[long_output].state, State::Running);
}

TEST_P(VllmRank, TheModelLengthRejectsPromptsAndEndsOutputs) {  // C15
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

TEST_P(VllmRank, ARequestWithoutOutputEndsWithoutAToken) {  // C16
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

TEST_P(VllmRank, AdmissionIsStrictlyFirstComeFirstServed) {
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

TEST_P(VllmRank, NoMoreRunThanThereAreSeats) {
  RankConfig config = a_rank(100, 100);
  config.max_sequences = 2;
  Rank rank(mode(), config);
  for (int i = 0; i < 5; ++i) rank.submit({.prompt = 1, .output = 2});
  rank.pass();
  EXPECT_EQ(rank.scheduler.running(), 2U);
  EXPECT_EQ(rank.scheduler.waiting(), 3U);
  EXPECT_EQ(rank.drain(), 5);
}

TEST_P(VllmRank, APassAdmitsNobodyWhenItIsTold) {
  Rank rank(mode(), a_rank(100, 100));
  rank.submit({.prompt = 1, .output = 9});
  rank.pass();
  rank.submit({.prompt = 1, .output = 1});
  rank.pass(Admit::No);
  EXPECT_EQ(rank.scheduler.waiting(), 1U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
}

TEST_P(VllmRank, SubmitSaysWhetherTheNextPassMayTreatTheRequest) {
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
TEST_P(VllmRank, AFullPassStillRejectsAndTakesOneRequestThatNeedsNothing) {
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
TEST_P(VllmRank, AHeadThatWaitsForBlocksEntersWhenARunningPrefillSealsItsPrefix) {
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

RankConfig whole_prompts(std::uint32_t blocks, std::uint32_t budget) {
  RankConfig config = a_rank(blocks, budget);
  config.chunked_prefill = false;
  return config;
}

TEST_P(VllmRank, AWholePromptWaitsForAPassThatHoldsIt) {
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

TEST_P(VllmRank, APromptThatNoPassHoldsIsRejectedAtTheHead) {  // C21
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
TEST_P(VllmRank, AHitMakesAPromptFitAndALostHitSplitsItRatherThanRejects) {
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

TEST_P(VllmRank, GeneratedTokensOfAPreemptedRequestAreComputedInParts) {
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

// Who gives way.

// bugs.md A04: the last admitted goes first and comes back first; no block is held back.
TEST_P(VllmRank, VictimsGoFromTheLastAdmittedAndComeBackInTheirOrder) {
  for (const std::uint32_t count : {2U, 3U, 5U}) {
    // One block each when the prompts are computed; each needs a second one at its fifth token.
    RankConfig config = a_rank(count, 100);
    config.prefix_caching = false;
    Rank rank(mode(), config);
    std::vector<Slot> slots;
    for (std::uint32_t i = 0; i < count; ++i)
      slots.push_back(rank.submit({.prompt = 4, .output = 3}));
    const Slot late = rank.submit({.prompt = 4, .output = 1});
    rank.pass();
    EXPECT_EQ(rank.free(), 0U);
    rank.pass();
    // Pairs of blocks: the first half goes on, the second half gave way.
    const std::uint32_t stay = count / 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(rank[slots[i]].state, i < stay ? State::Running : State::Preempted) << i;
    }
    rank.drain();
    for (std::uint32_t i = 1; i < count; ++i) {
      EXPECT_LE(rank[slots[i - 1]].last_token, rank[slots[i]].last_token) << i;
    }
    EXPECT_LE(rank[slots.back()].history.back().at, rank[late].first_admit);
  }
}

// C20, decisions.md 20: three decoders, the pool is short by one block for the second.
TEST_P(VllmRank, FifoPreemptionSkipsNobodyBehindTheVictim) {
  RankConfig config = a_rank(6, 100);
  config.preemption_mode = PreemptionMode::Fifo;
  Rank rank(mode(), config);
  const Slot r1 = rank.submit({.prompt = 6, .output = 9});
  rank.submit({.prompt = 8, .output = 9});
  rank.submit({.prompt = 5, .output = 9});
  rank.pass();
  rank.pass();
  EXPECT_EQ(rank[r1].state, State::Preempted);
  EXPECT_EQ(rank.scheduler.preemptions(), 1U);
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 9U + 6);
  rank.pass();
  EXPECT_EQ(rank.shape.decode_context, 10U + 7) << "both survivors had advanced by one token";
}

// The second needs a block and the first, already scheduled in this pass, gives way: the prefill at
// the end gets its token too.
TEST_P(VllmRank, AVictimThatWasScheduledInThePassGivesItsTokenBack) {
  RankConfig config = a_rank(11, 5, 2);
  config.preemption_mode = PreemptionMode::Fifo;
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Slot first = rank.submit({.prompt = 2, .output = 9});
  rank.submit({.prompt = 3, .output = 9});
  rank.pass();
  rank.submit({.prompt = 14, .output = 1});
  rank.passes(3);
  EXPECT_EQ(rank.free(), 0U);
  EXPECT_EQ(rank.shape.prefill_isl, 9U);
  rank.pass();
  EXPECT_EQ(rank[first].state, State::Preempted);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.prefill_prefix, 9U);
  EXPECT_EQ(rank.shape.prefill_isl, 9U + 4);
  rank.drain();
  EXPECT_EQ(rank[first].generated, 9U);
}

TEST_P(VllmRank, AGapSpansTheTimeInWhichARequestWasPreempted) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  rank.submit({.prompt = 4, .output = 8});
  rank.submit({.prompt = 4, .output = 8});
  rank.drain();
  // Seven gaps of each. The second one got its sixth token at 90, its fifth at 50.
  EXPECT_THAT(rank.sorted_gaps(),
              ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 40));
}

// The first gives way, comes back in parts, and lacks one token after a pass in which another one
// gave way: it looks like a member of the cohort, but got no token in that pass.
TEST_P(VllmRank, ARequestThatCameBackIsNoMemberBeforeItHasAToken) {
  RankConfig config = a_rank(4, 3, 3);
  config.preemption_mode = PreemptionMode::Fifo;
  config.prefix_caching = false;
  Rank rank(mode(), config);
  rank.submit({.prompt = 2, .output = 4});
  rank.submit({.prompt = 1, .output = 7});
  rank.submit({.prompt = 2, .output = 3});
  EXPECT_EQ(rank.drain(), 11);
  EXPECT_EQ(rank.scheduler.preemptions(), 2U);
  EXPECT_THAT(rank.sorted_gaps(), ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 50, 50));
}

// decisions.md 16. A's second block is active and its first is a copy, so the room test, which
// counts active hits before the cap on hits, is one block too generous for B.
TEST(VllmAdmission, AWaitingCandidateThatFindsNoBlockWaitsAndPreemptsNobody) {
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

// How many blocks a request holds.

// bugs.md A15: the token that a pass samples has no slot yet; the next pass writes it.
TEST_P(VllmRank, HoldsTheBlocksOfTheTokensItHasComputed) {
  for (const std::uint32_t block : {2U, 3U, 16U}) {
    for (std::uint32_t prompt = 1; prompt <= 2 * block + 1; ++prompt) {
      Rank rank(mode(), a_rank(64, 1024, block));
      rank.submit({.prompt = prompt, .output = 3 * block});
      for (std::uint32_t computed = prompt; computed < prompt + 2 * block; ++computed) {
        rank.pass();
        ASSERT_EQ(rank.active(), (computed + block - 1) / block)
            << "block " << block << ", prompt " << prompt << ", computed " << computed;
      }
    }
  }
}

// bugs.md A16 and decisions.md 13: the last token needs no slot. A pool that holds the others is
// large enough, one token more is not, and the rank goes on.
TEST_P(VllmRank, CompletesInExactlyTheSlotsOfAllButTheLastTokenAndFailsInOneLess) {
  for (const std::uint32_t block : {2U, 4U, 16U}) {
    for (std::uint32_t blocks = 1; blocks <= 3; ++blocks) {
      for (std::uint32_t output = 2; output < blocks * block; ++output) {
        const std::uint32_t prompt = blocks * block + 1 - output;
        Rank rank(mode(), a_rank(blocks, 1024, block));
        const Slot fits = rank.submit({.prompt = prompt, .output = output});
        rank.drain();
        EXPECT_EQ(rank[fits].ending, Ending::Completed) << block << ' ' << blocks << ' ' << output;
        EXPECT_EQ(rank[fits].generated, output);

        const Slot grows = rank.submit({.prompt = prompt, .output = output + 1});
        const Slot next = rank.submit({.prompt = prompt, .output = 1});
        rank.drain();
        EXPECT_EQ(rank[grows].ending, Ending::Failed) << block << ' ' << blocks << ' ' << output;
        EXPECT_EQ(rank[grows].reason, Reason::KvCapacity);
        EXPECT_EQ(rank[grows].generated, output);
        EXPECT_EQ(rank[grows].blocks_needed, blocks + 1);
        EXPECT_EQ(rank[grows].blocks_available, blocks);
        EXPECT_EQ(rank[next].ending, Ending::Completed) << "the rank goes on";
        EXPECT_EQ(rank.active(), 0U);
      }
    }
  }
}

// Gaps.

// All passes take no time, so that the time of the last token does not say whether the last pass
// gave it. The first gives way and fails later; it must not take back gaps that it never had.
TEST(VllmGaps, PassesOfNoDurationAreToldApart) {
  RankConfig config = a_rank(3, 3, 3);
  for (std::uint32_t output = 1; output <= 14; ++output) {
    for (std::uint32_t other = 1; other <= 14; ++other) {
      for (const PreemptionMode preemption : {PreemptionMode::Lifo, PreemptionMode::Fifo}) {
        config.preemption_mode = preemption;
        Rank rank(Mode::Fast, config);
        rank.submit({.prompt = 4, .output = output});
        rank.submit({.prompt = 1, .output = other});
        std::size_t taken_back = 0, wanted = 0;
        while (rank.scheduler.has_work()) {
          rank.pass(Admit::Yes, 0);
          taken_back += rank.outcome.taken_back.size();
          for (const Slot slot : rank.outcome.ended) {
            if (rank[slot].ending == Ending::Failed) wanted += rank[slot].generated - 1;
          }
        }
        EXPECT_EQ(taken_back, wanted) << output << ' ' << other;
      }
    }
  }
}

TEST(VllmGaps, ARequestThatFailsTakesItsGapsBack) {
  Rank rank(Mode::Fast, a_rank(2, 100));
  rank.submit({.prompt = 4, .output = 10});
  for (const std::int64_t ns : {10, 11, 12, 13, 14}) rank.pass(Admit::Yes, ns);
  EXPECT_THAT(rank.gaps, ElementsAre(11, 12, 13, 14));
  rank.pass();  // the ninth token has no block
  EXPECT_THAT(rank.outcome.taken_back, ElementsAre(11, 12, 13, 14));
}

TEST(VllmGaps, ThoseOfALiveRequestAreKnownAlsoWhileItIsPreempted) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(Mode::Fast, config);
  const Slot first = rank.submit({.prompt = 4, .output = 8});
  const Slot second = rank.submit({.prompt = 4, .output = 8});
  std::int64_t ns = 10;
  for (int i = 0; i < 7; ++i) rank.pass(Admit::Yes, ns++);
  std::vector<std::int64_t> gaps;
  rank.scheduler.gaps_of(second, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14));
  gaps.clear();
  rank.scheduler.gaps_of(first, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14, 15, 16));
  gaps.clear();
  rank.scheduler.gaps_of(first, 3, gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12)) << "only those of the passes that have ended";
  for (int i = 0; i < 3; ++i) rank.pass(Admit::Yes, ns++);
  gaps.clear();
  rank.scheduler.gaps_of(second, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14, 15 + 16 + 17 + 18, 19));
}

// Quiet passes.

TEST(VllmQuiet, EndsWithThePassThatGivesSomeoneItsLastToken) {
  Rank rank(Mode::Fast, a_rank(100, 100));
  rank.submit({.prompt = 4, .output = 9});
  rank.submit({.prompt = 4, .output = 5});
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "someone waits to be tested";
  rank.pass();
  const VllmScheduler::Quiet all = rank.scheduler.quiet(64);
  EXPECT_EQ(all.passes, 3U);
  EXPECT_TRUE(all.then_completes);
  const VllmScheduler::Quiet some = rank.scheduler.quiet(2);
  EXPECT_EQ(some.passes, 2U);
  EXPECT_FALSE(some.then_completes);
}

TEST(VllmQuiet, EndsBeforeThePassThatMustPreempt) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(Mode::Fast, config);
  rank.submit({.prompt = 4, .output = 8});
  rank.submit({.prompt = 4, .output = 8});
  rank.pass();
  const VllmScheduler::Quiet quiet = rank.scheduler.quiet(64);
  EXPECT_EQ(quiet.passes, 4U);
  EXPECT_FALSE(quiet.then_completes);
}

TEST(VllmQuiet, EvictsWithoutEnding) {  // seam-notes S1
  Rank rank(Mode::Fast, a_rank(5, 100));
  rank.submit({.prompt = 16, .output = 1, .ids = {1, 2, 3, 4}});
  rank.drain();
  EXPECT_EQ(rank.inactive(), 4U);
  rank.submit({.prompt = 4, .output = 16});
  rank.pass();
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 14U);
}

TEST(VllmQuiet, NothingIsQuietBehindAnUnfinishedPrefillOrAHeadThatMayEnter) {
  Rank rank(Mode::Fast, a_rank(8, 4));
  rank.submit({.prompt = 1, .output = 20});
  rank.pass();
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U);
  rank.submit({.prompt = 8, .output = 9});
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "a head that nobody has tested";
  rank.pass();
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "a prefill of which five tokens are left";
  rank.passes(2);
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U);
  rank.submit({.prompt = 28, .output = 1});
  rank.pass();
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U) << "a head that waits for blocks";
}

TEST(VllmQuiet, AHeadThatWaitsForBlocksMayStillBeRejectedWithoutChunkedPrefill) {  // W3
  Rank rank(Mode::Fast, whole_prompts(8, 100));
  rank.submit({.prompt = 1, .output = 20});
  rank.pass();
  rank.submit({.prompt = 30, .output = 1});
  rank.pass();
  EXPECT_EQ(rank.scheduler.waiting(), 1U);
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U);
}

// The passes of a run, taken at once, leave the rank as they do one by one.
TEST(VllmQuiet, SeveralPassesAtOnceAreThosePassesOneByOne) {
  for (std::uint32_t count = 1; count <= 14; ++count) {
    Rank single(Mode::Fast, a_rank(11, 100)), batch(Mode::Fast, a_rank(11, 100));
    for (Rank* rank : {&single, &batch}) {
      rank->submit({.prompt = 16, .output = 1, .ids = {1, 2, 3, 4}});
      rank->drain();
      rank->submit({.prompt = 4, .output = 16});
      rank->submit({.prompt = 3, .output = 17});
      rank->pass();
    }
    ASSERT_GE(batch.scheduler.quiet(64).passes, count);
    std::vector<Time> ends;
    for (std::uint32_t i = 1; i <= count; ++i) ends.push_back(batch.now + Duration{i * kPassNs});
    batch.scheduler.advance(ends);
    batch.scheduler.verify();
    batch.now = ends.back();
    single.passes(static_cast<int>(count));
    EXPECT_EQ(batch.scheduler.cohort_context(), single.scheduler.cohort_context());
    EXPECT_EQ(batch.active(), single.active());
    EXPECT_EQ(batch.inactive(), single.inactive());
    EXPECT_EQ(batch.scheduler.pool().evictions(), single.scheduler.pool().evictions());
    EXPECT_EQ(batch.scheduler.passes(), single.scheduler.passes());
    EXPECT_EQ(batch.drain(), single.drain());
    for (const Slot slot : {1U, 2U}) {
      EXPECT_EQ(batch[slot].second_token, single[slot].second_token);
      EXPECT_EQ(batch[slot].last_token, single[slot].last_token);
      EXPECT_EQ(batch[slot].generated, single[slot].generated);
    }
  }
}

}  // namespace
}  // namespace servecast::scheduler
