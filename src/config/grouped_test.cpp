// SPDX-License-Identifier: Apache-2.0
// Grouped caches of a configuration: what the gate lets run, cold or not, and what each refusal
// names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/deployment.hpp"

namespace servecast::config {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kWorker = "engine.workers.aggregated.";
const std::string kCache = kWorker + "kv_cache.";

// GLM-5.3-Flash: full attention, four recurrent states and a ring (engine-vllm.md 19.5), probed
// with prefix caching, in a pool of 13,815 blocks.
const std::string kGroup =
    ", num_layers: 9, block_size_tokens: 2176, page_size_bytes: 13045120, prefix_cacheable: ";
const std::string kState =
    "kind: state" + kGroup + "true, mamba_cache_mode: align, prefill_checkpoint_blocks: 0}";
const std::string kGroups = "[{name: full, kind: attention" + kGroup + "true}, {name: kda0, " +
                            kState + ", {name: kda1, " + kState + ", {name: kda2, " + kState +
                            ", {name: kda3, " + kState + ", {name: ring, kind: ring" + kGroup +
                            "false}]";
const std::string kGlm =
    "engine:\n  model: openai/gpt-oss-120b\n  hardware: h200_sxm\n  context_length: 131072\n"
    "  workers:\n    aggregated:\n      timing: {type: polynomial}\n      kv_cache:\n"
    "        capacity: {type: fixed, bytes: 180218332800}\n"
    "        prefix_match_unit: 2176\n"
    "        probe: {ran_with_prefix_caching: true, hash_block_tokens: 2176}\n"
    "        groups: " +
    kGroups + "\n      vllm: {version: 0.32.0}\n";

Result<Deployed> deployed_with(const std::vector<std::string>& sets,
                               const std::string& text = kGlm) {
  const Result<Config> config = read({.path = "run.yaml", .text = text, .sets = sets});
  if (!config) return tl::unexpected(config.error());
  return deploy(*config);
}

std::string problems(const std::vector<std::string>& sets, const std::string& text = kGlm) {
  const Result<Deployed> deployed = deployed_with(sets, text);
  std::string all;
  if (deployed) return all;
  for (const Problem& problem : deployed.error()) all += to_text(problem) + "\n";
  return all;
}

TEST(GroupedConfig, RunsWithPrefixCachingOnEvidence) {  // C37
  const auto deployed = deployed_with({});
  ASSERT_TRUE(deployed) << problems({});
  const scheduler::RankConfig& rank = deployed->deployment.rank;
  ASSERT_TRUE(rank.grouped);
  EXPECT_TRUE(rank.prefix_caching);
  EXPECT_EQ(rank.blocks, 0U);
  ASSERT_TRUE(rank.grouped->rules);
  EXPECT_EQ(rank.grouped->rules->blocks, 13815U);
  EXPECT_EQ(rank.grouped->rules->unit, 2176U);
  EXPECT_TRUE(rank.grouped->rules->key_output_blocks);
  EXPECT_FALSE(deployed->cold_reason);
  EXPECT_THAT(deployed->warnings, IsEmpty());
}

TEST(GroupedConfig, IsWrittenAndReadAgain) {
  const Result<Config> config = read({.path = "run.yaml", .text = kGlm});
  ASSERT_TRUE(config);
  const std::string yaml = to_yaml(config->settings);
  const Result<Config> again = read({.path = "again.yaml", .text = yaml});
  ASSERT_TRUE(again) << to_text(again.error().front()) << "\n" << yaml;
  EXPECT_EQ(to_yaml(again->settings), yaml);
  ASSERT_EQ(again->engine.grouped.groups.size(), 6U);
  EXPECT_EQ(again->engine.grouped.groups[1].name, "kda0");
  EXPECT_EQ(again->engine.grouped.groups[1].mamba_cache_mode, cache::MambaCacheMode::Align);
  EXPECT_EQ(again->engine.grouped.groups[5].prefix_cacheable, false);
  const std::string none = to_yaml(
      read({.path = "x",
            .text = kGlm,
            .sets = {kCache + "groups=[]", kCache + "probe=null", kCache + "prefix_match_unit=null",
                     kWorker + "vllm={}", kCache + "capacity={type: fixed, blocks: 9}"}})
          ->settings);
  EXPECT_TRUE(read({.path = "none.yaml", .text = none})) << none;
}

TEST(GroupedConfig, RunsColdWithoutEvidenceAndSaysWhy) {
  const struct {
    std::string set, why;
  } cases[] = {
      {"probe=null", "no runtime probe shows that the deployment reuses prefixes"},
      {"probe={}", "the runtime probe ran without prefix caching"},
      {"probe={ran_with_prefix_caching: true}", "the runtime probe recorded no hash block"},
  };
  for (const auto& c : cases) {
    const auto deployed = deployed_with({kCache + c.set});
    ASSERT_TRUE(deployed) << problems({kCache + c.set});
    EXPECT_FALSE(deployed->deployment.rank.prefix_caching);
    EXPECT_FALSE(deployed->deployment.rank.grouped->rules);
    EXPECT_EQ(deployed->deployment.rank.grouped->capacity_bytes, 180218332800U);
    EXPECT_THAT(deployed->cold_reason.value_or(""), HasSubstr(c.why));
    ASSERT_EQ(deployed->warnings.size(), 1U);
    EXPECT_THAT(deployed->warnings[0],
                HasSubstr(kCache + "groups: runs without prefix caching: " + c.why));
  }
  // Asked for, cold is no news.
  const auto off =
      deployed_with({kCache + "prefix_caching=false", kCache + "prefix_match_unit=null"});
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->cold_reason);
  EXPECT_THAT(off->warnings, IsEmpty());
}

TEST(GroupedConfig, TakesTheBytesOfTheMemoryModel) {
  const auto deployed = deployed_with({kCache + "capacity={type: default}"});
  ASSERT_TRUE(deployed) << problems({kCache + "capacity={type: default}"});
  ASSERT_TRUE(deployed->memory);
  EXPECT_EQ(deployed->deployment.rank.grouped->capacity_bytes, deployed->memory->kv_bytes);
}

TEST(GroupedConfig, WantsRoomForOneRequestOfTheLongestLength) {  // C37: 70, 74 and 491 blocks
  const auto pool = [](std::uint64_t blocks) {
    return kCache + "capacity={type: fixed, bytes: " + std::to_string(blocks * 13045120) + "}";
  };
  const auto groups = [](int checkpoints) {
    std::string text = kGroups;
    for (std::size_t at = 0; (at = text.find("blocks: 0", at)) != std::string::npos; ++at)
      text.replace(at, 9, "blocks: " + std::to_string(checkpoints));
    return kCache + "groups=" + text;
  };
  EXPECT_EQ(problems({pool(70)}), "");
  EXPECT_THAT(problems({pool(69)}),
              HasSubstr(kCache + "capacity.bytes is 900113280, which gives 69 blocks of 13045120 "
                                 "bytes; grouped caches with prefix caching need 70 blocks for one "
                                 "request of max_model_len 131072"));
  EXPECT_EQ(problems({pool(74), groups(1)}), "");
  EXPECT_THAT(problems({pool(73), groups(1)}), HasSubstr("need 74 blocks"));
  const std::string long_text = "engine.context_length=1048576";
  EXPECT_THAT(problems({long_text}), HasSubstr("engine.context_length")) << "the model's own limit";
}

TEST(GroupedConfig, TellsEveryRuleOfTheGateAtItsPlace) {
  const struct {
    std::vector<std::string> sets;
    std::string text;
  } cases[] = {
      {{kCache + "prefix_match_unit=null"}, kCache + "prefix_match_unit is missing"},
      {{kCache + "prefix_match_unit=1088"},
       kCache + "prefix_match_unit is 1088; grouped caches with prefix caching need the hash block "
                "of the probe, 2176 tokens"},
      {{kWorker + "vllm={}"}, kWorker + "vllm.version is missing"},
      {{kWorker + "vllm={version: 0.33.0}"},
       kWorker + "vllm.version is 0.33.0, whose rules for grouped caches are not known"},
      // Cold too, which upstream does not check (engine-vllm.md 2.3 item 13).
      {{kCache + "probe=null", kWorker + "vllm={version: 0.10.2}"},
       kWorker + "vllm.version is 0.10.2, whose rules"},
      {{kCache + "prefix_caching=false"},
       kCache + "prefix_match_unit is 2176, but prefixes of grouped caches are matched with prefix "
                "caching only"},
      {{kWorker + "scheduler.max_batched_tokens=8190"},
       kWorker + "scheduler.max_batched_tokens is 8190; grouped caches with prefix caching with a "
                 "ring buffer need a multiple of 4"},
  };
  for (const auto& c : cases) EXPECT_THAT(problems(c.sets), HasSubstr(c.text));
  EXPECT_EQ(problems({kWorker + "scheduler.max_batched_tokens=8192"}), "");

  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kGlm;
    const std::size_t at = text.find(from);
    return text.replace(at, from.size(), to);
  };
  EXPECT_THAT(problems({}, with("page_size_bytes: 13045120, prefix_cacheable: true, mamba",
                                "page_size_bytes: 13045121, prefix_cacheable: true, mamba")),
              HasSubstr(kCache + "groups[1].page_size_bytes is 13045121, that of groups[0]"));
  EXPECT_THAT(problems({}, with("mamba_cache_mode: align", "mamba_cache_mode: all")),
              HasSubstr(kCache + "groups[1].mamba_cache_mode must be align"));
  EXPECT_THAT(problems({}, with(", prefix_cacheable: true}", "}")), HasSubstr("run.yaml:12:"))
      << "a field that is missing is told where its group begins";
  EXPECT_THAT(
      problems({}, with("kind: ring", "kind: convolution, sliding_window: 4")),
      HasSubstr(kCache + "groups[5].kind is convolution; grouped caches with prefix caching "
                         "cannot resume one"));
}

TEST(GroupedConfig, RefusesWhatItGoesNotWithByBothNames) {
  const struct {
    std::string set, text;
  } cases[] = {
      {kCache + "block_size=32", "kv_cache.block_size: goes not together with kv_cache.groups"},
      {kCache + "bytes_per_token=64",
       "kv_cache.bytes_per_token: goes not together with kv_cache.groups"},
      {kCache + "capacity={type: fixed, blocks: 9}",
       "kv_cache.capacity.blocks: goes not together with kv_cache.groups"},
      {kCache + "state_cache={bytes_per_request: 9}",
       "kv_cache.state_cache: goes not together with kv_cache.groups"},
      {"engine.workers.aggregated.kv_cache={prefix_caching: false, key_output_blocks: false, "
       "capacity: {type: fixed, bytes: "
       "1000}, groups: [{name: a, num_layers: 1, block_size_tokens: 4, page_size_bytes: "
       "9}]}",
       "kv_cache.key_output_blocks: goes not together with kv_cache.prefix_caching false"},
      {kWorker + "parallelism.pipeline=2",
       "kv_cache.groups: goes not together with parallelism.pipeline 2"},
      {kWorker + "vllm={version: 0.32.0, speculation: {kind: ngram, num_speculative_tokens: 1, "
                 "acceptance_rates: [0.5]}}",
       "kv_cache.groups: goes not together with speculation"},
      {kWorker + "vllm={version: 0.32.0, align_boundary: known_floor}",
       "vllm.align_boundary: known_floor goes only with kv_cache.state_cache"},
  };
  for (const auto& c : cases) EXPECT_THAT(problems({c.set}), HasSubstr(c.text));
  const std::string other = problems({"engine.backend=trtllm", kWorker + "vllm=null"});
  EXPECT_THAT(other, HasSubstr("kv_cache.groups: goes only with engine.backend vllm, not trtllm"));
  EXPECT_THAT(other, Not(HasSubstr("block_size"))) << "that engine's default";

  const std::vector<std::string> no_groups = {kCache + "groups=null",
                                              kCache + "capacity={type: fixed, blocks: 9}"};
  const auto without = [&](const std::string& set) {
    std::vector<std::string> sets = no_groups;
    sets.push_back(set);
    return problems(sets);
  };
  EXPECT_THAT(problems(no_groups), HasSubstr("kv_cache.probe: goes only with kv_cache.groups"));
  EXPECT_THAT(problems(no_groups), HasSubstr("kv_cache.prefix_match_unit: goes only with "
                                             "kv_cache.state_cache or kv_cache.groups"));
  EXPECT_THAT(without(kCache + "key_output_blocks=false"),
              HasSubstr("kv_cache.key_output_blocks: goes only with kv_cache.groups"));
  const std::vector<std::string> version_alone = {
      kCache + "groups=null", kCache + "capacity={type: fixed, blocks: 9}", kCache + "probe=null",
      kCache + "prefix_match_unit=null"};
  EXPECT_THAT(problems(version_alone),
              HasSubstr(kWorker + "vllm.version is 0.32.0, but only grouped caches differ by "
                                  "version"));
}

TEST(GroupedConfig, ReadsItsListStrictly) {
  EXPECT_THAT(problems({kCache + "groups={name: x}"}),
              HasSubstr("groups must be a list of mappings"));
  EXPECT_THAT(problems({kCache + "groups=[5]"}), HasSubstr("groups[0] must be a mapping"));
  EXPECT_THAT(problems({kCache + "groups=[{name: a}]"}),
              HasSubstr(kCache + "groups[0].page_size_bytes is required"));
  EXPECT_THAT(problems({kCache + "groups=[{kinds: a}]"}), HasSubstr("did you mean \"kind\"?"));
  EXPECT_THAT(problems({kCache + "groups=[{name: a, kind: mamba}]"}),
              HasSubstr("groups[0].kind must be one of attention, convolution, state, ring"));
}

}  // namespace
}  // namespace servecast::config
