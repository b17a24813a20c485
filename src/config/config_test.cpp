// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace servecast::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kMinimal = R"(engine:
  model: Qwen/Qwen3-32B
  hardware: h200_sxm
  workers:
    aggregated: {}
)";

Input document(std::string text, std::vector<std::string> sets = {}) {
  return {.path = "run.yaml", .text = std::move(text), .sets = std::move(sets)};
}

Input minimal_with(std::vector<std::string> sets) {
  return document(std::string(kMinimal), std::move(sets));
}

// Every problem as a user sees it, one a line; empty when the input is accepted.
std::string problems(const Input& input) {
  const Result<Config> config = read(input);
  std::string all;
  if (config) return all;
  for (const Problem& problem : config.error()) all += to_text(problem) + "\n";
  return all;
}

// The minimal configuration with one more line under engine.workers.aggregated, written as a file.
std::string with_worker(const std::string& fields) {
  std::string text(kMinimal);
  return text.replace(text.find("{}"), 2, "{" + fields + "}");
}

std::string yaml_of(const Config& config, const std::string& path) {
  for (const Setting& setting : config.settings) {
    if (setting.path == path) return setting.yaml.value_or("(not set)");
  }
  return "(no such setting)";
}

TEST(Config, TakesTheDefaultsOfTheSpecificationWhenOnlyModelAndHardwareAreGiven) {
  const auto config = read(document(std::string(kMinimal)));
  ASSERT_TRUE(config) << problems(document(std::string(kMinimal)));
  const auto& source = std::get<workload::SyntheticSource>(config->traffic.source);
  EXPECT_EQ(source.input.fixed, 1024u);
  EXPECT_EQ(source.output.fixed, 128u);
  EXPECT_EQ(config->traffic.load.concurrency, 10u);
  EXPECT_EQ(config->traffic.stop.count, 100u);
  EXPECT_EQ(config->engine.rank.max_batched_tokens, 8192u);
  EXPECT_EQ(config->engine.rank.max_sequences, 256u);
  EXPECT_EQ(config->engine.rank.block_tokens, 64u);
  EXPECT_TRUE(config->engine.rank.prefix_caching);
  EXPECT_EQ(config->engine.capacity.memory_fraction, 0.9);
  EXPECT_EQ(config->router.policy, router::Policy::RoundRobin);
  EXPECT_FALSE(config->engine.context_length);
}

TEST(Config, NamesAnUnknownFieldWithItsPlaceTheNearestNameAndTheAcceptedOnes) {
  const std::string text =
      problems(document("engine:\n  modell: a\n  hardware: b\n  workers: {aggregated: {}}\n"));
  EXPECT_THAT(text, HasSubstr("run.yaml:2:3: engine.modell is not a field"));
  EXPECT_THAT(text, HasSubstr("did you mean \"model\"?"));
  EXPECT_THAT(text, HasSubstr("strict"));
  EXPECT_THAT(text, HasSubstr("mode, model, hardware"));
  EXPECT_THAT(text, HasSubstr("engine.model is required"));
}

TEST(Config, ReportsEveryBadFieldAtOnce) {
  const std::string text = problems(
      minimal_with({"engine.worker=1", "traffic.load.concurrency=0", "router.policy=best"}));
  EXPECT_THAT(text, HasSubstr("engine.worker is not a field"));
  EXPECT_THAT(text, HasSubstr("traffic.load.concurrency must be at least 1, not 0"));
  EXPECT_THAT(
      text,
      HasSubstr("router.policy must be one of round_robin, least_loaded, power_of_two, random"));
}

struct BadScalar {
  const char* field;
  const char* value;
  const char* says;
};

TEST(Config, RefusesScalarsThatOnlyLookRight) {
  const BadScalar cases[] = {
      {"scheduler: {max_sequences: %}", "8.0", "must be a whole number, not the number 8.0"},
      {"scheduler: {max_sequences: %}", "1e3", "must be a whole number"},
      {"scheduler: {max_sequences: %}", "010", "leading zeros"},
      {"scheduler: {max_sequences: %}", "0x1f", "must be a whole number"},
      {"scheduler: {max_sequences: %}", "1_000", "without '_'"},
      {"scheduler: {max_sequences: %}", "+5", "without '+'"},
      {"scheduler: {max_sequences: %}", "\"12\"", "without quotes"},
      {"scheduler: {max_sequences: %}", "true", "must be a whole number, not true"},
      {"scheduler: {max_sequences: %}", "-1", "must be at least 1, not -1"},
      {"scheduler: {max_sequences: %}", "0", "must be at least 1, not 0"},
      {"scheduler: {max_sequences: %}", "4294967296",
       "must be from 1 to 4294967295, not 4294967296"},
      {"scheduler: {max_sequences: %}", "99999999999999999999999",
       "must be from 1 to 4294967295, not 99999999999999999999999"},
      {"scheduler: {max_sequences: %}", "null", "not null"},
      {"scheduler: {max_sequences: %}", "[1]", "not a list"},
      {"scheduler: {max_sequences: %}", "{a: 1}", "not a mapping"},
      {"parallelism: {replicas: %}", "0",
       "engine.workers.aggregated.parallelism.replicas must be from 1 to 65536"},
      {"kv_cache: {prefix_caching: %}", "yes", "must be true or false"},
      {"kv_cache: {prefix_caching: %}", "1", "must be true or false"},
      {"kv_cache: {prefix_caching: %}", "'true'", "must be true or false"},
      {"kv_cache: {block_size: %}", "1", "from 2 to 65536"},
      {"timing: {speedup_ratio: %}", ".nan", "must be a finite number"},
      {"timing: {speedup_ratio: %}", ".inf", "must be a finite number"},
      {"timing: {speedup_ratio: %}", "-.inf", "must be a finite number"},
      {"timing: {speedup_ratio: %}", "nan", "must be a finite number"},
      {"timing: {speedup_ratio: %}", "infinity", "must be a finite number"},
      {"timing: {speedup_ratio: %}", "1e999", "must be a finite number"},
      {"timing: {speedup_ratio: %}", "-1", "at least 0"},
      {"timing: {speedup_ratio: %}", "1.5.2", "must be a finite number"},
      {"kv_cache: {capacity: {memory_fraction: %}}", "0", "greater than zero"},
      {"kv_cache: {capacity: {memory_fraction: %}}", "1.5", "at most 1"},
      {"scheduler: %", "", "must be a mapping, not null"},
  };
  for (const BadScalar& bad : cases) {
    std::string field = bad.field;
    field.replace(field.find('%'), 1, bad.value);
    EXPECT_THAT(problems(document(with_worker(field))), HasSubstr(bad.says)) << field;
    EXPECT_THAT(problems(document(with_worker(field))), HasSubstr("run.yaml:5:")) << field;
  }
}

TEST(Config, AcceptsRealNumbersInEveryPlainDecimalForm) {
  for (const char* value : {"2", "2.5", "2.", ".5", "1e-1", "25e-1", "0", "0.5"}) {
    const auto config =
        read(document(with_worker(std::string("timing: {speedup_ratio: ") + value + "}")));
    ASSERT_TRUE(config) << value;
    EXPECT_EQ(config->engine.timing.ratios.step, std::strtod(value, nullptr)) << value;
  }
}

TEST(Config, TakesNumbersAsTextOnlyInQuotes) {
  EXPECT_THAT(problems(minimal_with({"engine.model=123"})),
              HasSubstr("engine.model must be text, not the number 123"));
  EXPECT_THAT(problems(minimal_with({"engine.model=true"})),
              HasSubstr("engine.model must be text"));
  EXPECT_THAT(problems(minimal_with({"engine.model=''"})),
              HasSubstr("engine.model must not be empty"));
  const auto config = read(minimal_with({"engine.model='123'"}));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.model, "123");
}

TEST(Config, NamesAFieldOfAnotherTypeAndHowToReplaceTheMapping) {
  const std::string written = problems(
      document(std::string(kMinimal) +
               "traffic:\n  load: {type: poisson, concurrency: 3}\n  stop: {requests: 5}\n"));
  EXPECT_THAT(written, HasSubstr("run.yaml:7:25: traffic.load.concurrency: the type poisson does "
                                 "not accept the field concurrency"));
  EXPECT_THAT(written, HasSubstr("type, requests_per_second, sessions_per_second, seed"));
  const std::string set = problems(
      document(std::string(kMinimal) +
                   "traffic:\n  load: {type: concurrency, concurrency: 3}\n  stop: {requests: 5}\n",
               {"traffic.load.type=poisson"}));
  EXPECT_THAT(set,
              HasSubstr("replace the whole mapping: --set 'traffic.load={type: poisson, ...}'"));
}

TEST(Config, NamesTheRequiredFieldsOfAType) {
  const std::string text = problems(document(with_worker("timing: {type: fixed, prefill_ms: 1}")));
  EXPECT_THAT(text, HasSubstr("engine.workers.aggregated.timing.decode_ms is required"));
}

TEST(Config, TiesTheRateToTheSource) {
  const std::string sessions =
      "traffic:\n  source: {type: synthetic-session}\n  load: {type: poisson, requests_per_second: "
      "2}\n  stop: {sessions: 3}\n";
  EXPECT_THAT(problems(document(std::string(kMinimal) + sessions)),
              HasSubstr("traffic.load.requests_per_second: traffic.source.type synthetic-session "
                        "takes its rate as sessions_per_second"));
  const std::string requests =
      "traffic:\n  load: {type: poisson, sessions_per_second: 2}\n  stop: {requests: 3}\n";
  EXPECT_THAT(problems(document(std::string(kMinimal) + requests)),
              HasSubstr("traffic.load.sessions_per_second: traffic.source.type synthetic takes its "
                        "rate as requests_per_second"));
  const std::string none = "traffic:\n  load: {type: gamma}\n  stop: {requests: 3}\n";
  EXPECT_THAT(problems(document(std::string(kMinimal) + none)),
              HasSubstr("traffic.load.requests_per_second: is required"));
}

TEST(Config, WantsExactlyOneStopThatFitsTheSource) {
  const std::string base(kMinimal);
  EXPECT_THAT(problems(document(base + "traffic: {}\n")),
              HasSubstr("traffic.stop: is required with traffic.source.type synthetic: give "
                        "requests or requests_per_load_unit"));
  EXPECT_THAT(
      problems(document(base + "traffic: {stop: {requests: 1, requests_per_load_unit: 2}}\n")),
      HasSubstr("goes not together with stop.requests"));
  EXPECT_THAT(problems(document(base + "traffic: {stop: {sessions: 1}}\n")),
              HasSubstr("traffic.stop.sessions: goes not with traffic.source.type synthetic (use "
                        "requests or requests_per_load_unit)"));
  EXPECT_THAT(problems(document(
                  base + "traffic: {source: {type: trace, paths: [a]}, stop: {requests: 1}}\n")),
              HasSubstr("(use max_virtual_time_seconds)"));
  EXPECT_EQ(problems(document(base + "traffic: {source: {type: trace, paths: [a]}}\n")), "");
}

TEST(Config, ReplaysATraceAtItsOwnTimesUnlessToldOtherwise) {
  const auto config = read(
      document(std::string(kMinimal) + "traffic: {source: {type: trace, paths: [a.jsonl]}}\n"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->traffic.load.kind, workload::Load::Kind::TraceTimestamps);
  EXPECT_EQ(std::get<workload::TraceSource>(config->traffic.source).path, "a.jsonl");
  EXPECT_FALSE(config->traffic.stop.count);
  EXPECT_THAT(problems(document(std::string(kMinimal) +
                                "traffic: {source: {type: trace, paths: [a]}, load: {type: "
                                "poisson, requests_per_second: 1}}\n")),
              HasSubstr("traffic.load.type: traffic.source.type trace brings its own arrivals (use "
                        "trace_timestamps or concurrency)"));
}

TEST(Config, ReadsDistributionsInPlaceOfFixedLengths) {
  const std::string traffic =
      "traffic:\n  source:\n    input_distribution: {type: lognormal, p50: 100, p95: 900}\n"
      "    output_distribution: {type: uniform, min: 3, max: 9}\n  stop: {requests: 4}\n";
  const auto config = read(document(std::string(kMinimal) + traffic));
  ASSERT_TRUE(config) << problems(document(std::string(kMinimal) + traffic));
  const auto& source = std::get<workload::SyntheticSource>(config->traffic.source);
  EXPECT_EQ(source.input.kind, workload::Length::Kind::Lognormal);
  EXPECT_EQ(source.input.p95, 900);
  EXPECT_EQ(source.output.kind, workload::Length::Kind::Uniform);
  EXPECT_EQ(source.output.max, 9u);
  EXPECT_EQ(yaml_of(*config, "traffic.source.input_tokens"), "(not set)");
  EXPECT_THAT(
      problems(document(std::string(kMinimal) + traffic, {"traffic.source.input_tokens=4"})),
      HasSubstr("traffic.source.input_tokens: goes not together with input_distribution"));
  EXPECT_THAT(problems(document(std::string(kMinimal) + traffic,
                                {"traffic.source.output_distribution.max=2"})),
              HasSubstr("traffic.source.output_distribution.max: must be at least min (3)"));
  EXPECT_THAT(problems(document(std::string(kMinimal) + traffic,
                                {"traffic.source.input_distribution.type=zipf"})),
              HasSubstr("zipf: not supported yet"));
}

TEST(Config, WantsPrefixGroupsExactlyWhenPrefixesAreShared) {
  const std::string base =
      std::string(kMinimal) +
      "traffic:\n  source: {type: synthetic-session, session: {%}}\n  stop: {sessions: 2}\n";
  const auto with = [&](const std::string& session) {
    std::string text = base;
    return problems(document(text.replace(text.find('%'), 1, session)));
  };
  EXPECT_EQ(with("shared_prefix_ratio: 0.5, prefix_groups: 4"), "");
  EXPECT_THAT(with("shared_prefix_ratio: 0.5"),
              HasSubstr("prefix_groups: must be greater than zero exactly when"));
  EXPECT_THAT(with("prefix_groups: 4"),
              HasSubstr("prefix_groups: must be greater than zero exactly when"));
  EXPECT_THAT(with("shared_prefix_ratio: 1.01"), HasSubstr("at most 1"));
  EXPECT_THAT(with("turns: 1"), HasSubstr("turns must be at least 2"));
}

TEST(Config, KeepsTheCachedPrefixShorterThanThePrompt) {
  EXPECT_THAT(
      problems(minimal_with(
          {"traffic={source: {input_tokens: 10, cached_prefix_tokens: 10}, stop: {requests: 1}}"})),
      HasSubstr("cached_prefix_tokens: must be less than the shortest prompt (10 tokens), not 10"));
}

TEST(Config, TakesFixedCapacityAsBlocksOrBytes) {
  EXPECT_THAT(problems(document(with_worker("kv_cache: {capacity: {type: fixed}}"))),
              HasSubstr("type fixed needs blocks or bytes"));
  EXPECT_THAT(
      problems(document(with_worker("kv_cache: {capacity: {type: fixed, blocks: 1, bytes: 1}}"))),
      HasSubstr("give exactly one of blocks and bytes"));
  EXPECT_THAT(problems(document(with_worker("kv_cache: {capacity: {type: fixed, bytes: 100000}}"))),
              HasSubstr("kv_cache.bytes_per_token: must be a number when capacity.bytes is given"));
  EXPECT_THAT(problems(document(with_worker("kv_cache: {block_size: 64, bytes_per_token: 16, "
                                            "capacity: {type: fixed, bytes: 1023}}"))),
              HasSubstr("gives 0 blocks"));
  EXPECT_THAT(problems(document(with_worker(
                  "kv_cache: {capacity: {type: fixed, blocks: 4, memory_fraction: 0.5}}"))),
              HasSubstr("the type fixed does not accept the field memory_fraction"));
  EXPECT_THAT(problems(document(with_worker("kv_cache: {capacity: {blocks: 4}}"))),
              HasSubstr("the type default (the default) does not accept the field blocks"));
}

TEST(Config, RefusesByNameWhatItKnowsButCannotDo) {
  struct Refused {
    const char* set;
    const char* says;
  };
  const Refused cases[] = {
      {"engine.mode=disaggregated",
       "engine.mode: disaggregated: separate prefill and decode workers are not supported yet"},
      {"engine.mode=afd", "engine.mode: afd: attention/FFN disaggregation is not supported"},
      {"engine.kv_transfer={}", "engine.kv_transfer: goes only with engine.mode: disaggregated"},
      {"engine.workers.prefill={}",
       "engine.workers.prefill: goes only with engine.mode: disaggregated"},
      {"engine.workers.aggregated.parallelism.context=8",
       "context parallelism is not supported yet"},
      {"engine.workers.aggregated.kv_cache.host_offload={num_host_blocks: 8}",
       "offload to host memory is not supported yet"},
      {"engine.workers.aggregated.kv_cache.kvcr={}", "pulling KV from peers is not supported yet"},
      {"engine.workers.aggregated.timing={type: profile, path: x}",
       "timing.type: profile: timing from measured passes is not supported yet"},
      {"engine.workers.aggregated.sglang={}",
       "settings of another backend than engine.backend (vllm)"},
      {"engine.workers.aggregated.trtllm={}",
       "settings of another backend than engine.backend (vllm)"},
      {"router.policy=kv_router",
       "router.policy: kv_router: routing by cached prefixes is not supported yet"},
      {"router={policy: session_affinity, ttl_ms: 5}", "router.policy: session_affinity"},
      {"router.prefill_load_model={type: aic}",
       "router.prefill_load_model: goes only with router.policy: kv_router"},
      {"planner={policy: enabled}", "planner: scaling during a run is not supported yet"},
      {"traffic={source: {type: trace, format: weka, paths: [a]}}",
       "traffic.source.format: weka: not supported yet"},
      {"traffic={load: {type: kv_capacity_fraction, fraction: 1}, stop: {requests: 1}}",
       "only recommend may use it"},
      {"traffic={source: {type: synthetic-session, session: {migrate_ratio: 0.2}}, stop: "
       "{sessions: 1}}",
       "traffic.source.session.migrate_ratio: turns that change their worker are not supported "
       "yet"},
      {"optimization={target: throughput}", "optimization: belongs to recommend"},
      {"optimizer={}", "optimizer: belongs to recommend"},
  };
  for (const Refused& refused : cases)
    EXPECT_THAT(problems(minimal_with({refused.set})), HasSubstr(refused.says)) << refused.set;
}

TEST(Config, RefusesAnOrderOfPreemptionThatPriorityOverrules) {
  const std::string vllm = "engine.workers.aggregated.vllm.";
  EXPECT_THAT(
      problems(minimal_with({vllm + "scheduling_policy=priority", vllm + "preemption_mode=fifo"})),
      HasSubstr("vllm.preemption_mode: fifo goes not together with scheduling_policy "
                "priority"));
  EXPECT_EQ(problems(minimal_with({vllm + "scheduling_policy=priority"})), "");
}

TEST(Config, TakesAPatienceUpToItsLimit) {
  EXPECT_EQ(
      problems(minimal_with({"traffic={stop: {requests: 5}, cancel_after_ms: 4600000000000}"})),
      "");
  EXPECT_THAT(problems(minimal_with({"traffic.cancel_after_ms=4600000000001"})),
              HasSubstr("traffic.cancel_after_ms must be at least"));
  EXPECT_THAT(problems(minimal_with({"traffic.cancel_after_ms=0"})),
              HasSubstr("traffic.cancel_after_ms must be"));
}

TEST(Config, AcceptsTheNeutralValueOfWhatItCannotDo) {
  EXPECT_EQ(
      problems(minimal_with({"engine.nextn=0", "engine.workers.aggregated.parallelism.context=1",
                             "engine.speculation=null", "engine.enable_eplb=false"})),
      "");
}

TEST(Config, TakesAPrefillIntervalOnlyWhereRanksRunInLockstep) {
  const std::string group = "engine.workers.aggregated.parallelism.attention_data=2";
  const std::string interval = "engine.workers.aggregated.scheduler.prefill_schedule_interval=";
  const auto config = read(minimal_with({group, interval + "4"}));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.parallelism.attention_data, 2u);
  EXPECT_EQ(config->engine.rank.prefill_schedule_interval, 4u);
  EXPECT_EQ(problems(minimal_with({interval + "1"})), "");
  EXPECT_THAT(problems(minimal_with({interval + "4"})),
              HasSubstr("engine.workers.aggregated.scheduler.prefill_schedule_interval: 4 goes "
                        "only with parallelism.attention_data above 1; it is 1"));
  EXPECT_THAT(problems(minimal_with({group, interval + "4", "engine.backend=trtllm"})),
              HasSubstr("prefill_schedule_interval: 4 goes only with engine.backend: vllm, not "
                        "trtllm"));
  EXPECT_THAT(problems(minimal_with({group, interval + "0"})),
              HasSubstr("prefill_schedule_interval must be at least 1, not 0"));
}

TEST(Config, TakesTheDefaultsOfTheBackend) {
  const auto trtllm = read(minimal_with({"engine.backend=trtllm"}));
  ASSERT_TRUE(trtllm);
  EXPECT_EQ(trtllm->engine.rank.block_tokens, 32U);
  EXPECT_TRUE(trtllm->engine.rank.rules.promises_output);
  EXPECT_FALSE(trtllm->engine.rank.rules.recomputes_last);
  const auto vllm = read(minimal_with({}));
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->engine.rank.block_tokens, 64U);
  EXPECT_FALSE(vllm->engine.rank.rules.promises_output);
}

TEST(Config, KnowsOnePolicyOfTensorRtLlm) {
  const std::string policy = "engine.workers.aggregated.trtllm.capacity_scheduler_policy=";
  EXPECT_EQ(problems(minimal_with({"engine.backend=trtllm", policy + "guaranteed_no_evict"})), "");
  EXPECT_THAT(problems(minimal_with({"engine.backend=trtllm", policy + "max_utilization"})),
              HasSubstr("max_utilization: requests that are paused for memory are not supported"));
  EXPECT_THAT(problems(minimal_with({"engine.backend=trtllm",
                                     "engine.workers.aggregated.vllm.preemption_mode=fifo"})),
              HasSubstr("settings of another backend than engine.backend (trtllm)"));
}

TEST(Config, ReadsBothKindsOfDrafts) {
  const auto mtp = read(minimal_with({"engine.nextn=3", "engine.nextn_accepted=2.2"}));
  ASSERT_TRUE(mtp);
  ASSERT_TRUE(mtp->engine.rank.speculation);
  EXPECT_EQ(mtp->engine.rank.speculation->width(), 4U);
  EXPECT_NEAR(mtp->engine.rank.speculation->expected_tokens(), 3.2, 1e-12);
  EXPECT_TRUE(mtp->engine.rank.speculation->needs_last_block);
  for (const char* at : {"engine.", "engine.workers.aggregated.vllm."}) {
    const auto ngram =
        read(minimal_with({std::string(at) + "speculation={kind: ngram, num_speculative_tokens: 3, "
                                             "acceptance_rates: [0.8, 0.6, 0.4], seed: 7}"}));
    ASSERT_TRUE(ngram) << at;
    ASSERT_TRUE(ngram->engine.rank.speculation) << at;
    EXPECT_NEAR(ngram->engine.rank.speculation->expected_tokens(), 2.472, 1e-12);
    EXPECT_EQ(ngram->engine.rank.speculation->seed, 7U);
    EXPECT_FALSE(ngram->engine.rank.speculation->needs_last_block);
  }
}

TEST(Config, RefusesDraftsThatDoNotGoTogether) {
  const std::string ngram =
      "engine.speculation={kind: ngram, num_speculative_tokens: 2, acceptance_rates: ";
  const std::string in_vllm =
      "engine.workers.aggregated.vllm.speculation={kind: ngram, "
      "num_speculative_tokens: 1, acceptance_rates: [0.5]}";
  struct Refused {
    std::vector<std::string> sets;
    const char* says;
  };
  const Refused cases[] = {
      {{"engine.nextn=2"}, "engine.nextn_accepted: is required: nextn is 2"},
      {{"engine.nextn_accepted=1"}, "engine.nextn_accepted: goes only with nextn above 0"},
      {{"engine.nextn=2", "engine.nextn_accepted=2.5"}, "is 2.5, more than nextn (2)"},
      {{"engine.nextn=6", "engine.nextn_accepted=1"}, "engine.nextn must be from 0 to 5"},
      {{ngram + "[0.5]}"}, "has 1 rates; num_speculative_tokens is 2"},
      {{ngram + "[0.5, 1.5]}"}, "acceptance_rates[1] must be at least 0 and at most 1, not 1.5"},
      {{ngram + "[0.5, x]}"}, "acceptance_rates[1] must be a finite number"},
      {{ngram + "0.5}"}, "acceptance_rates must be a list of numbers"},
      {{ngram + "[0.5, 0.5]}", "engine.nextn=1", "engine.nextn_accepted=1"},
       "engine.speculation: goes not together with nextn"},
      {{ngram + "[0.5, 0.5]}", in_vllm},
       "vllm.speculation: goes not together with engine.nextn or engine.speculation"},
      {{ngram + "[0.5, 0.5]}", "engine.backend=trtllm"},
       "engine.speculation: goes only with backend: vllm, not trtllm"},
      {{ngram + "[0.5, 0.5]}",
        "engine.workers.aggregated.timing={type: polynomial, decode_speedup_ratio: 2}"},
       "decode_speedup_ratio: must be 1 with nextn or speculation"},
  };
  for (const Refused& refused : cases)
    EXPECT_THAT(problems(minimal_with(refused.sets)), HasSubstr(refused.says)) << refused.says;
}

TEST(Config, NamesADomainWithItsPath) {
  EXPECT_THAT(problems(minimal_with(
                  {"engine.workers.aggregated.scheduler.max_sequences={choices: [1, 2]}"})),
              HasSubstr("engine.workers.aggregated.scheduler.max_sequences: predict accepts only "
                        "concrete values"));
  EXPECT_THAT(problems(minimal_with({"traffic.load.concurrency={range: {min: 1, max: 4}}"})),
              HasSubstr("traffic.load.concurrency: predict"));
}

TEST(Config, TakesEitherTheWholeLatencyBoundOrTheOtherTwo) {
  EXPECT_EQ(problems(minimal_with({"evaluation={sla: {}}"})), "");
  EXPECT_EQ(problems(minimal_with({"evaluation={sla: {ttft_ms: 5, itl_ms: 2}}"})), "");
  EXPECT_THAT(problems(minimal_with({"evaluation={sla: {ttft_ms: 5, e2e_ms: 2}}"})),
              HasSubstr("e2e_ms: goes not together with ttft_ms"));
  EXPECT_THAT(problems(minimal_with({"evaluation={sla: {ttft_ms: 0}}"})),
              HasSubstr("greater than zero"));
}

TEST(Config, ReplacesEverySeedOnRequest) {
  Input input = minimal_with(
      {"traffic={load: {type: poisson, requests_per_second: 1, seed: 5}, stop: {requests: 2}}",
       "router={policy: random, seed: 9}"});
  input.seed = 77;
  const auto config = read(input);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->traffic.load.seed, 77u);
  EXPECT_EQ(config->router.seed, 77u);
  EXPECT_EQ(std::get<workload::SyntheticSource>(config->traffic.source).seed, 77u);
  EXPECT_THAT(explained(config->settings), HasSubstr("router.seed: 77"));
  EXPECT_THAT(explained(config->settings), HasSubstr("# --seed"));
}

TEST(Config, TellsTheOriginOfEveryValue) {
  const auto config = read(minimal_with({"engine.workers.aggregated.scheduler.max_sequences=7"}));
  ASSERT_TRUE(config);
  const std::string text = explained(config->settings);
  EXPECT_THAT(text, HasSubstr("engine.model: Qwen/Qwen3-32B"));
  EXPECT_THAT(text, HasSubstr("# run.yaml:2:10"));
  EXPECT_THAT(text, HasSubstr("engine.context_length: max"));
  EXPECT_THAT(text, HasSubstr("# default"));
  EXPECT_THAT(text, ::testing::ContainsRegex("max_sequences: 7 +# --set"));
}

// A resolved configuration is accepted verbatim and resolves to itself.
TEST(Config, ReadsItsOwnResolvedFormToTheSameSettings) {
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"traffic={source: {input_distribution: {type: normal, mean: 1e3, stddev: 0.1}}, load: "
       "{type: gamma, requests_per_second: 2327.27, smoothness: 1e-7}, stop: "
       "{requests_per_load_unit: 2.5}}"},
      {"traffic={source: {type: synthetic-session, session: {turns: 3, inter_turn_delay_ms: "
       "1500}}, load: {type: constant_rate, sessions_per_second: 3}, stop: {sessions: "
       "4294967294}}"},
      {"traffic={source: {type: trace, paths: ['./odd name: #1\t\"é\".jsonl'], start: as_given}, "
       "stop: {max_virtual_time_seconds: 1.5}}"},
      {"router={policy: least_loaded, tie: random}",
       "engine.workers.aggregated={kv_cache: {bytes_per_token: 16, capacity: {type: fixed, bytes: "
       "100000}}, timing: {type: fixed, prefill_ms: 0.1, decode_ms: 5e-3}}"},
      {"engine.context_length=4096", "evaluation={sla: {e2e_ms: 99.5}}", "engine.model='no'"},
  };
  for (const auto& sets : variants) {
    const auto first = read(minimal_with(sets));
    ASSERT_TRUE(first) << problems(minimal_with(sets));
    const std::string yaml = to_yaml(first->settings);
    const auto second = read(document(yaml));
    ASSERT_TRUE(second) << yaml << problems(document(yaml));
    EXPECT_EQ(to_yaml(second->settings), yaml);
    EXPECT_EQ(second->engine.model, first->engine.model);
    EXPECT_EQ(second->traffic.stop.count, first->traffic.stop.count);
    EXPECT_EQ(second->traffic.load.per_second, first->traffic.load.per_second);
  }
}

TEST(Config, WarnsAboutLegalConfigurationsThatAreRarelyMeant) {
  const auto config = read(
      minimal_with({"traffic={load: {concurrency: 300}, stop: {requests: 300}}",
                    "engine.workers.aggregated.kv_cache={capacity: {memory_fraction: 0.99}}"}));
  ASSERT_TRUE(config);
  ASSERT_EQ(config->warnings.size(), 3u);
  EXPECT_THAT(config->warnings[0], HasSubstr("256 requests that all workers run at once"));
  EXPECT_THAT(config->warnings[1], HasSubstr("ten times the concurrency"));
  EXPECT_THAT(config->warnings[2], HasSubstr("memory_fraction 0.99"));
}

TEST(Config, RefusesAFileThatIsMissing) {
  EXPECT_THAT(problems({.path = "/nonexistent/run.yaml"}),
              HasSubstr("cannot read the configuration: No such file"));
  EXPECT_THAT(problems({.path = "/"}), HasSubstr("cannot read the configuration: Is a directory"));
}

TEST(Config, RejectsATopLevelThatIsNoMapping) {
  EXPECT_THAT(problems(document("- a\n")), HasSubstr("the top level must be one mapping"));
  EXPECT_THAT(problems(document("")), HasSubstr("the top level must be one mapping"));
  EXPECT_THAT(problems(document("just text")), HasSubstr("the top level must be one mapping"));
}

// Every case of the benchmark is either accepted or refused by name with a reason.
TEST(Config, AcceptsOrRefusesByNameEveryBenchmarkCase) {
  int accepted = 0;
  const std::filesystem::path folder =
      std::filesystem::path(SERVECAST_SOURCE_DIR) / "bench" / "cases";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    setenv("SERVECAST_DATA", "data", 1);
    const auto config = read({.path = entry.path().string()});
    if (config) {
      ++accepted;
      continue;
    }
    const bool named = std::any_of(config.error().begin(), config.error().end(),
                                   [](const Problem& p) { return p.code == "config.unsupported"; });
    const bool only_named =
        std::all_of(config.error().begin(), config.error().end(),
                    [](const Problem& p) { return p.code == "config.unsupported"; });
    EXPECT_TRUE(named && only_named) << problems({.path = entry.path().string()});
  }
  EXPECT_EQ(accepted, 17);
}

}  // namespace
}  // namespace servecast::config
