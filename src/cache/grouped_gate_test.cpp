// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A rank that passes until it is spoiled in one point.
struct Spoiled {
  std::vector<KvGroup> groups = {full(16), state(16), ring(16)};
  GroupedSettings settings = a_setting(groups, 4, 100);

  GroupedGate gate() {
    settings.groups = groups;
    return grouped_gate(settings);
  }
};

// The only refusal: where, and parts of its message and hint.
void expect_refusal(Spoiled& rank, const std::string& field,
                    const std::vector<std::string>& parts) {
  const GroupedGate gate = rank.gate();
  ASSERT_EQ(gate.refusals.size(), 1U);
  EXPECT_FALSE(gate.prefix_caching);
  EXPECT_EQ(gate.refusals[0].field, field);
  for (const std::string& part : parts) {
    EXPECT_THAT(gate.refusals[0].message + " (" + gate.refusals[0].hint + ")", HasSubstr(part));
  }
}

const std::string kCaching = "grouped caches with prefix caching";

TEST(GroupedGate, LetsAProvenRankRun) {
  Spoiled rank;
  const GroupedGate gate = rank.gate();
  EXPECT_THAT(gate.refusals, IsEmpty());
  EXPECT_TRUE(gate.prefix_caching);
  EXPECT_EQ(gate.cold_reason, std::nullopt);
}

TEST(GroupedGate, RunsColdWithoutEvidenceAndSaysWhy) {
  Spoiled rank;
  rank.settings.evidence.reset();
  GroupedGate gate = rank.gate();
  EXPECT_THAT(gate.refusals, IsEmpty());
  EXPECT_FALSE(gate.prefix_caching);
  EXPECT_THAT(*gate.cold_reason, HasSubstr("no runtime probe"));

  rank.settings.evidence = ProbeEvidence{.hash_block_tokens = 4};
  EXPECT_THAT(*rank.gate().cold_reason, HasSubstr("ran without prefix caching"));
  rank.settings.evidence = ProbeEvidence{.ran_with_prefix_caching = true};
  EXPECT_THAT(*rank.gate().cold_reason, HasSubstr("recorded no hash block"));
}

// What prefix caching alone asks for does not stop a rank that runs cold.
TEST(GroupedGate, AsksNothingOfPrefixCachingFromAColdRank) {
  Spoiled rank;
  rank.groups[0].prefix_cacheable.reset();
  rank.groups[0].page_size_bytes = 1;
  rank.groups[1].mamba_cache_mode.reset();
  KvGroup convolution = window(2, 2);
  convolution.kind = GroupKind::Convolution;
  convolution.name = "convolution";
  rank.groups.push_back(convolution);
  rank.settings.max_model_len.reset();
  rank.settings.vllm_version.reset();
  rank.settings.capacity_bytes = 1;
  rank.settings.evidence.reset();
  EXPECT_THAT(rank.gate().refusals, IsEmpty());
  rank.settings.prefix_caching = false;
  rank.settings.prefix_match_unit.reset();
  const GroupedGate gate = rank.gate();
  EXPECT_THAT(gate.refusals, IsEmpty());
  EXPECT_EQ(gate.cold_reason, std::nullopt);
}

TEST(GroupedGate, ReportsEveryRefusal) {
  Spoiled rank;
  rank.groups[0].num_layers = 0;
  rank.groups[2].page_size_bytes = 0;
  EXPECT_THAT(rank.gate().refusals,
              ElementsAre(testing::Field(&GroupedRefusal::field, "groups[0].num_layers"),
                          testing::Field(&GroupedRefusal::field, "groups[2].page_size_bytes")));
}

TEST(GroupedGate, RefusesABlankName) {
  Spoiled rank;
  rank.groups[1].name = " \t";
  expect_refusal(rank, "groups[1].name", {"blank"});
}

TEST(GroupedGate, RefusesANameGivenTwice) {
  Spoiled rank;
  rank.groups[2].name = "full";
  expect_refusal(rank, "groups[2].name", {"'full'", "groups[0]"});
}

TEST(GroupedGate, RefusesZeroLayersOrTokens) {
  Spoiled layers;
  layers.groups[0].num_layers = 0;
  expect_refusal(layers, "groups[0].num_layers", {"is 0; it must be at least 1"});
  Spoiled tokens;
  tokens.groups[0].block_size_tokens = 0;
  expect_refusal(tokens, "groups[0].block_size_tokens", {"is 0; it must be at least 1"});
}

TEST(GroupedGate, RefusesAPageThatDoesNotFitADouble) {
  Spoiled rank;
  rank.groups[0].page_size_bytes = (std::uint64_t{1} << 53) + 1;
  expect_refusal(rank, "groups[0].page_size_bytes",
                 {"is 9007199254740993; it must be from 1 to 9007199254740992"});
}

TEST(GroupedGate, RefusesAPageOfZeroBytes) {
  Spoiled rank;
  rank.groups[0].page_size_bytes = 0;
  expect_refusal(rank, "groups[0].page_size_bytes", {"is 0", "from 1 to"});
}

TEST(GroupedGate, RefusesAWindowOrChunkOfZero) {
  Spoiled rank;
  rank.groups[0].sliding_window = 0;
  expect_refusal(rank, "groups[0].sliding_window", {"is 0"});
  rank.groups[0].sliding_window.reset();
  rank.groups[0].attention_chunk = 0;
  expect_refusal(rank, "groups[0].attention_chunk", {"is 0"});
}

TEST(GroupedGate, RefusesFieldsOfOtherKinds) {
  Spoiled rank;
  rank.groups[1].sliding_window = 8;
  expect_refusal(rank, "groups[1].sliding_window", {"kind state", "attention and convolution"});
  rank.groups[1].sliding_window.reset();
  rank.groups[2].attention_chunk = 8;
  expect_refusal(rank, "groups[2].attention_chunk", {"kind ring", "only attention"});
  rank.groups[2].attention_chunk.reset();
  rank.groups[0].prefill_checkpoint_blocks = 0;
  expect_refusal(rank, "groups[0].prefill_checkpoint_blocks", {"kind attention", "only state"});
  rank.groups[0].prefill_checkpoint_blocks.reset();
  rank.groups[0].mamba_cache_mode = MambaCacheMode::Align;
  expect_refusal(rank, "groups[0].mamba_cache_mode", {"kind attention", "only state"});
}

TEST(GroupedGate, RefusesAWindowTogetherWithAChunk) {
  Spoiled rank;
  rank.groups[0].sliding_window = 8;
  rank.groups[0].attention_chunk = 8;
  expect_refusal(rank, "groups[0].attention_chunk", {"goes not together with sliding_window"});
}

TEST(GroupedGate, RefusesAConvolutionWithoutAWindow) {
  Spoiled rank;
  rank.settings.prefix_caching = false;
  rank.settings.prefix_match_unit.reset();
  rank.groups[0].kind = GroupKind::Convolution;
  expect_refusal(rank, "groups[0].sliding_window", {"missing", "convolution"});
}

TEST(GroupedGate, RefusesARingThatSaysItIsCached) {
  Spoiled rank;
  rank.groups[2].prefix_cacheable = true;
  expect_refusal(rank, "groups[2].prefix_cacheable", {"is true", "it must be false"});
}

TEST(GroupedGate, RefusesAVersionWithoutGroups) {
  Spoiled rank;
  rank.groups.clear();
  expect_refusal(rank, "vllm_version", {"0.32.0", "only grouped caches"});
  rank.settings.vllm_version.reset();
  EXPECT_THAT(rank.gate().refusals, IsEmpty());
}

TEST(GroupedGate, RefusesAnUnknownVersionWithAndWithoutCaching) {
  Spoiled rank;
  rank.settings.vllm_version = "0.33.1";
  expect_refusal(rank, "vllm_version",
                 {"0.33.1", "supported: 0.31.0, 0.32.0", "the nearest is 0.32.0"});
  rank.settings.evidence.reset();
  expect_refusal(rank, "vllm_version", {"0.33.1"});
  rank.settings.prefix_caching = false;
  rank.settings.prefix_match_unit.reset();
  expect_refusal(rank, "vllm_version", {"0.33.1"});
}

TEST(GroupedGate, RefusesAMatchUnitWithoutCaching) {
  Spoiled rank;
  rank.settings.prefix_caching = false;
  expect_refusal(rank, "prefix_match_unit", {"is 4", "with prefix caching only"});
}

TEST(GroupedGate, RefusesAGroupThatDoesNotSayWhetherItIsCached) {
  Spoiled rank;
  rank.groups[1].prefix_cacheable.reset();
  expect_refusal(rank, "groups[1].prefix_cacheable", {kCaching, "import the probe again"});
}

TEST(GroupedGate, RefusesARankInWhichNothingIsCached) {
  Spoiled rank;
  rank.groups[0].prefix_cacheable = false;
  rank.groups[1].prefix_cacheable = false;
  expect_refusal(rank, "groups", {kCaching, "prefix_cacheable: true"});
}

TEST(GroupedGate, RefusesAConvolution) {
  Spoiled rank;
  rank.groups[0].kind = GroupKind::Convolution;
  rank.groups[0].sliding_window = 4;
  expect_refusal(rank, "groups[0].kind", {kCaching, "convolution"});
}

TEST(GroupedGate, RefusesRecurrentStateThatIsNotAligned) {
  Spoiled rank;
  for (const auto mode : {std::optional<MambaCacheMode>(), std::optional(MambaCacheMode::All),
                          std::optional(MambaCacheMode::None)}) {
    rank.groups[1].mamba_cache_mode = mode;
    expect_refusal(rank, "groups[1].mamba_cache_mode", {kCaching, "must be align"});
  }
  rank.groups[1].prefix_cacheable = false;  // then nobody resumes from it
  EXPECT_TRUE(rank.gate().prefix_caching);
}

TEST(GroupedGate, RefusesUnequalPages) {
  Spoiled rank;
  rank.groups[2].page_size_bytes = 999;
  expect_refusal(rank, "groups[2].page_size_bytes", {kCaching, "is 999", "groups[0] 1000"});
}

TEST(GroupedGate, RefusesAMissingMatchUnit) {
  Spoiled rank;
  rank.settings.prefix_match_unit.reset();
  expect_refusal(rank, "prefix_match_unit", {kCaching, "missing", "recorded 4"});
}

TEST(GroupedGate, RefusesAMatchUnitThatIsNotTheHashBlockOfTheProbe) {
  Spoiled rank;
  rank.settings.prefix_match_unit = 8;
  expect_refusal(rank, "prefix_match_unit", {kCaching, "is 8", "the probe, 4 tokens"});
}

TEST(GroupedGate, RefusesAMissingVersion) {
  Spoiled rank;
  rank.settings.vllm_version.reset();
  expect_refusal(rank, "vllm_version", {kCaching, "missing", "0.31.0, 0.32.0"});
}

TEST(GroupedGate, RefusesAMissingModelLength) {
  Spoiled rank;
  rank.settings.max_model_len.reset();
  expect_refusal(rank, "max_model_len", {kCaching, "missing"});
}

TEST(GroupedGate, RefusesStateWithoutCheckpointBlocksFrom0320On) {
  Spoiled rank;
  rank.groups[1].prefill_checkpoint_blocks.reset();
  expect_refusal(rank, "groups[1].prefill_checkpoint_blocks", {kCaching, "0.32.0", "missing"});
  rank.settings.vllm_version = "0.31.0";
  EXPECT_TRUE(rank.gate().prefix_caching);
}

TEST(GroupedGate, RefusesCheckpointBlocksIn0310) {
  Spoiled rank;
  rank.settings.vllm_version = "0.31.0";
  rank.groups[1].prefill_checkpoint_blocks = 2;
  expect_refusal(rank, "groups[1].prefill_checkpoint_blocks", {kCaching, "0.31.0", "is 2"});
  rank.groups[1].prefill_checkpoint_blocks = 0;
  EXPECT_TRUE(rank.gate().prefix_caching);
}

TEST(GroupedGate, RefusesABlockThatTheMatchUnitDoesNotDivide) {
  Spoiled rank;
  rank.groups[0].block_size_tokens = 18;
  expect_refusal(rank, "groups[0].block_size_tokens", {kCaching, "is 18", "prefix_match_unit, 4"});
  rank.groups[0].block_size_tokens = 16;
  rank.groups[2].block_size_tokens = 3;  // a ring is not matched
  EXPECT_TRUE(rank.gate().prefix_caching);
}

TEST(GroupedGate, RefusesStateGroupsWithDifferentBlocks) {
  Spoiled rank;
  rank.groups.push_back(state(8, 0, "other"));
  expect_refusal(rank, "groups[3].block_size_tokens", {kCaching, "is 8", "groups[1] 16"});
}

TEST(GroupedGate, RefusesAChunkedLocalBlockThatIsNotTheAlignment) {
  Spoiled rank;
  rank.groups = {full(16), chunked(8, 32)};
  expect_refusal(rank, "groups[1].block_size_tokens", {kCaching, "is 8", "all groups, 16"});
  rank.groups = {full(8), chunked(16, 32)};
  EXPECT_TRUE(rank.gate().prefix_caching);
}

TEST(GroupedGate, RefusesARingOffTheGridOfFourTokens) {
  Spoiled rank;
  rank.groups = glm_groups();
  rank.settings = a_setting(rank.groups, 2176, 100);
  rank.settings.max_model_len = 20'000;
  rank.settings.max_num_batched_tokens = 8192;
  EXPECT_TRUE(rank.gate().prefix_caching);
  rank.settings.max_num_batched_tokens = 8190;
  expect_refusal(rank, "max_num_batched_tokens", {kCaching, "ring", "is 8190", "multiple of 4"});

  rank.groups = glm_groups(0, 2174);
  rank.settings = a_setting(rank.groups, 2174, 100);
  rank.settings.max_model_len = 20'000;
  expect_refusal(rank, "prefix_match_unit", {kCaching, "ring", "is 2174", "multiple of 4"});
  rank.groups.pop_back();
  EXPECT_TRUE(rank.gate().prefix_caching);  // no ring, no grid
}

TEST(GroupedGate, RefusesAPoolWithoutRoomForOneRequest) {
  struct Case {
    std::uint32_t checkpoints, max_model_len, blocks;
  };
  for (const Case& c : {Case{0, 131'072, 70}, Case{1, 131'072, 74}, Case{0, 1'048'576, 491}}) {
    Spoiled rank;
    rank.groups = glm_groups(c.checkpoints);
    rank.settings = a_setting(rank.groups, 2176, c.blocks);
    rank.settings.max_model_len = c.max_model_len;
    EXPECT_TRUE(rank.gate().prefix_caching);
    rank.settings.capacity_bytes -= 1;
    expect_refusal(rank, "capacity.bytes",
                   {kCaching, "gives " + std::to_string(c.blocks - 1) + " blocks of 1000 bytes",
                    "need " + std::to_string(c.blocks) + " blocks",
                    "max_model_len " + std::to_string(c.max_model_len)});
  }
}

TEST(GroupedGate, RefusesMoreBlocksThanAPoolNumbers) {
  Spoiled rank;
  for (KvGroup& group : rank.groups) group.page_size_bytes = 1;
  rank.settings.capacity_bytes = std::uint64_t{1} << 32;
  expect_refusal(rank, "capacity.bytes", {"4294967296 blocks", "at most 4294967294"});
}

}  // namespace
}  // namespace servecast::cache
