// SPDX-License-Identifier: Apache-2.0
// SGLang's settings: defaults, the two names that a size may have, and what each refusal names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/deployment.hpp"

namespace servecast::config {
namespace {

using scheduler::Fidelity;
using scheduler::SglangPolicy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Sets = std::vector<std::string>;

Input document(Sets sets, const std::string& backend = "sglang") {
  return {.path = "run.yaml",
          .text = "engine:\n  model: Qwen/Qwen3-8B\n  hardware: h200_sxm\n  backend: " + backend +
                  "\n  workers: {aggregated: {}}\n",
          .sets = std::move(sets),
          .seed = {}};
}

std::string problems(const Input& input) {
  const Result<Config> config = read(input);
  std::string all;
  if (config) return all;
  for (const Problem& problem : config.error()) all += to_text(problem) + "\n";
  return all;
}

std::string refusals(Sets sets) {
  return problems(document(std::move(sets)));
}

std::string worker(const std::string& field) {
  return "engine.workers.aggregated." + field;
}

// The rank that the settings give; nothing when they are refused.
std::optional<scheduler::RankConfig> rank_of(Sets sets) {
  const Result<Config> config = read(document(std::move(sets)));
  if (!config) return std::nullopt;
  return config->engine.rank;
}

TEST(SglangConfig, TakesTheDefaultsOfTheSpecification) {  // engine-sglang.md S1.2
  const auto config = read(document({}));
  ASSERT_TRUE(config) << refusals({});
  const scheduler::RankConfig& rank = config->engine.rank;
  EXPECT_EQ(rank.block_tokens, 1U);
  EXPECT_EQ(rank.max_sequences, 256U);
  EXPECT_EQ(config->engine.capacity.memory_fraction, 0.88);
  ASSERT_TRUE(rank.sglang);
  EXPECT_EQ(rank.sglang->policy, SglangPolicy::Fcfs);
  EXPECT_EQ(rank.sglang->max_prefill_tokens, 16384U);
  EXPECT_EQ(rank.sglang->chunked_prefill_size, 8192U);
  EXPECT_EQ(rank.sglang->clip_max_new_tokens, 4096U);
  EXPECT_EQ(rank.sglang->schedule_conservativeness, 1.0);
  EXPECT_EQ(rank.sglang->decode_log_interval, 40U);
  EXPECT_EQ(rank.sglang->retract_decode_steps, 20U);
  EXPECT_EQ(rank.sglang->prefill_decode_interval, 0U);
  EXPECT_FALSE(rank.sglang->host_loop || rank.sglang->mixed_chunk);
  EXPECT_EQ(rank.sglang->fidelity, Fidelity::Compat);
}

TEST(SglangConfig, LeavesOtherBackendsWithoutSglangSettings) {
  for (const char* backend : {"vllm", "trtllm"}) {
    const auto config = read(document({}, backend));
    ASSERT_TRUE(config);
    EXPECT_FALSE(config->engine.rank.sglang) << backend;
    EXPECT_EQ(config->engine.capacity.memory_fraction, 0.9) << backend;
  }
}

TEST(SglangConfig, TakesEverySetting) {
  const auto rank = rank_of(
      {worker("sglang={schedule_policy: lpm, max_prefill_tokens: 11, chunked_prefill_size: 12, "
              "clip_max_new_tokens: 13, schedule_conservativeness: 0.25, enable_mixed_chunk: true, "
              "decode_log_interval: 14, retract_decode_steps: 15, fidelity: exact, page_size: 6}"),
       worker("scheduler.prefill_decode_interval=17")});
  ASSERT_TRUE(rank && rank->sglang);
  EXPECT_EQ(rank->block_tokens, 6U);
  EXPECT_EQ(rank->sglang->policy, SglangPolicy::Lpm);
  EXPECT_EQ(rank->sglang->max_prefill_tokens, 11U);
  EXPECT_EQ(rank->sglang->chunked_prefill_size, 12U);
  EXPECT_EQ(rank->sglang->clip_max_new_tokens, 13U);
  EXPECT_EQ(rank->sglang->schedule_conservativeness, 0.25);
  EXPECT_TRUE(rank->sglang->mixed_chunk);
  EXPECT_EQ(rank->sglang->decode_log_interval, 14U);
  EXPECT_EQ(rank->sglang->retract_decode_steps, 15U);
  EXPECT_EQ(rank->sglang->prefill_decode_interval, 17U);
  EXPECT_EQ(rank->sglang->fidelity, Fidelity::Exact);
  EXPECT_TRUE(rank_of({worker("sglang={host_loop: true}")})->sglang->host_loop);
}

TEST(SglangConfig, KnowsThePoliciesByTheirWords) {  // decisions.md 30a
  const std::pair<const char*, SglangPolicy> words[] = {
      {"fcfs", SglangPolicy::Fcfs},        {"fifo", SglangPolicy::Fcfs},
      {"lpm", SglangPolicy::Lpm},          {"dfs_weight", SglangPolicy::DfsWeight},
      {"lof", SglangPolicy::Lof},          {"random", SglangPolicy::Random},
      {"priority", SglangPolicy::Priority}};
  for (const auto& [word, policy] : words) {
    const auto rank = rank_of({worker("sglang.schedule_policy=") + word});
    ASSERT_TRUE(rank) << word;
    EXPECT_EQ(rank->sglang->policy, policy) << word;
  }
  for (const std::string word : {"hrrn", "shortest_prefill_first"})
    EXPECT_THAT(refusals({worker("sglang.schedule_policy=") + word}),
                HasSubstr("sglang.schedule_policy: " + word + ": this policy is not supported"));
  EXPECT_THAT(refusals({worker("sglang.schedule_policy=sjf")}),
              HasSubstr("must be one of fcfs, fifo, lpm, dfs_weight, lof, random, priority"));
}

TEST(SglangConfig, TakesAPolicySeedWithTheRandomPolicyAlone) {
  const auto rank = rank_of({worker("sglang={schedule_policy: random, policy_seed: 7}")});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->sglang->policy_seed, 7U);
  Input seeded = document({worker("sglang={schedule_policy: random}")});
  seeded.seed = 9;
  EXPECT_EQ(read(seeded)->engine.rank.sglang->policy_seed, 9U);
  EXPECT_THAT(refusals({worker("sglang={schedule_policy: lpm, policy_seed: 7}")}),
              HasSubstr("sglang.policy_seed: the type lpm does not accept the field policy_seed"));
}

TEST(SglangConfig, TakesTheTokenBudgetForTheChunkSize) {  // engine-sglang.md S1.1
  const std::string budget = worker("scheduler.max_batched_tokens=");
  const std::string chunk = worker("sglang.chunked_prefill_size=");
  EXPECT_EQ(rank_of({budget + "512"})->sglang->chunked_prefill_size, 512U);
  EXPECT_EQ(rank_of({chunk + "256"})->sglang->chunked_prefill_size, 256U);
  EXPECT_EQ(rank_of({chunk + "256", budget + "256"})->sglang->chunked_prefill_size, 256U);
  EXPECT_THAT(refusals({chunk + "256", budget + "8192"}),
              HasSubstr("sglang.chunked_prefill_size: is 256, but scheduler.max_batched_tokens is "
                        "8192"));
}

TEST(SglangConfig, TakesPageSizeForBlockSize) {  // engine-sglang.md S0
  const std::string block = worker("kv_cache.block_size="), page = worker("sglang.page_size=");
  EXPECT_EQ(rank_of({block + "1"})->block_tokens, 1U);
  EXPECT_EQ(rank_of({page + "4"})->block_tokens, 4U);
  EXPECT_EQ(rank_of({page + "4", block + "4"})->block_tokens, 4U);
  EXPECT_THAT(refusals({page + "4", block + "8"}),
              HasSubstr("sglang.page_size: is 4, but kv_cache.block_size is 8"));
  for (const char* backend : {"vllm", "trtllm"})
    EXPECT_THAT(problems(document({block + "1"}, backend)),
                HasSubstr(std::string("kv_cache.block_size: must be from 2 to 65536 with "
                                      "engine.backend ") +
                          backend + ", not 1"));
}

TEST(SglangConfig, RefusesValuesOutOfRange) {
  const std::pair<const char*, const char*> cases[] = {
      {"sglang.max_prefill_tokens=0", "sglang.max_prefill_tokens must be at least 1, not 0"},
      {"sglang.chunked_prefill_size=0", "sglang.chunked_prefill_size must be at least 1, not 0"},
      {"sglang.decode_log_interval=0", "sglang.decode_log_interval must be at least 1, not 0"},
      {"sglang.page_size=0", "sglang.page_size must be from 1 to 65536, not 0"},
      {"kv_cache.block_size=0", "kv_cache.block_size must be from 1 to 65536, not 0"},
      {"sglang.schedule_conservativeness=-0.1", "must be at least 0, not -0.1"},
      {"sglang.schedule_conservativeness=.inf", "must be a finite number"},
      {"sglang.fidelity=real", "sglang.fidelity must be one of compat, exact"},
      {"sglang.chunk=1", "engine.workers.aggregated.sglang.chunk is not a field"},
  };
  for (const auto& [set, says] : cases)
    EXPECT_THAT(refusals({worker(set)}), HasSubstr(says)) << set;
}

TEST(SglangConfig, RefusesWhatDoesNotGoTogetherByBothNames) {
  const std::string host_loop = worker("sglang.host_loop=true");
  const std::string mixed = worker("sglang.enable_mixed_chunk=true");
  const std::string ranks = worker("parallelism.attention_data=");
  struct Refused {
    Sets sets;
    const char* says;
  };
  const Refused cases[] = {
      {{host_loop, ranks + "2"},
       "sglang.host_loop: goes not together with parallelism.attention_data 2"},
      {{host_loop, worker("parallelism.pipeline=2")},
       "sglang.host_loop: goes not together with parallelism.pipeline 2"},
      {{host_loop, "engine.nextn=1", "engine.nextn_accepted=0.5"},
       "sglang.host_loop: goes not together with engine.nextn"},
      {{host_loop, worker("scheduler.prefill_decode_interval=3")},
       "sglang.host_loop: goes not together with scheduler.prefill_decode_interval"},
      {{mixed, "engine.nextn=1", "engine.nextn_accepted=0.5"},
       "sglang.enable_mixed_chunk: goes not together with engine.nextn"},
      {{mixed, host_loop}, "sglang.enable_mixed_chunk: goes not together with sglang.host_loop"},
      {{ranks + "8", worker("sglang.chunked_prefill_size=7")},
       "sglang.chunked_prefill_size: 7 tokens of prefill, shared by the 8 ranks of "
       "parallelism.attention_data, leave each 0"},
      {{ranks + "8", worker("sglang.chunked_prefill_size=16"), worker("kv_cache.block_size=4")},
       "leave each 2, less than the 4 of a page (kv_cache.block_size)"},
      {{worker("kv_cache.block_size=16384")}, "leave each 8192, less than the 16384 of a page"},
      {{ranks + "8", worker("scheduler.max_batched_tokens=7")},
       "scheduler.max_batched_tokens: 7 tokens of prefill, shared by the 8 ranks"},
      {{"engine.enable_chunked_prefill=false"},
       "engine.enable_chunked_prefill: false goes not together with backend: sglang"},
      {{"engine.speculation={kind: ngram, num_speculative_tokens: 1, acceptance_rates: [0.5]}"},
       "engine.speculation: goes only with backend: vllm, not sglang"},
      {{worker("scheduler.prefill_schedule_interval=2"), ranks + "2"},
       "scheduler.prefill_schedule_interval: 2 goes only with engine.backend: vllm, not sglang"},
      {{"kv_eviction_policy=belady"},
       "kv_eviction_policy: belady goes not together with engine.backend: sglang"},
      {{worker("kv_cache.state_cache={bytes_per_request: 9}")},
       "kv_cache.state_cache: goes only with engine.backend vllm, not sglang"},
      {{worker("kv_cache.groups=[{name: a, kind: attention, num_layers: 1, block_size_tokens: 1, "
               "page_size_bytes: 1}]")},
       "kv_cache.groups: goes only with engine.backend vllm, not sglang"},
      {{worker("vllm.preemption_mode=fifo")},
       "vllm: holds settings of another backend than engine.backend (sglang)"},
      {{worker("trtllm={}")},
       "trtllm: holds settings of another backend than engine.backend (sglang)"},
      {{worker("sglang.frontend={}")}, "sglang.frontend.stages: a frontend has at least one stage"},
      {{worker("sglang.vlm_cache_bytes=1")},
       "sglang.vlm_cache_bytes: goes only with sglang.vision: true"},
      {{worker("sglang.vision=true"), worker("sglang.enable_mixed_chunk=true")},
       "sglang.vision: goes not together with sglang.enable_mixed_chunk"},
  };
  for (const Refused& refused : cases)
    EXPECT_THAT(refusals(refused.sets), HasSubstr(refused.says)) << refused.says;
  EXPECT_EQ(refusals({ranks + "8", worker("sglang.chunked_prefill_size=8")}), "");
  EXPECT_EQ(refusals({"engine.nextn=1", "engine.nextn_accepted=0.5"}), "");
}

TEST(SglangConfig, TakesTheStagesOfAFrontend) {  // engine-sglang.md S9
  const std::string loop = worker("sglang.host_loop=true");
  const auto rank = rank_of(
      {loop,
       worker("sglang.frontend={stages: [{service_ms: 2.5}, {workers: 3, service_ms: 0, "
              "concurrency_scale: [1, 1.5, 2]}, {service_ms: 1, concurrency_scale: null}]}")});
  ASSERT_TRUE(rank);
  ASSERT_EQ(rank->sglang->frontend.size(), 3U);
  EXPECT_EQ(rank->sglang->frontend[0].workers, 1U);
  EXPECT_EQ(rank->sglang->frontend[0].service_ms, 2.5);
  EXPECT_THAT(rank->sglang->frontend[0].concurrency_scale, IsEmpty());
  EXPECT_EQ(rank->sglang->frontend[1].workers, 3U);
  EXPECT_THAT(rank->sglang->frontend[1].concurrency_scale, ElementsAre(1, 1.5, 2));
  EXPECT_THAT(rank->sglang->frontend[2].concurrency_scale, IsEmpty());
}

TEST(SglangConfig, NamesTheStageOfAFrontendThatIsWrong) {
  const auto with = [](const std::string& stages) {
    return refusals({worker("sglang={host_loop: true, frontend: {stages: " + stages + "}}")});
  };
  const std::pair<const char*, const char*> cases[] = {
      {"[{service_ms: 1}, {workers: 0, service_ms: 1}]",
       "sglang.frontend.stages[1].workers must be at least 1, not 0"},
      {"[{service_ms: 1}, {workers: 2}]", "sglang.frontend.stages[1].service_ms is required"},
      {"[{service_ms: -1}]", "sglang.frontend.stages[0].service_ms must be at least 0"},
      {"[{service_ms: .inf}]", "sglang.frontend.stages[0].service_ms must be a finite number"},
      {"[{service_ms: 1}, {workers: 2, service_ms: 1, concurrency_scale: [1]}]",
       "sglang.frontend.stages[1].concurrency_scale: has 1 numbers; workers is 2"},
      {"[{service_ms: 1, concurrency_scale: [0]}]",
       "sglang.frontend.stages[0].concurrency_scale[0] must be greater than zero"},
      {"[{service_ms: 1, speed: 2}]", "sglang.frontend.stages[0].speed is not a field"},
      {"[]", "sglang.frontend.stages: a frontend has at least one stage"},
      {"null", "sglang.frontend.stages: a frontend has at least one stage"},
  };
  for (const auto& [stages, says] : cases) EXPECT_THAT(with(stages), HasSubstr(says)) << stages;
  EXPECT_EQ(with("[{service_ms: 1}]"), "");
  EXPECT_THAT(refusals({worker("sglang.frontend={}")}),
              HasSubstr("sglang.frontend.stages: a frontend has at least one stage"));
  EXPECT_THAT(refusals({worker("sglang.frontend={stages: [{service_ms: 1}]}")}),
              HasSubstr("sglang.frontend: goes only with sglang.host_loop: true"));
}

TEST(SglangConfig, TakesTheSettingsOfAVisionTower) {  // engine-sglang.md S10, S17
  const std::string vision = worker("sglang.vision=true");
  const std::string fixed =
      worker("timing={type: fixed, prefill_ms: 1, decode_ms: 1, vision_ms: 5}");
  EXPECT_FALSE(rank_of({})->sglang->vision);
  EXPECT_EQ(rank_of({vision})->sglang->vision->cache_bytes, 104857600U);
  EXPECT_EQ(rank_of({vision, worker("sglang.vlm_cache_bytes=0")})->sglang->vision->cache_bytes, 0U);
  const auto config = read(document({vision, fixed}));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.timing.fixed.vision_ms, 5.0);
  struct Refused {
    Sets sets;
    const char* says;
  };
  const Refused cases[] = {
      {{worker("sglang.vlm_cache_bytes=104857600")},
       "sglang.vlm_cache_bytes: goes only with sglang.vision: true"},
      {{fixed}, "timing.vision_ms: goes only with sglang.vision: true"},
      {{vision, worker("parallelism.attention_data=2")},
       "sglang.vision: goes not together with parallelism.attention_data 2"},
      {{vision, worker("parallelism.pipeline=2")},
       "sglang.vision: goes not together with parallelism.pipeline 2"},
      {{vision, "engine.nextn=1", "engine.nextn_accepted=0.5"},
       "sglang.vision: goes not together with engine.nextn"},
      {{worker("timing={type: polynomial, vision_ms: 5}")},
       "the type polynomial does not accept the field vision_ms"},
  };
  for (const Refused& refused : cases)
    EXPECT_THAT(refusals(refused.sets), HasSubstr(refused.says)) << refused.says;
  EXPECT_THAT(problems(document({fixed}, "vllm")),
              HasSubstr("timing.vision_ms: goes only with sglang.vision: true"));
}

TEST(SglangConfig, KeepsItsSettingsFromOtherBackends) {
  for (const std::string backend : {"vllm", "trtllm"}) {
    EXPECT_THAT(problems(document({worker("sglang={schedule_policy: lpm}")}, backend)),
                HasSubstr("sglang: holds settings of another backend than engine.backend (" +
                          backend + ")"));
    EXPECT_THAT(
        problems(document({worker("scheduler.prefill_decode_interval=2")}, backend)),
        HasSubstr("scheduler.prefill_decode_interval: 2 goes only with engine.backend: sglang, "
                  "not " +
                  backend));
    EXPECT_EQ(problems(document({worker("scheduler.prefill_decode_interval=0")}, backend)), "");
  }
}

TEST(SglangConfig, ReadsItsOwnResolvedFormToTheSameSettings) {
  const Sets variants[] = {
      {},
      {worker("sglang={chunked_prefill_size: 100, page_size: 4}")},
      {worker("scheduler.max_batched_tokens=100"), worker("kv_cache.block_size=4")},
      {worker("sglang={schedule_policy: random, policy_seed: 7, fidelity: exact}")},
      {worker("sglang={schedule_policy: fifo}"), worker("scheduler.prefill_decode_interval=2")},
      {worker("sglang={host_loop: true, vision: true, vlm_cache_bytes: 5, frontend: {stages: "
              "[{service_ms: 1}, {workers: 2, service_ms: 1, concurrency_scale: [1, 2]}]}}")},
  };
  for (const Sets& sets : variants) {
    const auto first = read(document(sets));
    ASSERT_TRUE(first) << refusals(sets);
    const std::string yaml = to_yaml(first->settings);
    const Input resolved{.path = "resolved.yaml", .text = yaml, .sets = {}, .seed = {}};
    const auto second = read(resolved);
    ASSERT_TRUE(second) << yaml << problems(resolved);
    EXPECT_EQ(to_yaml(second->settings), yaml);
    EXPECT_EQ(second->engine.rank.sglang->chunked_prefill_size,
              first->engine.rank.sglang->chunked_prefill_size);
    EXPECT_EQ(second->engine.rank.block_tokens, first->engine.rank.block_tokens);
  }
}

// Activations stand outside of SGLang's fraction (decisions.md 30a), so a larger chunk takes
// nothing from the KV cache; and a rank computes its share of the chunk.
TEST(SglangConfig, SizesTheCacheBySglangsFormula) {
  const auto deployed = [](Sets sets, const std::string& backend) {
    const auto config = read(document(std::move(sets), backend));
    return deploy(*config)->memory.value();
  };
  const perf::KvCapacity sglang = deployed({}, "sglang");
  EXPECT_EQ(sglang.memory_fraction, 0.88);
  EXPECT_EQ(sglang.blocks, sglang.tokens);
  const perf::MemoryParts& parts = sglang.parts;
  const double expected = static_cast<double>(sglang.gpu_bytes) * 0.88 -
                          static_cast<double>(parts.sum() - parts.activations);
  EXPECT_NEAR(static_cast<double>(sglang.kv_bytes), expected, 1.0);
  const Sets large = {worker("scheduler.max_batched_tokens=65536")};
  EXPECT_EQ(deployed(large, "sglang").kv_bytes, sglang.kv_bytes);
  EXPECT_GT(deployed(large, "sglang").parts.activations, parts.activations);
  EXPECT_LT(deployed(large, "vllm").kv_bytes, deployed({}, "vllm").kv_bytes);
}

}  // namespace
}  // namespace servecast::config
