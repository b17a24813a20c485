// SPDX-License-Identifier: Apache-2.0
#include "workload/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "workload/trace_builders.hpp"

namespace servecast::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_tools::TemporaryFile;

Workload built(const Spec& spec) {
  auto workload = build(spec);
  if (workload) return std::move(*workload);
  ADD_FAILURE() << to_text(workload.error()[0]);
  return {};
}

std::vector<Session> all(const Workload& workload, bool spell = false) {
  std::vector<Session> sessions;
  auto cursor = workload.cursor(spell);
  for (Session session; cursor.next(session);) sessions.push_back(session);
  return sessions;
}

TEST(Workload, TheDefaultTrafficIsAClosedLoopOfHundredRequests) {
  const Workload workload = built({});
  EXPECT_TRUE(workload.closed_loop());
  EXPECT_EQ(workload.concurrency(), 10u);
  EXPECT_TRUE(workload.single_turn());
  EXPECT_FALSE(workload.accumulating());
  EXPECT_FALSE(workload.has_authored_outputs());
  EXPECT_EQ(workload.session_count(), 100u);
  EXPECT_EQ(workload.request_count(), 100u);
  EXPECT_EQ(workload.input_tokens_max(), 1024u);
  EXPECT_EQ(workload.total_tokens_max(), 1152u);
  EXPECT_EQ(workload.trace_block_size(), 1u);
  EXPECT_EQ(all(workload).size(), 100u);
}

TEST(Workload, SaysWhenClientsGoAway) {
  EXPECT_FALSE(build({})->may_cancel());
  const Result<Workload> longest = build({.cancel_after_ms = 4.6e12});
  ASSERT_TRUE(longest);
  EXPECT_TRUE(longest->may_cancel());
  EXPECT_EQ(longest->cancel_after().ns, 4'600'000'000'000'000'000);
  EXPECT_EQ(build({.cancel_after_ms = 1e-6})->cancel_after().ns, 1);
}

TEST(Workload, WithNothingBuiltHasNoSessions) {
  const Workload workload;
  EXPECT_EQ(workload.request_count(), 0u);
  EXPECT_TRUE(all(workload).empty());
}

TEST(Workload, AnOpenLoopStampsSyntheticArrivals) {
  const Workload workload =
      built({.load = {.kind = Load::Kind::Poisson, .per_second = 10}, .stop = {.count = 3}});
  EXPECT_FALSE(workload.closed_loop());
  const auto sessions = all(workload);
  EXPECT_EQ(sessions[0].arrival.ns, 0);
  EXPECT_EQ(sessions[1].arrival.ns, 74'772'462);
  EXPECT_EQ(sessions[2].arrival.ns, 153'019'540);
}

TEST(Workload, TheLoadNeverChangesContent) {  // replay.md 10.2
  SessionSource source{.new_input = {.kind = Length::Kind::Uniform, .min = 1, .max = 4000},
                       .shared_prefix_ratio = 0.5,
                       .prefix_groups = 8};
  const auto of = [&](const Load& load) {
    return all(built({.source = source, .load = load}), true);
  };
  const auto closed = of({});
  for (const Load& load :
       {Load{.kind = Load::Kind::Poisson, .per_second = 3, .seed = 1},
        Load{.kind = Load::Kind::Gamma, .per_second = 9, .seed = 7, .smoothness = 3},
        Load{.kind = Load::Kind::Burst}}) {
    const auto open = of(load);
    for (std::size_t s = 0; s < closed.size(); ++s) {
      ASSERT_EQ(open[s].ids, closed[s].ids);
      ASSERT_EQ(open[s].group, closed[s].group);
      ASSERT_EQ(open[s].plan_offset, closed[s].plan_offset);
    }
  }
}

TEST(Workload, TwoCursorsGiveTheSameSessions) {
  const Workload workload = built(
      {.source =
           SyntheticSource{.input = {.kind = Length::Kind::Lognormal, .p50 = 500, .p95 = 900}},
       .load = {.kind = Load::Kind::Gamma, .per_second = 4, .smoothness = 2}});
  const auto first = all(workload), second = all(workload);
  for (std::size_t s = 0; s < first.size(); ++s) {
    EXPECT_EQ(first[s].arrival, second[s].arrival);
    EXPECT_EQ(first[s].turns[0].input_tokens, second[s].turns[0].input_tokens);
  }
}

TEST(Workload, ACursorOutlivesTheWorkload) {
  auto cursor = built({.stop = {.count = 2}}).cursor();
  Session session;
  EXPECT_TRUE(cursor.next(session));
  EXPECT_TRUE(cursor.next(session));
  EXPECT_FALSE(cursor.next(session));
  EXPECT_FALSE(cursor.next(session));
}

TEST(Workload, ACachedPrefixMakesItAccumulateInSessionsOfOneTurn) {
  const Workload workload = built({.source = SyntheticSource{.cached_prefix_tokens = 100}});
  EXPECT_TRUE(workload.accumulating());
  EXPECT_TRUE(workload.single_turn());
  EXPECT_EQ(workload.trace_block_size(), 100u);
  EXPECT_EQ(all(workload)[5].shared_tokens, 100u);
}

TEST(Workload, ImpossibleArrivalsAreFoundBeforeTheRun) {
  const auto workload = build({.load = {.kind = Load::Kind::Poisson, .per_second = 1e-320}});
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error()[0].code, "workload.rate_too_small");
}

TEST(Workload, EveryProblemOfASpecIsReported) {
  const auto workload =
      build({.source = SyntheticSource{.input = {.fixed = 0}, .output = {.fixed = 0}},
             .load = {.concurrency = 0}});
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().size(), 3u);
}

Spec a_trace(const std::string& path, Load::Kind kind = Load::Kind::TraceTimestamps) {
  return {.source = TraceSource{.path = path, .block_size = 4}, .load = {.kind = kind}};
}

constexpr std::string_view kRows =
    R"({"session_id":"late","timestamp":70,"output_length":2,"hash_ids":[1]}
{"request_id":"r","timestamp":50,"output_length":3,"output_token_ids":[4,5,6],"hash_ids":[2,3],"priority":1}
{"session_id":"late","timestamp":90,"output_length":5,"hash_ids":[1,4]}
)";

TEST(Workload, WalksATraceInOrderOfArrivalWithOrdinalsOfTheFile) {
  const TemporaryFile file("rows.jsonl", kRows);
  const Workload workload = built(a_trace(file.path()));
  EXPECT_EQ(workload.session_count(), 2u);
  EXPECT_EQ(workload.request_count(), 3u);
  EXPECT_FALSE(workload.single_turn());
  EXPECT_FALSE(workload.accumulating());
  EXPECT_TRUE(workload.has_authored_outputs());
  EXPECT_EQ(workload.trace_block_size(), 4u);
  EXPECT_THAT(workload.ids(), ElementsAre(0, 1, 2, 0, 3));
  EXPECT_THAT(workload.authored_tokens(), ElementsAre(4, 5, 6));
  EXPECT_EQ(workload.notes().source_sha256, sha256_hex(kRows));
  const auto sessions = all(workload, true);
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].index, 1u);
  EXPECT_EQ(sessions[0].first_request, 2u);
  EXPECT_EQ(sessions[0].arrival.ns, 0);
  EXPECT_EQ(sessions[0].plan_offset, 7u);
  EXPECT_TRUE(sessions[0].turns[0].authored);
  EXPECT_EQ(workload.request_name(sessions[0].turns[0].row), "r");
  EXPECT_EQ(workload.metadata(sessions[0].turns[0].row), R"({"priority":1})");
  EXPECT_EQ(workload.session_name(1), "");
  EXPECT_EQ(sessions[1].index, 0u);
  EXPECT_EQ(sessions[1].first_request, 0u);
  EXPECT_EQ(sessions[1].arrival.ns, 20'000'000);
  ASSERT_EQ(sessions[1].turns.size(), 2u);
  EXPECT_EQ(sessions[1].turns[1].delay.ns, 20'000'000);
  EXPECT_TRUE(sessions[1].ids.empty());
  EXPECT_EQ(workload.session_name(0), "late");
}

TEST(Workload, WalksATraceInFileOrderInAClosedLoop) {
  const TemporaryFile file("rows.jsonl", kRows);
  const auto sessions = all(built(a_trace(file.path(), Load::Kind::Concurrency)));
  EXPECT_EQ(sessions[0].index, 0u);
  EXPECT_EQ(sessions[1].index, 1u);
}

TEST(Workload, TheStopDoesNotCutATrace) {
  const TemporaryFile file("rows.jsonl", kRows);
  Spec spec = a_trace(file.path());
  spec.stop = {.count = 1};
  EXPECT_EQ(built(spec).request_count(), 3u);
}

TEST(Workload, TellsTheLongestRowSoThatAModelLimitCanBeChecked) {  // bugs.md A54, input side
  const TemporaryFile file("rows.jsonl", R"({"timestamp":0,"input_length":4000,"output_length":200}
{"timestamp":0,"input_length":10,"output_length":4000})");
  const Workload workload = built(a_trace(file.path()));
  EXPECT_EQ(workload.input_tokens_max(), 4000u);
  EXPECT_EQ(workload.total_tokens_max(), 4200u);
}

TEST(Workload, AMissingTraceIsAProblemOfTheInput) {
  const auto workload = build(a_trace("/nowhere.jsonl"));
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error()[0].place.file, "/nowhere.jsonl");
  EXPECT_EQ(workload.error()[0].fault, Fault::Input);
}

TEST(Workload, AGzipTraceThatIsCutOffIsRefused) {
  // Ten bytes of a gzip header and nothing behind them.
  const TemporaryFile file("rows.jsonl.gz", std::string_view("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10));
  const auto workload = build(a_trace(file.path()));
  ASSERT_FALSE(workload);
  EXPECT_THAT(workload.error()[0].message, HasSubstr("cut off"));
}

TEST(Workload, LoadsTheSharedConversationTrace) {
  const auto path = testing_tools::shared_data("traces/mooncake/conversation_trace.jsonl");
  if (!path) GTEST_SKIP() << "no shared data";
  const Workload workload =
      built({.source = TraceSource{.path = *path}, .load = {.kind = Load::Kind::TraceTimestamps}});
  EXPECT_EQ(workload.request_count(), 12'031u);
  EXPECT_TRUE(workload.single_turn());
  EXPECT_EQ(workload.ids().size(), 288'500u);
  EXPECT_EQ(*std::max_element(workload.ids().begin(), workload.ids().end()), 182'790u - 1);
  EXPECT_EQ(workload.input_tokens_max(), 126'195u);
  EXPECT_EQ(workload.notes().rows_out_of_order, 0u);
  EXPECT_EQ(workload.notes().rows_without_time, 0u);
  std::uint64_t input = 0, output = 0;
  Time last;
  for (const Session& session : all(workload)) {
    EXPECT_GE(session.arrival, last);
    last = session.arrival;
    EXPECT_EQ(session.plan_offset, output);
    input += session.turns[0].input_tokens;
    output += session.turns[0].output_tokens;
  }
  EXPECT_EQ(last.ns, 3'536'999'000'000);
  EXPECT_EQ(input, 144'793'823u);
  EXPECT_EQ(output, 4'122'048u);
}

}  // namespace
}  // namespace servecast::workload
