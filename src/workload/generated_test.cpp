// SPDX-License-Identifier: Apache-2.0
#include "workload/generated.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace servecast::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Length fixed(std::uint32_t tokens) {
  return {.fixed = tokens};
}
Length uniform(std::uint32_t min, std::uint32_t max) {
  return {.kind = Length::Kind::Uniform, .min = min, .max = max};
}

std::vector<Session> all(const Generated& plan, bool spell = false) {
  GeneratedWalk walk(plan, spell);
  std::vector<Session> sessions;
  for (Session session; walk.next(session);) sessions.push_back(session);
  return sessions;
}

TEST(Synthetic, RequestsAreSessionsOfOneTurnThatShareNothing) {
  const auto plan = make_generated(SyntheticSource{.input = fixed(100), .output = fixed(7)}, 3);
  ASSERT_TRUE(plan);
  const auto sessions = all(*plan, true);
  ASSERT_EQ(sessions.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sessions[i].index, i);
    EXPECT_EQ(sessions[i].first_request, i);
    EXPECT_EQ(sessions[i].plan_offset, 7u * i);
    EXPECT_EQ(sessions[i].shared_tokens, 0u);
    ASSERT_EQ(sessions[i].turns.size(), 1u);
    EXPECT_EQ(sessions[i].turns[0].input_tokens, 100u);
    EXPECT_EQ(sessions[i].turns[0].output_tokens, 7u);
    EXPECT_EQ(sessions[i].turns[0].ids_count, 0u);
    EXPECT_TRUE(sessions[i].ids.empty());
  }
  EXPECT_EQ(plan->input_tokens_max, 100u);
  EXPECT_EQ(plan->total_tokens_max, 107u);
}

TEST(Synthetic, DrawsInputBeforeOutput) {
  const auto plan = make_generated(
      SyntheticSource{.input = uniform(1, 1000), .output = uniform(1, 1000), .seed = 5}, 2);
  Random random(5);
  for (const Session& session : all(*plan)) {
    EXPECT_EQ(session.turns[0].input_tokens, 1 + random.below(1000));
    EXPECT_EQ(session.turns[0].output_tokens, 1 + random.below(1000));
  }
}

TEST(Synthetic, MaximaOfDrawnLengthsAreExact) {
  const auto plan = make_generated(
      SyntheticSource{.input = uniform(1, 100'000), .output = uniform(1, 100'000)}, 50);
  std::uint32_t input_max = 0, total_max = 0;
  for (const Session& session : all(*plan)) {
    const Turn& turn = session.turns[0];
    input_max = std::max(input_max, turn.input_tokens);
    total_max = std::max(total_max, turn.input_tokens + turn.output_tokens);
  }
  EXPECT_EQ(plan->input_tokens_max, input_max);
  EXPECT_EQ(plan->total_tokens_max, total_max);
}

TEST(Synthetic, ACachedPrefixIsOneSharedBlockOfItsOwnLength) {
  const auto plan = make_generated(
      SyntheticSource{.input = fixed(250), .output = fixed(1), .cached_prefix_tokens = 100}, 2);
  const auto sessions = all(*plan, true);
  for (const Session& session : sessions) {
    EXPECT_EQ(session.group, 0u);
    EXPECT_EQ(session.shared_tokens, 100u);
    EXPECT_EQ(session.turns[0].ids_count, 3u);
  }
  EXPECT_THAT(sessions[0].ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(sessions[1].ids, ElementsAre(0, 3, 4));
}

TEST(Synthetic, ACachedPrefixMustBeBelowTheShortestPrompt) {
  const auto plan = make_generated(
      SyntheticSource{.input = fixed(100), .output = fixed(1), .cached_prefix_tokens = 100}, 2);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error()[0].message, HasSubstr("cached_prefix_tokens is 100"));
  EXPECT_EQ(plan.error()[0].hint, "at most 99");
  EXPECT_TRUE(make_generated(
      SyntheticSource{.input = fixed(101), .output = fixed(1), .cached_prefix_tokens = 100}, 2));
}

TEST(Synthetic, MoreDistinctBlocksThanTokensExistAreRefused) {
  const SyntheticSource source{.input = fixed(1024), .output = fixed(1), .cached_prefix_tokens = 1};
  EXPECT_TRUE(make_generated(source, 4'000'000));
  const auto plan = make_generated(source, 5'000'000);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error()[0].code, "workload.too_many_blocks");
}

SessionSource a_session_source() {
  return {.new_input = fixed(1000), .output = fixed(10), .turns = 3, .block_size = 512};
}

TEST(Sessions, GiveOnlyTheNewTokensAndMeasureTheWholePrompt) {
  auto source = a_session_source();
  source.inter_turn_delay_ms = 1.5;
  const auto plan = make_generated(source, 2);
  const auto sessions = all(*plan);
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[1].first_request, 3u);
  EXPECT_EQ(sessions[1].plan_offset, 30u);
  ASSERT_EQ(sessions[1].turns.size(), 3u);
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(sessions[1].turns[t].input_tokens, 1000u);
    EXPECT_EQ(sessions[1].turns[t].delay.ns, t == 0 ? 0 : 1'500'000);
  }
  EXPECT_EQ(plan->input_tokens_max, 3020u);  // 1000 + 10 + 1000 + 10 + 1000
  EXPECT_EQ(plan->total_tokens_max, 3030u);
}

TEST(Sessions, TakeTheRoundedShareOfBlocksFromTheirGroup) {  // replay.md 10.4
  struct Case {
    std::uint32_t input;
    double ratio;
    std::uint32_t shared_tokens;
  };
  for (const Case& c : {Case{1024, 0.5, 512}, Case{1000, 1.0, 1000}, Case{513, 1.0, 513},
                        Case{100, 0.4, 0}, Case{100, 0.5, 100}, Case{2560, 0.5, 1536}}) {
    auto source = a_session_source();
    source.new_input = fixed(c.input);
    source.shared_prefix_ratio = c.ratio;
    source.prefix_groups = 4;
    EXPECT_EQ(all(*make_generated(source, 1))[0].shared_tokens, c.shared_tokens)
        << c.input << " tokens, ratio " << c.ratio;
  }
}

TEST(Sessions, DrawTheGroupBeforeTheLengths) {
  auto source = a_session_source();
  source.new_input = uniform(1, 5000);
  source.turns = 2;
  source.shared_prefix_ratio = 0.5;
  source.prefix_groups = 16;
  source.seed = 9;
  Random random(9);
  for (const Session& session : all(*make_generated(source, 4))) {
    EXPECT_EQ(session.group, random.below(16));
    for (const Turn& turn : session.turns) EXPECT_EQ(turn.input_tokens, 1 + random.below(5000));
  }
}

TEST(Sessions, DrawNoGroupWhenNothingIsShared) {
  auto source = a_session_source();
  source.new_input = uniform(1, 5000);
  source.turns = 1;
  source.prefix_groups = 16;
  source.seed = 9;
  Random random(9);
  for (const Session& session : all(*make_generated(source, 4))) {
    EXPECT_EQ(session.group, 0u);
    EXPECT_EQ(session.shared_tokens, 0u);
    EXPECT_EQ(session.turns[0].input_tokens, 1 + random.below(5000));
  }
}

TEST(Sessions, SpellIdsDenselyInFirstSeenOrder) {
  auto source = a_session_source();
  source.new_input = fixed(1024);
  source.turns = 2;
  source.shared_prefix_ratio = 0.5;
  source.prefix_groups = 1;
  const auto sessions = all(*make_generated(source, 2), true);
  // Each turn's new input has one block of the group, then a fresh one.
  EXPECT_THAT(sessions[0].ids, ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(sessions[1].ids, ElementsAre(0, 3, 0, 4));
  EXPECT_EQ(sessions[0].turns[1].ids_first, 2u);
  EXPECT_EQ(sessions[0].turns[1].ids_count, 2u);
}

TEST(Sessions, SpelledIdsAgreeWithTheNumbersOfTheSpec) {
  auto source = a_session_source();
  source.new_input = uniform(1, 6000);
  source.shared_prefix_ratio = 0.7;
  source.prefix_groups = 5;
  const auto plan = make_generated(source, 200);
  // The ids of replay.md 10.4, interned in first-seen order.
  std::map<std::uint64_t, std::uint32_t> dense;
  std::uint64_t fresh = 0;
  for (const Session& session : all(*plan, true)) {
    std::size_t at = 0;
    for (const Turn& turn : session.turns) {
      const std::uint32_t blocks = (turn.input_tokens + 511) / 512;
      const auto shared = static_cast<std::uint32_t>(std::round(blocks * 0.7));
      for (std::uint32_t b = 0; b < blocks; ++b) {
        const std::uint64_t id =
            b < shared ? 0xD00D000000000000ULL | (std::uint64_t{session.group} << 32) | b : ++fresh;
        const auto expected =
            dense.emplace(id, static_cast<std::uint32_t>(dense.size())).first->second;
        ASSERT_EQ(session.ids.at(at++), expected);
      }
    }
    EXPECT_EQ(at, session.ids.size());
  }
}

TEST(Sessions, SpellingChangesNothingElse) {
  auto source = a_session_source();
  source.new_input = uniform(1, 6000);
  source.shared_prefix_ratio = 0.7;
  source.prefix_groups = 5;
  const auto plan = make_generated(source, 20);
  const auto plain = all(*plan, false), spelled = all(*plan, true);
  for (std::size_t s = 0; s < plain.size(); ++s) {
    EXPECT_TRUE(plain[s].ids.empty());
    EXPECT_EQ(plain[s].group, spelled[s].group);
    EXPECT_EQ(plain[s].shared_tokens, spelled[s].shared_tokens);
    for (std::size_t t = 0; t < plain[s].turns.size(); ++t) {
      EXPECT_EQ(plain[s].turns[t].input_tokens, spelled[s].turns[t].input_tokens);
      EXPECT_EQ(plain[s].turns[t].ids_count, spelled[s].turns[t].ids_count);
    }
  }
}

TEST(Sessions, WhosePromptsPassTheTokenLimitAreRefused) {
  auto source = a_session_source();
  source.new_input = fixed(1'000'000'000);
  source.turns = 4;
  EXPECT_TRUE(make_generated(source, 1));
  source.turns = 5;
  const auto plan = make_generated(source, 1);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error()[0].code, "workload.prompt_too_long");
  EXPECT_THAT(plan.error()[0].message, HasSubstr("5000000050 tokens"));
}

}  // namespace
}  // namespace servecast::workload
