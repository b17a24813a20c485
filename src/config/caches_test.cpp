// SPDX-License-Identifier: Apache-2.0
// Caches beside the linear pool: what is accepted and what each refusal names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/deployment.hpp"

namespace servecast::config {
namespace {

using ::testing::HasSubstr;

// A document with these fields of the worker's kv_cache and these of the engine.
std::string document(const std::string& kv_cache, const std::string& engine = "") {
  return "engine:\n  model: Qwen/Qwen3-8B\n  hardware: h200_sxm\n" + engine +
         "  workers:\n    aggregated:\n      timing: {type: polynomial}\n      kv_cache:\n" +
         kv_cache;
}

Result<Config> config_of(const std::string& text, std::vector<std::string> sets = {}) {
  return read({.path = "run.yaml", .text = text, .sets = std::move(sets)});
}

std::string problems(const std::string& text, std::vector<std::string> sets = {}) {
  const Result<Config> config = config_of(text, std::move(sets));
  std::string all;
  if (config) return all;
  for (const Problem& problem : config.error()) all += to_text(problem) + "\n";
  return all;
}

const std::string kState =
    "        block_size: 64\n"
    "        bytes_per_token: 16\n"
    "        capacity: {type: fixed, blocks: 8}\n"
    "        state_cache: {bytes_per_request: 1500}\n";

std::string in_cache(const std::string& field) {
  return "engine.workers.aggregated.kv_cache." + field;
}

TEST(StateCacheConfig, CountsTheBlocksOfAState) {  // C27, product.md C4
  const auto config = config_of(document(kState));
  ASSERT_TRUE(config) << problems(document(kState));
  ASSERT_TRUE(config->engine.rank.state);
  EXPECT_EQ(config->engine.rank.state->blocks, 2U);
  EXPECT_EQ(config->engine.rank.state->match_unit, 0U);
  EXPECT_EQ(config->engine.rank.state->boundary, cache::AlignBoundary::PromptMinusOne);
  const auto deployed = deploy(*config);
  ASSERT_TRUE(deployed);
  EXPECT_EQ(deployed->deployment.rank.blocks, 8U);
  EXPECT_TRUE(deployed->deployment.rank.state);

  const auto bytes = config_of(document(kState), {in_cache("capacity={type: fixed, bytes: 8192}")});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->engine.rank.state->blocks, 2U);
  const auto off = config_of(document(kState), {in_cache("state_cache=null")});
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->engine.rank.state);
}

TEST(StateCacheConfig, TakesAMatchUnitAndAnOlderBoundary) {
  const auto config = config_of(document(kState + "        prefix_match_unit: 16\n"),
                                {"engine.workers.aggregated.vllm.align_boundary=known_floor"});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.rank.state->match_unit, 16U);
  EXPECT_EQ(config->engine.rank.state->boundary, cache::AlignBoundary::KnownFloor);
  const auto again = config_of(to_yaml(config->settings));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_yaml(again->settings), to_yaml(config->settings));
  EXPECT_EQ(again->engine.rank.state->match_unit, 16U);
}

TEST(StateCacheConfig, WantsAnExplicitPool) {  // engine-vllm.md 2.3 item 11
  const std::string text = problems(document("        state_cache: {bytes_per_request: 1500}\n"));
  EXPECT_THAT(text, HasSubstr("run.yaml:8:22: engine.workers.aggregated.kv_cache.state_cache: "
                              "needs a fixed capacity, block_size and bytes_per_token; missing: "
                              "kv_cache.capacity {type: fixed}, kv_cache.block_size, "
                              "kv_cache.bytes_per_token"));
  EXPECT_THAT(problems(document(kState), {in_cache("bytes_per_token=auto")}),
              HasSubstr("missing: kv_cache.bytes_per_token"));
  EXPECT_THAT(problems(document(kState), {in_cache("state_cache={}")}),
              HasSubstr("kv_cache.state_cache.bytes_per_request is required"));
  EXPECT_THAT(problems(document(kState), {in_cache("state_cache.bytes_per_request=0")}),
              HasSubstr("bytes_per_request must be from 1 to"));
}

TEST(StateCacheConfig, WantsRoomForAStateAndOneBlock) {  // C27
  EXPECT_EQ(problems(document(kState), {in_cache("capacity={type: fixed, blocks: 3}")}), "");
  EXPECT_THAT(problems(document(kState), {in_cache("capacity={type: fixed, blocks: 2}")}),
              HasSubstr("kv_cache.capacity: gives 2 blocks; with kv_cache.state_cache a state "
                        "takes 2 and tokens need one more"));
  EXPECT_THAT(
      problems(document(kState), {in_cache("state_cache.bytes_per_request=9007199254740992")}),
      HasSubstr("a state takes 8796093022208 and tokens need one more"));
}

TEST(StateCacheConfig, RefusesWhatItGoesNotWithByBothNames) {
  EXPECT_THAT(problems(document(kState, "  backend: trtllm\n")),
              HasSubstr("kv_cache.state_cache: goes only with engine.backend vllm, not trtllm"));
  EXPECT_THAT(problems(document(kState, "  nextn: 1\n  nextn_accepted: 0.5\n")),
              HasSubstr("kv_cache.state_cache: goes not together with engine.nextn"));
  EXPECT_THAT(
      problems(document(kState),
               {"engine.workers.aggregated.vllm.speculation={kind: ngram, num_speculative_tokens: "
                "1, acceptance_rates: [0.5]}"}),
      HasSubstr("kv_cache.state_cache: goes not together with speculation"));
  EXPECT_THAT(problems(document(kState), {in_cache("host_offload={num_host_blocks: 8}")}),
              HasSubstr("kv_cache.host_offload"));
}

TEST(StateCacheConfig, RefusesAMatchUnitThatFitsNothing) {  // engine-vllm.md 2.3 item 12
  EXPECT_THAT(problems(document(kState),
                       {in_cache("prefix_match_unit=16"), in_cache("prefix_caching=false")}),
              HasSubstr("kv_cache.prefix_match_unit: goes not together with "
                        "kv_cache.prefix_caching false"));
  EXPECT_THAT(
      problems(document(kState), {in_cache("prefix_match_unit=48")}),
      HasSubstr("kv_cache.prefix_match_unit: must divide kv_cache.block_size (64), not 48"));
  EXPECT_THAT(problems(document(kState), {in_cache("prefix_match_unit=128")}),
              HasSubstr("must divide kv_cache.block_size (64), not 128"));
  EXPECT_THAT(problems(document("        prefix_match_unit: 16\n")),
              HasSubstr("run.yaml:8:28: engine.workers.aggregated.kv_cache.prefix_match_unit: goes "
                        "only with kv_cache.state_cache"));
  EXPECT_THAT(
      problems(document(kState), {"engine.workers.aggregated.vllm.align_boundary=known_floor"}),
      HasSubstr("vllm.align_boundary: known_floor goes only with kv_cache.state_cache and "
                "kv_cache.prefix_match_unit"));
}

TEST(KvEvictionConfig, IsLruUnlessTheDocumentSaysOtherwise) {
  const auto lru = config_of(document("        block_size: 64\n"));
  ASSERT_TRUE(lru);
  EXPECT_EQ(deploy(*lru)->deployment.kv_eviction_policy, replay::EvictionPolicy::Lru);
  const auto belady =
      config_of("kv_eviction_policy: belady\n" + document("        block_size: 64\n"));
  ASSERT_TRUE(belady);
  EXPECT_EQ(deploy(*belady)->deployment.kv_eviction_policy, replay::EvictionPolicy::Belady);
  EXPECT_THAT(problems(document("        block_size: 64\n"), {"kv_eviction_policy=belay"}),
              HasSubstr("kv_eviction_policy must be one of lru, belady, not \"belay\""));
}

TEST(KvEvictionConfig, RefusesWhatTheOracleDoesNotKnowByBothNames) {  // engine-vllm.md 15
  const std::string caching_off =
      "kv_eviction_policy: belady\n" + document("        prefix_caching: false\n");
  EXPECT_THAT(problems(caching_off),
              HasSubstr("run.yaml:1:21: kv_eviction_policy: belady goes not together with "
                        "engine.workers.aggregated.kv_cache.prefix_caching false"));
  EXPECT_THAT(problems(document(kState), {"kv_eviction_policy=belady"}),
              HasSubstr("kv_eviction_policy: belady goes not together with "
                        "engine.workers.aggregated.kv_cache.state_cache"));
  EXPECT_EQ(problems(document(kState), {"kv_eviction_policy=lru"}), "");
}

}  // namespace
}  // namespace servecast::config
