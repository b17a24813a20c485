// SPDX-License-Identifier: Apache-2.0
#include "replay/driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "replay/a_workload.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::replay {
namespace {

using scheduler::Ending;
using scheduler::Request;
using testing::ElementsAre;
using testing::IsEmpty;

Time ms(std::int64_t count) {
  return {count * 1'000'000};
}

std::optional<Request> release(Driver& driver, Time now) {
  Request request;
  if (!driver.release(now, request)) return std::nullopt;
  return request;
}

// Everything that is ready, as "session.turn".
std::vector<std::string> names(const std::vector<Request>& requests) {
  std::vector<std::string> names;
  for (const Request& request : requests)
    names.push_back(std::to_string(request.session) + "." + std::to_string(request.turn));
  return names;
}
std::vector<Request> release_all(Driver& driver, Time now) {
  std::vector<Request> requests;
  while (std::optional<Request> request = release(driver, now)) requests.push_back(*request);
  return requests;
}

void end(Driver& driver, Request request, Time now, Ending ending = Ending::Completed) {
  request.ending = ending;
  request.generated = ending == Ending::Completed ? request.output_tokens : 0;
  driver.ended(request, now);
}

TEST(Driver, ReleasesRequestsAtTheirTimesInFileOrder) {
  const workload::Workload workload = a_trace({{.at_ms = 5}, {.at_ms = 5}, {.at_ms = 9}});
  Driver driver(workload, false);
  EXPECT_EQ(driver.next_ready(), ms(5));
  EXPECT_THAT(release_all(driver, ms(4)), IsEmpty());
  const std::vector<Request> first = release_all(driver, ms(5));
  EXPECT_THAT(names(first), ElementsAre("0.0", "1.0"));
  EXPECT_EQ(first[1].arrival, ms(5));
  EXPECT_EQ(first[1].ordinal, 1U);
  EXPECT_EQ(driver.next_ready(), ms(9));
  EXPECT_EQ(driver.in_flight(), 2U);
}

TEST(Driver, ALateLookReleasesWithTheTimesAtWhichRequestsWereReady) {
  const workload::Workload workload = a_trace({{.at_ms = 0}, {.at_ms = 3}});
  Driver driver(workload, false);
  const std::vector<Request> all = release_all(driver, ms(10));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].arrival, ms(0));
  EXPECT_EQ(all[1].arrival, ms(3));
}

TEST(Driver, OrdersByReadyTimeThenSession) {
  const workload::Workload workload = a_trace({{.at_ms = 0, .session = "a"},
                                               {.at_ms = 0, .session = "b"},
                                               {.session = "a", .delay_ms = 5},
                                               {.session = "b", .delay_ms = 6},
                                               {.at_ms = 10, .session = "c"},
                                               {.session = "b", .delay_ms = 0}});
  Driver driver(workload, false);
  const std::vector<Request> first = release_all(driver, ms(0));
  ASSERT_THAT(names(first), ElementsAre("0.0", "1.0"));
  EXPECT_EQ(driver.next_ready(), ms(10)) << "only the third session becomes ready by itself";
  end(driver, first[1], ms(4));  // its next turn is ready at 10, too
  end(driver, first[0], ms(5));  // likewise, and noted later
  EXPECT_THAT(names(release_all(driver, ms(10))), ElementsAre("0.1", "1.1", "2.0"));
}

TEST(Driver, OneTurnOfASessionIsInFlightAtMost) {
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .session = "a"}, {.at_ms = 1, .session = "a", .delay_ms = 0}});
  Driver driver(workload, false);
  const std::vector<Request> first = release_all(driver, ms(50));
  ASSERT_THAT(names(first), ElementsAre("0.0"));
  EXPECT_EQ(driver.next_ready(), kNever) << "the next turn follows the end of this one";
  end(driver, first[0], ms(60));
  EXPECT_EQ(driver.next_ready(), ms(60));
}

TEST(Driver, IsDrainedWhenNothingIsInFlightAndNothingIsToCome) {
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .session = "a"}, {.session = "a", .delay_ms = 5}});
  Driver driver(workload, false);
  EXPECT_FALSE(driver.drained());
  std::optional<Request> request = release(driver, ms(0));
  ASSERT_TRUE(request);
  EXPECT_FALSE(driver.drained());
  end(driver, *request, ms(1));
  EXPECT_FALSE(driver.drained()) << "a turn is to come";
  request = release(driver, ms(6));
  ASSERT_TRUE(request);
  EXPECT_FALSE(driver.drained());
  end(driver, *request, ms(7));
  EXPECT_TRUE(driver.drained());
  EXPECT_EQ(driver.next_ready(), kNever);
}

TEST(Driver, ARejectedTurnIsFollowedByTheNextOne) {
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .session = "a"}, {.session = "a", .delay_ms = 5}});
  Driver driver(workload, false);
  end(driver, *release(driver, ms(0)), ms(2), Ending::Rejected);
  EXPECT_EQ(driver.next_ready(), ms(7));
}

TEST(Driver, AFailedOrCanceledTurnEndsItsSession) {
  for (const Ending ending : {Ending::Failed, Ending::Canceled}) {
    const workload::Workload workload =
        a_trace({{.at_ms = 0, .session = "a"}, {.session = "a", .delay_ms = 5}});
    Driver driver(workload, false);
    end(driver, *release(driver, ms(0)), ms(2), ending);
    EXPECT_TRUE(driver.drained());
  }
}

TEST(Driver, AClosedLoopOpensTheNextSessionWhenOneEnds) {
  const workload::Workload workload = a_trace({{}, {}, {}, {}}, 2);
  Driver driver(workload, false);
  const std::vector<Request> first = release_all(driver, ms(0));
  ASSERT_THAT(names(first), ElementsAre("0.0", "1.0"));
  EXPECT_EQ(driver.next_ready(), kNever);
  end(driver, first[1], ms(3));
  EXPECT_EQ(driver.next_ready(), ms(3));
  const std::vector<Request> next = release_all(driver, ms(3));
  ASSERT_THAT(names(next), ElementsAre("2.0"));
  EXPECT_EQ(next[0].arrival, ms(3));
  end(driver, first[0], ms(4), Ending::Failed);
  end(driver, next[0], ms(5));
  EXPECT_THAT(names(release_all(driver, ms(5))), ElementsAre("3.0"));
  EXPECT_EQ(driver.in_flight(), 1U);
}

TEST(Driver, ASessionKeepsItsPlaceThroughItsThinkTimes) {
  const workload::Workload workload = a_trace(
      {{.session = "a"}, {.session = "a", .delay_ms = 100}, {.session = "b"}, {.session = "c"}}, 2);
  Driver driver(workload, false);
  const std::vector<Request> first = release_all(driver, ms(0));
  ASSERT_THAT(names(first), ElementsAre("0.0", "1.0"));
  end(driver, first[0], ms(10));
  EXPECT_EQ(driver.next_ready(), ms(110)) << "the place of a session that thinks is taken";
  end(driver, first[1], ms(20));
  EXPECT_THAT(names(release_all(driver, ms(20))), ElementsAre("2.0"));
  EXPECT_THAT(names(release_all(driver, ms(110))), ElementsAre("0.1"));
}

TEST(Driver, ALoneRequestsContentIsItsRows) {
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .input = 6, .ids = {7, 8}}, {.at_ms = 0, .input = 4, .ids = {7}}});
  Driver driver(workload, false);
  const std::vector<Request> all = release_all(driver, ms(0));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].content.trace_block, 4U);
  ASSERT_EQ(all[0].content.ids.size(), 2U);
  ASSERT_EQ(all[1].content.ids.size(), 1U);
  EXPECT_EQ(all[0].content.ids[0], all[1].content.ids[0]);
  EXPECT_EQ(all[0].content.shareable_tokens, 6U);
  EXPECT_NE(all[0].content.owner, all[1].content.owner);
  EXPECT_FALSE(all[0].content.outlives);
}

TEST(Driver, ARequestSaysWhatElseItsPrefixesDependOnAndWhetherItsSessionHasOtherTurns) {
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .ids = {7}, .extra_key = "a"},
               {.at_ms = 0, .session = "one", .ids = {7}},
               {.at_ms = 0, .session = "two", .ids = {7}, .extra_key = "b"},
               {.at_ms = 1, .session = "two", .ids = {7}, .extra_key = "a"}});
  Driver driver(workload, false);
  const std::vector<Request> first = release_all(driver, ms(0));
  ASSERT_EQ(first.size(), 3U);
  EXPECT_NE(first[0].content.extra_key, 0U);
  EXPECT_EQ(first[1].content.extra_key, 0U);
  EXPECT_NE(first[2].content.extra_key, first[0].content.extra_key);
  EXPECT_FALSE(first[0].in_session || first[1].in_session);
  EXPECT_TRUE(first[2].in_session);
  end(driver, first[2], ms(1));
  const std::vector<Request> second = release_all(driver, ms(2));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_TRUE(second[0].in_session);
  EXPECT_EQ(second[0].content.extra_key, first[0].content.extra_key);
}

workload::Workload accumulating_sessions(std::uint32_t sessions, std::uint32_t turns) {
  workload::Spec spec;
  spec.source = workload::SessionSource{.new_input = {.fixed = 7},
                                        .output = {.fixed = 6},
                                        .turns = turns,
                                        .shared_prefix_ratio = 0.5,
                                        .prefix_groups = 2,
                                        .inter_turn_delay_ms = 2,
                                        .block_size = 4};
  spec.load.concurrency = sessions;
  spec.stop = {.count = sessions, .per_load_unit = std::nullopt};
  return built(spec);
}

TEST(Driver, APromptHoldsAllThatItsSessionSaidBefore) {
  const workload::Workload workload = accumulating_sessions(1, 3);
  Driver driver(workload, false);
  std::optional<Request> request = release(driver, ms(0));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->prompt_tokens, 7U);
  EXPECT_TRUE(request->content.outlives);
  EXPECT_EQ(request->content.shareable_tokens, 7U);
  const std::uint64_t owner = request->content.owner;
  end(driver, *request, ms(1));
  request = release(driver, ms(3));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->arrival, ms(3));
  EXPECT_EQ(request->prompt_tokens, 7U + 6 + 7);
  EXPECT_EQ(request->content.owner, owner);
  // Cut short: what was generated counts, not what was asked for.
  request->ending = Ending::Completed;
  request->generated = 4;
  driver.ended(*request, ms(4));
  request = release(driver, ms(6));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->prompt_tokens, 7U + 6 + 7 + 4 + 7);
  EXPECT_EQ(request->content.plan_offset, 6U + 6)
      << "the plan of outputs does not depend on the run";
  EXPECT_FALSE(request->content.outlives) << "nobody asks for what the last turn adds";
  EXPECT_EQ(request->content.shareable_tokens, 7U + 6 + 7 + 4);
}

// The names of a turn's full blocks, outputs included.
std::vector<std::uint64_t> spelled(const Request& request, std::uint32_t generated) {
  scheduler::Spelling spelling(2);
  std::vector<std::uint64_t> hashes;
  std::uint64_t parent = 0;
  for (std::uint32_t block = 0; 2 * (block + 1) <= request.prompt_tokens + generated; ++block) {
    parent = spelling.hash(request.content, request.prompt_tokens, block, parent).prefix;
    hashes.push_back(parent);
  }
  return hashes;
}

TEST(Driver, WhatATurnSaidIsSpelledTheSameInTheNextTurn) {
  const workload::Workload workload = accumulating_sessions(5, 4);
  Driver driver(workload, true);
  std::vector<Request> requests = release_all(driver, ms(0));
  ASSERT_EQ(requests.size(), 5U);
  for (std::int64_t turn = 1; turn < 4; ++turn) {
    std::vector<std::vector<std::uint64_t>> said;
    for (Request& request : requests) {
      request.ending = Ending::Completed;
      request.generated = request.session == 3 ? 3 : 6;  // one is cut short
      said.push_back(spelled(request, request.generated));
      driver.ended(request, ms(2 * turn - 1));
    }
    requests = release_all(driver, ms(2 * turn + 1));
    ASSERT_EQ(requests.size(), 5U);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::vector<std::uint64_t> now = spelled(requests[i], 0);
      ASSERT_GT(now.size(), said[i].size());
      now.resize(said[i].size());
      EXPECT_EQ(now, said[i]) << "session " << i << ", turn " << turn;
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NE(now.back(), spelled(requests[j], 0)[now.size() - 1]) << "sessions are different";
      }
    }
  }
}

TEST(Driver, RealTokensAreSpelledOnlyWhenAsked) {
  const workload::Workload workload = accumulating_sessions(1, 2);
  Driver plain(workload, true), fast(workload, false);
  EXPECT_NE(release(plain, ms(0))->content.history, nullptr);
  EXPECT_EQ(release(fast, ms(0))->content.history, nullptr);
}

// Names by provenance and real tokens share the same prefixes between sessions of a group.
TEST(Driver, SessionsOfAGroupShareItsPrefix) {
  const workload::Workload workload = accumulating_sessions(12, 1);
  Driver driver(workload, true);
  const std::vector<Request> all = release_all(driver, ms(0));
  ASSERT_EQ(all.size(), 12U);
  int pairs = 0;
  for (const Request& a : all) {
    for (const Request& b : all) {
      if (a.session >= b.session || a.content.shared_tokens == 0) continue;
      const bool shared = a.content.group == b.content.group && b.content.shared_tokens > 0;
      EXPECT_EQ(spelled(a, 0)[1] == spelled(b, 0)[1], shared) << a.session << ' ' << b.session;
      pairs += shared ? 1 : 0;
    }
  }
  EXPECT_GT(pairs, 0);
}

}  // namespace
}  // namespace servecast::replay
