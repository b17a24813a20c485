// SPDX-License-Identifier: Apache-2.0
#include "replay/oracle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "perf/timers.hpp"
#include "replay/a_workload.hpp"
#include "replay/simulation.hpp"

namespace servecast::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kNever = cache::Demands::kNever;

// Prompts of one block whose tokens are an id; ids are numbered as the file shows them.
std::uint64_t name_of(std::uint32_t id) {
  return local_block_hash(std::array<std::uint32_t, 4>{id, id, id, id});
}

// Demand of each of the first `count` ids, each of which one row has.
std::vector<std::uint32_t> demands_of(const workload::Workload& workload, std::uint32_t count) {
  const Oracle oracle(workload, 4);
  std::vector<std::uint32_t> demands;
  for (std::uint32_t id = 0; id < count; ++id)
    demands.push_back(oracle.demands().next(name_of(id)));
  return demands;
}

TEST(Oracle, RequestsAskInOrderOfTheirTimesThenOfTheFile) {
  const auto trace = a_trace({{.at_ms = 5}, {.at_ms = 0}, {.at_ms = 5}, {.at_ms = 7}});
  EXPECT_THAT(demands_of(trace, 4), ElementsAre(1, 0, 2, 3));
}

TEST(Oracle, TurnsAskWhenTheirThinkTimesAreOver) {
  const auto trace = a_trace({{.at_ms = 0, .session = "a"},
                              {.session = "a", .delay_ms = 50},
                              {.at_ms = 10, .session = "b"},
                              {.at_ms = 60, .session = "c"}});
  EXPECT_THAT(demands_of(trace, 4), ElementsAre(0, 2, 1, 3));
}

TEST(Oracle, ATurnWithoutThinkTimeAsksAfterEverybodyWhoIsThereAlready) {
  const auto trace = a_trace({{.at_ms = 0, .session = "a"},
                              {.session = "a", .delay_ms = 0},
                              {.at_ms = 0, .session = "b"},
                              {.at_ms = 1, .session = "c"}});
  EXPECT_THAT(demands_of(trace, 4), ElementsAre(0, 2, 1, 3));
}

TEST(Oracle, InAClosedLoopSessionsAskAsPlacesBecomeFree) {
  const std::vector<Row> rows = {{.at_ms = 0, .session = "a"},
                                 {.session = "a", .delay_ms = 0},
                                 {.at_ms = 0, .session = "b"},
                                 {.at_ms = 0, .session = "c"}};
  EXPECT_THAT(demands_of(a_trace(rows, 2), 4), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(demands_of(a_trace(rows, 1), 4), ElementsAre(0, 1, 2, 3));
}

TEST(Oracle, KnowsTheWholeBlocksOfPromptsOnly) {
  const auto trace = a_trace({{.at_ms = 0, .input = 7, .ids = {0, 1}}});
  const Oracle oracle(trace, 4);
  EXPECT_EQ(oracle.demands().next(name_of(0)), 0U);
  const std::array<std::uint32_t, 4> second{1, 1, 1, 1};
  EXPECT_EQ(oracle.demands().next(chained_block_hash(name_of(0), local_block_hash(second))),
            kNever);
}

TEST(Oracle, ARequestAsksUntilItIsAdmittedOrEnds) {
  Oracle oracle(a_trace({{.at_ms = 0, .ids = {0}}, {.at_ms = 1, .ids = {0}}}), 4);
  oracle.admitted(0);
  EXPECT_EQ(oracle.demands().next(name_of(0)), 1U);
  scheduler::Request rejected;
  rejected.ordinal = 1;
  rejected.session = 1;
  rejected.ending = scheduler::Ending::Rejected;
  oracle.ended(rejected);
  EXPECT_EQ(oracle.demands().next(name_of(0)), kNever);
}

// replay.md 8: a session goes on after a completed or a rejected turn only.
TEST(Oracle, TurnsThatNeverComeAskForNothing) {
  const auto trace = a_trace({{.at_ms = 0, .session = "a"},
                              {.session = "a", .delay_ms = 5},
                              {.session = "a", .delay_ms = 5},
                              {.at_ms = 90, .session = "b"}});
  for (const auto ending : {scheduler::Ending::Completed, scheduler::Ending::Rejected,
                            scheduler::Ending::Failed, scheduler::Ending::Canceled}) {
    Oracle oracle(trace, 4);
    scheduler::Request request;
    request.ordinal = 0;
    request.ending = ending;
    oracle.ended(request);
    const bool goes_on =
        ending == scheduler::Ending::Completed || ending == scheduler::Ending::Rejected;
    EXPECT_EQ(oracle.demands().next(name_of(0)), kNever);
    EXPECT_EQ(oracle.demands().next(name_of(1)), goes_on ? 1U : kNever);
    EXPECT_EQ(oracle.demands().next(name_of(2)), goes_on ? 2U : kNever);
    EXPECT_EQ(oracle.demands().next(name_of(3)), 3U) << "another session";
  }
}

workload::Workload sessions(std::uint32_t turns) {
  workload::Spec spec;
  workload::SessionSource source;
  source.new_input.fixed = 6;
  source.output.fixed = 4;
  source.turns = turns;
  source.block_size = 4;
  spec.source = source;
  spec.load.concurrency = 2;
  spec.stop.count = 6;
  return built(spec);
}

TEST(Foresight, NeedsTheWholeAnswerOfEveryTurn) {
  const workload::Workload three = sessions(3);
  const auto said = [&](const scheduler::RankConfig& rank) {
    std::string all;
    for (const Problem& problem : check_foresight(rank, three)) all += problem.message + "\n";
    return all;
  };
  scheduler::RankConfig rank;
  rank.blocks = 8;
  rank.block_tokens = 4;
  rank.max_batched_tokens = 26;
  rank.max_model_len = 30;
  EXPECT_EQ(said(rank), "");
  rank.max_model_len = 29;
  EXPECT_THAT(said(rank), HasSubstr("kv_eviction_policy: belady"));
  EXPECT_THAT(said(rank), HasSubstr("30 tokens, more than engine.context_length (29)"));
  rank.max_model_len.reset();
  rank.blocks = 7;
  EXPECT_THAT(said(rank),
              HasSubstr("30 tokens, more than engine.workers.aggregated.kv_cache.capacity (28)"));
  rank.blocks = 8;
  rank.max_batched_tokens = 25;
  EXPECT_EQ(said(rank), "") << "prompts are computed in chunks";
  rank.chunked_prefill = false;
  EXPECT_THAT(said(rank), HasSubstr("prompt of traffic.source has 26 tokens, more than"));
  EXPECT_THAT(said(rank), HasSubstr("scheduler.max_batched_tokens"));
  EXPECT_THAT(check_foresight(rank, sessions(1)), IsEmpty()) << "no prompt holds an answer";
}

class Nowhere final : public RecordSink {
  void on_request(const RequestRecord&) override {}
};

Deployment a_deployment(std::uint32_t blocks, EvictionPolicy policy) {
  Deployment deployment;
  deployment.rank.blocks = blocks;
  deployment.rank.block_tokens = 4;
  deployment.timer = perf::fixed_timer({.prefill_ms = 10, .decode_ms = 2}).value();
  deployment.kv_eviction_policy = policy;
  return deployment;
}

TEST(Belady, IsRefusedWhereTurnsMayBeCut) {
  Nowhere sink;
  EXPECT_FALSE(run(a_deployment(7, EvictionPolicy::Belady), sessions(3), {}, sink));
  EXPECT_TRUE(run(a_deployment(7, EvictionPolicy::Lru), sessions(3), {}, sink));
  EXPECT_TRUE(run(a_deployment(8, EvictionPolicy::Belady), sessions(3), {}, sink));
}

// One request at a time, each with one block that others may have and one for its last token: a
// cache of blocks - 1 pages, the only kind for which evicting what is asked for latest is the best
// that can be done (engine-vllm.md 15).
constexpr std::uint32_t kPages = 6;

std::uint64_t hits(const std::vector<std::uint32_t>& asked, std::uint32_t pages,
                   EvictionPolicy policy, std::uint32_t concurrency) {
  std::vector<Row> rows;
  for (const std::uint32_t page : asked) {
    const auto last = static_cast<std::uint32_t>(100 + rows.size());
    rows.push_back({.at_ms = 0, .input = 5, .ids = {page, last}});
  }
  Deployment deployment = a_deployment(pages + 1, policy);
  deployment.rank.max_sequences = 1;
  Nowhere sink;
  return run(deployment, a_trace(rows, concurrency), {}, sink).value().prefix_hit_tokens / 4;
}

// The most hits of any choice of victims: tries them all, with the best so far for each content.
std::uint64_t best(const std::vector<std::uint32_t>& asked, std::uint32_t pages) {
  constexpr std::int64_t kUnknown = -1;
  std::vector<std::int64_t> now(1U << kPages, kUnknown);
  now[0] = 0;
  for (const std::uint32_t page : asked) {
    std::vector<std::int64_t> after(now.size(), kUnknown);
    for (std::uint32_t content = 0; content < now.size(); ++content) {
      if (now[content] == kUnknown) continue;
      const std::uint32_t bit = 1U << page;
      const auto reach = [&](std::uint32_t next, std::int64_t hits) {
        after[next] = std::max(after[next], hits);
      };
      if ((content & bit) != 0) {
        reach(content, now[content] + 1);
      } else if (static_cast<std::uint32_t>(std::popcount(content)) < pages) {
        reach(content | bit, now[content]);
      } else {
        for (std::uint32_t victim = 0; victim < kPages; ++victim) {
          if ((content >> victim & 1U) != 0) reach((content & ~(1U << victim)) | bit, now[content]);
        }
      }
    }
    now = std::move(after);
  }
  return static_cast<std::uint64_t>(*std::max_element(now.begin(), now.end()));
}

TEST(Belady, HitsAsOftenAsAnyChoiceCanWherePagesAreAskedForOneByOne) {
  int below = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    std::vector<std::uint32_t> asked(20 + random.below(20));
    for (std::uint32_t& page : asked) page = static_cast<std::uint32_t>(random.below(kPages));
    const auto pages = static_cast<std::uint32_t>(1 + random.below(kPages));
    const std::uint32_t concurrency = static_cast<std::uint32_t>(random.below(4));
    const std::uint64_t most = best(asked, pages);
    EXPECT_EQ(hits(asked, pages, EvictionPolicy::Belady, concurrency), most) << "seed " << seed;
    const std::uint64_t lru = hits(asked, pages, EvictionPolicy::Lru, concurrency);
    EXPECT_LE(lru, most) << "seed " << seed;
    below += lru < most ? 1 : 0;
  }
  EXPECT_GT(below, 20);
}

}  // namespace
}  // namespace servecast::replay
