// SPDX-License-Identifier: Apache-2.0
// Golden numbers that need no engine: the tables of tables/*.yaml.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "cache/grouped_gate.hpp"
#include "conformance/case_yaml.hpp"
#include "conformance/kv_event_rows.hpp"
#include "conformance/operator_rows.hpp"
#include "conformance/register_tests.hpp"
#include "conformance/text_case.hpp"
#include "perf/timers.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/vllm/a_rank.hpp"
#include "support/trace_file.hpp"
#include "workload/workload.hpp"

namespace servecast::test {
namespace {

constexpr double kNanosecondMs = 1e-6;

void check_random(const Value& row) {
  row.only({"seed", "integers", "units", "words"});
  Random random(row.at("seed").count());
  ASSERT_EQ(row.map.size(), 2U) << "a row checks one kind of draw";
  if (const Value* want = row.find("integers")) {
    for (const Value& value : want->list) EXPECT_EQ(random.next(), value.count());
  }
  if (const Value* want = row.find("units")) {
    for (const Value& value : want->list) EXPECT_EQ(random.unit(), value.number());
  }
  if (const Value* want = row.find("words")) {
    for (const Value& value : want->list) EXPECT_EQ(random.word(), value.count());
  }
}

std::vector<std::uint64_t> counts(const Value& list) {
  std::vector<std::uint64_t> out;
  for (const Value& value : list.list) out.push_back(value.count());
  return out;
}

struct Hashes {
  std::vector<std::uint64_t> local, sequence;
};

Hashes hash_blocks(const std::vector<std::uint64_t>& tokens, std::size_t block) {
  const std::vector<std::uint32_t> words(tokens.begin(), tokens.end());
  Hashes out;
  for (std::size_t i = 0; i + block <= words.size(); i += block) {
    const std::uint64_t local = local_block_hash(std::span(words).subspan(i, block));
    out.sequence.push_back(out.sequence.empty() ? local
                                                : chained_block_hash(out.sequence.back(), local));
    out.local.push_back(local);
  }
  return out;
}

void check_hashes(const Value& row) {
  row.only({"tokens", "block", "local", "sequence", "as", "block_count"});
  const Hashes got = hash_blocks(counts(row.at("tokens")), row.at("block").count());
  if (const Value* same = row.find("as")) {
    EXPECT_EQ(got.sequence, hash_blocks(counts(*same), row.at("block").count()).sequence);
    EXPECT_EQ(got.sequence.size(), row.at("block_count").count());
    return;
  }
  EXPECT_EQ(got.local, counts(row.at("local")));
  EXPECT_EQ(got.sequence, counts(row.at("sequence")));
}

void check_timer(const Value& row) {
  row.only({"prefill_tokens", "decode_context", "capacity_tokens", "fixed_decode_ms", "speedup",
            "decode_speedup", "ms", "refused"});
  perf::SpeedRatios ratios;
  if (const Value* speedup = row.find("speedup")) ratios.step = speedup->number();
  if (const Value* decode = row.find("decode_speedup")) ratios.decode = decode->number();
  const Value* fixed = row.find("fixed_decode_ms");
  const auto timer = fixed != nullptr ? perf::fixed_timer({.decode_ms = fixed->number()}, ratios)
                                      : perf::polynomial_timer(ratios);
  if (row.find("refused") != nullptr) {
    EXPECT_FALSE(timer);
    return;
  }
  ASSERT_TRUE(timer);
  perf::StepShape shape;
  if (const Value* tokens = row.find("prefill_tokens")) {
    shape.prefill_requests = 1;
    shape.prefill_isl = tokens->count();
    shape.capacity_tokens = 1;
    EXPECT_NEAR(to_ms((*timer)->time(shape).prefill), row.at("ms").number(), kNanosecondMs / 2);
    return;
  }
  shape.decode_requests = 1;
  shape.decode_context = row.at("decode_context").count();
  shape.capacity_tokens = row.at("capacity_tokens").count();
  EXPECT_NEAR(to_ms((*timer)->time(shape).decode), row.at("ms").number(), kNanosecondMs / 2);
}

std::vector<double> arrivals_ms(const workload::Workload& workload) {
  std::vector<double> out;
  workload::Workload::Cursor cursor = workload.cursor();
  for (workload::Session session; cursor.next(session);) out.push_back(to_ms(session.arrival));
  return out;
}

void check_arrivals(const Value& row) {
  row.only({"load", "per_second", "seed", "smoothness", "count", "arrivals_ms", "refused",
            "mean_gap_ms", "gap_deviation_ms", "within_ms"});
  using Kind = workload::Load::Kind;
  const std::map<std::string, Kind> kinds = {{"constant_rate", Kind::ConstantRate},
                                             {"burst", Kind::Burst},
                                             {"poisson", Kind::Poisson},
                                             {"gamma", Kind::Gamma}};
  workload::Spec spec;
  spec.load.kind = kinds.at(row.at("load").scalar);
  if (const Value* v = row.find("per_second")) spec.load.per_second = v->number();
  if (const Value* v = row.find("seed")) spec.load.seed = v->count();
  if (const Value* v = row.find("smoothness")) spec.load.smoothness = v->number();
  spec.stop.count = row.at("count").count();
  const auto workload = workload::build(spec);
  if (row.find("refused") != nullptr) {
    EXPECT_FALSE(workload);
    return;
  }
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  const std::vector<double> got = arrivals_ms(*workload);
  ASSERT_EQ(got.size(), row.at("count").count());
  if (const Value* want = row.find("arrivals_ms")) {
    ASSERT_EQ(want->list.size(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], want->list[i].number(), kNanosecondMs) << "arrival " << i;
    }
    return;
  }
  const auto gaps = static_cast<double>(got.size() - 1);
  const double mean = got.back() / gaps;
  double squares = 0;
  for (std::size_t i = 1; i < got.size(); ++i) {
    squares += (got[i] - got[i - 1] - mean) * (got[i] - got[i - 1] - mean);
  }
  EXPECT_NEAR(mean, row.at("mean_gap_ms").number(), row.at("within_ms").number());
  EXPECT_NEAR(std::sqrt(squares / gaps), row.at("gap_deviation_ms").number(),
              row.at("within_ms").number());
}

void check_stop(const Value& row) {
  row.only({"per_load_unit", "concurrency", "requests"});
  workload::Spec spec;
  spec.load.concurrency = static_cast<std::uint32_t>(row.at("concurrency").count());
  spec.stop = {.count = std::nullopt, .per_load_unit = row.at("per_load_unit").number()};
  const auto workload = workload::build(spec);
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  EXPECT_EQ(workload->request_count(), row.at("requests").count());
}

void check_mooncake(const Value& row) {
  row.only({"rows", "block", "inputs", "arrivals_ms", "refused"});
  std::string text;
  for (const Value& line : row.at("rows").list) text += line.scalar + "\n";
  const TraceFile trace(text);
  workload::TraceSource source;
  source.path = trace.path();
  source.block_size = static_cast<std::uint32_t>(row.at("block").count());
  workload::Spec spec;
  spec.source = source;
  spec.load.kind = workload::Load::Kind::TraceTimestamps;
  spec.stop = {};
  if (row.find("refused") != nullptr) {
    EXPECT_FALSE(workload::build(spec)) << text;
    return;
  }
  const auto workload = workload::build(spec);
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  if (const Value* want = row.find("inputs")) {
    workload::Workload::Cursor cursor = workload->cursor();
    workload::Session session;
    for (const Value& tokens : want->list) {
      ASSERT_TRUE(cursor.next(session));
      EXPECT_EQ(session.turns.at(0).input_tokens, tokens.count());
    }
    return;
  }
  const std::vector<double> got = arrivals_ms(*workload);
  const Value& want = row.at("arrivals_ms");
  ASSERT_EQ(got.size(), want.list.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want.list[i].number(), kNanosecondMs) << "arrival " << i;
  }
}

// Acceptance rates of draft tokens, as given or from how many are accepted on average.
void check_acceptance(const Value& row) {
  row.only({"given", "accepted", "drafts", "rates", "refused"});
  const auto drafts = static_cast<std::uint32_t>(row.at("drafts").count());
  Result<std::vector<double>> rates = std::vector<double>();
  if (const Value* accepted = row.find("accepted")) {
    rates = scheduler::rates_of_accepted(accepted->number(), drafts);
  } else {
    std::vector<double> given;
    for (const Value& rate : row.at("given").list) given.push_back(rate.number());
    rates = scheduler::acceptance_rates(std::move(given), drafts);
  }
  if (row.find("refused") != nullptr) {
    EXPECT_FALSE(rates);
    return;
  }
  ASSERT_TRUE(rates);
  const std::vector<Value>& want = row.at("rates").list;
  ASSERT_EQ(rates->size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR((*rates)[i], want[i].number(), 1e-12);
}

// What the gate of grouped caches says: blocks of the pool, or the field that it refuses and why.
void check_gate(const Value& row) {
  row.only({"groups", "pool_bytes", "pool_blocks", "unit", "probe_unit", "version", "max_model_len",
            "max_batched_tokens", "prefix_caching", "blocks", "refuses", "says", "cold"});
  const std::vector<cache::KvGroup> groups = read_groups(row.at("groups"));
  cache::GroupedSettings settings{.groups = groups};
  const auto small = [](const Value& value) { return static_cast<std::uint32_t>(value.count()); };
  if (const Value* v = row.find("pool_bytes")) settings.capacity_bytes = v->count();
  if (const Value* v = row.find("pool_blocks"))
    settings.capacity_bytes = v->count() * groups.front().page_size_bytes;
  if (const Value* v = row.find("unit")) settings.prefix_match_unit = small(*v);
  if (const Value* v = row.find("probe_unit"))
    settings.evidence = {.ran_with_prefix_caching = true, .hash_block_tokens = small(*v)};
  if (const Value* v = row.find("version")) settings.vllm_version = v->scalar;
  if (const Value* v = row.find("max_model_len")) settings.max_model_len = small(*v);
  if (const Value* v = row.find("max_batched_tokens")) settings.max_num_batched_tokens = small(*v);
  if (const Value* v = row.find("prefix_caching")) settings.prefix_caching = v->flag();
  const cache::GroupedGate gate = cache::grouped_gate(settings);
  if (const Value* field = row.find("refuses")) {
    ASSERT_EQ(gate.refusals.size(), 1U);
    EXPECT_EQ(gate.refusals[0].field, field->scalar);
    EXPECT_NE(gate.refusals[0].message.find(row.at("says").scalar), std::string::npos)
        << gate.refusals[0].message;
    return;
  }
  ASSERT_TRUE(gate.refusals.empty()) << gate.refusals[0].message;
  if (const Value* cold = row.find("cold")) {
    EXPECT_EQ(gate.cold_reason.value_or("asked for"), cold->scalar);
    return;
  }
  ASSERT_TRUE(gate.prefix_caching);
  EXPECT_EQ(cache::grouped_rules(settings).blocks, row.at("blocks").count());
}

// What a rank is when nothing is said.
void check_rank_defaults(const Value& row) {
  row.only({"blocks", "block_tokens", "max_sequences", "max_batched_tokens", "preemption"});
  const scheduler::RankConfig rank;
  EXPECT_EQ(rank.blocks, row.at("blocks").count());
  EXPECT_EQ(rank.block_tokens, row.at("block_tokens").count());
  EXPECT_EQ(rank.max_sequences, row.at("max_sequences").count());
  EXPECT_EQ(rank.max_batched_tokens, row.at("max_batched_tokens").count());
  const bool lifo = rank.preemption_mode == scheduler::PreemptionMode::Lifo;
  EXPECT_EQ(lifo ? "lifo" : "fifo", row.at("preemption").scalar);
}

// Blocks that two prompts of a rank hold, the second of which begins with the first: in the middle
// of its first pass, when what it starts from is held too, and at the end of that pass.
void check_held(const Value& row) {
  row.only({"engine", "first", "second", "to", "during", "after"});
  replay::Deployment deployment;
  read_engine(row.at("engine"), deployment);
  scheduler::Rank rank(scheduler::Mode::Stepping, deployment.rank);
  const auto first = static_cast<std::uint32_t>(row.at("first").count());
  const auto ask = [&](const Value& tokens) {
    const auto prompt = static_cast<std::uint32_t>(tokens.count());
    std::vector<std::uint32_t> ids;
    for (std::uint32_t t = 0; t < prompt; ++t) ids.push_back(t < first ? t : prompt + t);
    return rank.submit({.prompt = prompt, .output = 2, .ids = ids, .trace_block = 1});
  };
  ask(row.at("first"));
  rank.drain();
  EXPECT_EQ(rank.active(), 0U);
  const scheduler::Slot second = ask(row.at("second"));
  rank.scheduler.schedule(rank.now, scheduler::Admit::Yes);
  EXPECT_EQ(rank[second].computed, row.at("to").count());
  EXPECT_EQ(rank.active(), row.at("during").count());
  rank.scheduler.complete(rank.now, rank.outcome);
  EXPECT_EQ(rank.active(), row.at("after").count());
}

void run_table(const Value& document) {
  document.only({"name", "table", "why", "rows"});
  const std::map<std::string, void (*)(const Value&)> checks = {
      {"random", check_random},       {"hashes", check_hashes},
      {"timer", check_timer},         {"arrivals", check_arrivals},
      {"stop", check_stop},           {"mooncake", check_mooncake},
      {"kv_events", check_kv_events}, {"acceptance", check_acceptance},
      {"gate", check_gate},           {"rank_defaults", check_rank_defaults},
      {"held", check_held},           {"operator", check_operator},
      {"measured", check_measured},   {"measured_pass", check_measured_pass},
      {"dsa_pairs", check_dsa_pairs}};
  const auto check = checks.find(document.at("table").scalar);
  if (check == checks.end()) document.at("table").refuse("unknown kind of table");
  ASSERT_FALSE(document.at("rows").list.empty());
  for (const Value& row : document.at("rows").list) {
    SCOPED_TRACE(fmt::format("{}:{}", row.file, row.line));
    check->second(row);
    if (testing::Test::IsSkipped()) return;
  }
}

}  // namespace

void register_table_cases() {
  const auto folder = std::filesystem::path(SERVECAST_SOURCE_DIR) / "tests/conformance/tables";
  for (const std::filesystem::path& file : yaml_files(folder)) {
    const std::string suite = "Table_" + test_name(file.stem().string());
    try {
      for (const Value& document : read_yaml(file)) {
        register_test(suite, test_name(document.at("name").scalar),
                      [document] { run_table(document); });
      }
    } catch (const std::runtime_error& error) {
      register_test(suite, "can_be_read", [what = std::string(error.what())] { FAIL() << what; });
    }
  }
}

}  // namespace servecast::test
