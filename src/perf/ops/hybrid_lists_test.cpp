// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/hybrid_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "perf/ops/passes.hpp"
#include "perf/table/import.hpp"

namespace servecast::perf {
namespace {

namespace fs = std::filesystem;

// Half a unit of the last digit of the published numbers.
constexpr double kPrintedMs = 5e-4;

HybridFacts nemotron_h_56b() {
  return {.family = HybridFamily::Mamba,
          .layers = 118,
          .hidden = 8192,
          .vocab = 131072,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .inter = 32768,
          .mamba_layers = 54,
          .attention_layers = 10,
          .dense_layers = 54,
          .mamba_heads = 256,
          .mamba_head_dim = 64,
          .groups = 8,
          .state = 256};
}

HybridFacts llama_4_scout() {
  return {.family = HybridFamily::Interleaved,
          .layers = 48,
          .hidden = 5120,
          .vocab = 202048,
          .heads = 40,
          .kv_heads = 8,
          .head_dim = 128,
          .global_experts = 24,
          .sliding_experts = 24,
          .window = 8192,
          .experts = 16,
          .topk = 1,
          .expert_inter = 8192};
}

HybridFacts qwen35_27b() {
  return {.family = HybridFamily::GatedDelta,
          .layers = 64,
          .hidden = 5120,
          .vocab = 248320,
          .heads = 24,
          .kv_heads = 4,
          .head_dim = 256,
          .inter = 17408,
          .qk_norm = true,
          .linear_layers = 48,
          .linear_k_heads = 16,
          .linear_k_dim = 128,
          .linear_v_heads = 48,
          .linear_v_dim = 128};
}

const OpStep* find(const OpList& list, std::string_view name) {
  const auto step =
      std::find_if(list.begin(), list.end(), [&](const OpStep& s) { return s.name == name; });
  return step == list.end() ? nullptr : &*step;
}

struct Removed {
  fs::path place;
  ~Removed() {
    std::error_code ignored;
    fs::remove_all(place, ignored);
  }
};

// B200's tables of vLLM 0.19.0, imported from the shared sample once for this process; nothing
// where there is no sample or no Parquet reader, and `why` says which.
std::shared_ptr<const PerfDatabase> b200_tables(std::string& why) {
  const char* data = std::getenv("SERVECAST_DATA");
  const fs::path sample = fs::path(data == nullptr ? "../shared/data" : data) / "perf/systems/data";
  const fs::path from = sample / "b200_sxm";
  why = "no measured tables at " + from.string();
  if (!fs::exists(from)) return nullptr;
  const fs::path place = fs::path(::testing::TempDir()) /
                         (std::string("servecast-hybrid-") +
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
  for (const char* family : {"attention", "gemm", "moe", "comm"}) {
    const fs::path version = fs::path("b200_sxm") / family / "vllm/0.19.0";
    fs::create_directories(place / "in" / version);
    fs::copy(sample / version, place / "in" / version,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  const auto report = import_tables(place / "in", place / "out");
  std::shared_ptr<const PerfDatabase> tables;
  const bool readable = report || report.error().front().code != "perfdata.no_duckdb";
  if (!readable) why = to_text(report.error().front());
  EXPECT_TRUE(report || !readable) << (report ? "" : to_text(report.error().front()));
  if (report) {
    auto opened = PerfDatabase::open(place / "out", catalog::find_system("b200_sxm").value(),
                                     {.engine = catalog::EngineKind::Vllm, .version = "0.19.0"});
    EXPECT_TRUE(opened.has_value());
    if (opened) tables = *opened;
  }
  // Tables are unpacked when they are asked for, so that the store goes when the process does.
  static const Removed at_exit{place};
  return tables;
}

struct Published {
  double context, decode, mixed;
};

void expect_passes(const HybridFacts& facts, const Sharding& sharding, const Published& want) {
  std::string why;
  const auto tables = b200_tables(why);
  if (!tables && !::testing::Test::HasFailure()) GTEST_SKIP() << why;
  ASSERT_NE(tables, nullptr);
  const Estimator estimator(tables->system(), {.mode = DataMode::Table, .parity = true}, tables);
  const auto lists = hybrid_lists(facts, sharding, {}, {.parity = true}).value();
  const auto context = context_pass(estimator, lists, 1, 1024);
  const auto decode = generation_pass(estimator, lists, 1, 1025);
  const auto mixed = mixed_pass(
      estimator, lists, {.context_tokens = 1024, .decode_requests = 1, .isl = 1024, .osl = 2});
  ASSERT_TRUE(context) << context.error().message;
  ASSERT_TRUE(decode) << decode.error().message;
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_NEAR(context->ms, want.context, kPrintedMs);
  EXPECT_NEAR(decode->ms, want.decode, kPrintedMs);
  EXPECT_NEAR(mixed->ms, want.mixed, kPrintedMs);
}

TEST(HybridLists, PassesOfNemotronHAreThePublishedOnes) {  // perfmodel.md annex F
  expect_passes(nemotron_h_56b(), {.tp = 8}, {21.261, 4.673, 21.888});
}

TEST(HybridLists, PassesOfLlama4ScoutAreThePublishedOnes) {  // perfmodel.md annex F
  expect_passes(llama_4_scout(), {.tp = 8, .moe_ep = 8}, {20.313, 2.061, 20.988});
}

TEST(HybridLists, StateSpaceKernelsSeeARanksHeadsOutsideParity) {
  const auto parity = hybrid_lists(nemotron_h_56b(), {.tp = 8}, {}, {.parity = true}).value();
  const auto ours = hybrid_lists(nemotron_h_56b(), {.tp = 8}, {}, {}).value();
  const auto heads = [](const OpLists& lists) {
    return std::get<Mamba2Kernel>(find(lists.context, "mamba_scan")->op).heads;
  };
  EXPECT_EQ(heads(parity), 256);
  EXPECT_EQ(heads(ours), 32);
}

TEST(HybridLists, DenseInterleavedLayersReduceOutsideParity) {
  HybridFacts facts = llama_4_scout();
  facts.global_experts = 0;
  facts.global_dense = 24;
  facts.inter = 16384;
  const Sharding sharding{.tp = 8, .moe_ep = 8};
  EXPECT_EQ(find(hybrid_lists(facts, sharding, {}, {.parity = true}).value().context, "all_reduce"),
            nullptr);
  const auto ours = hybrid_lists(facts, sharding, {}, {}).value();
  ASSERT_NE(find(ours.context, "all_reduce"), nullptr);
  EXPECT_EQ(find(ours.context, "all_reduce")->scale, 48.0);
}

TEST(HybridLists, FullLayersOfQwen35ProjectAnOutputGate) {
  const auto lists = hybrid_lists(qwen35_27b(), {.tp = 4}, {}, {}).value();
  EXPECT_EQ(std::get<Gemm>(find(lists.context, "qkv")->op).n, 2 * 6 * 256 + 2 * 256);
  EXPECT_EQ(find(lists.context, "qkv")->scale, 16.0);
  EXPECT_EQ(find(lists.context, "linear_scan")->scale, 48.0);
  EXPECT_EQ(std::get<GdnKernel>(find(lists.generation, "linear_scan")->op).phase,
            Phase::Generation);
}

TEST(HybridLists, SglangFoldsAttentionsAllReduceIntoTheExchange) {
  HybridFacts facts = qwen35_27b();
  facts.experts = 256;
  facts.topk = 8;
  facts.expert_inter = 512;
  const ListSettings sglang{.engine = catalog::EngineKind::Sglang};
  const auto alone = hybrid_lists(facts, {.tp = 4, .moe_ep = 4}, {}, sglang).value();
  const auto shared = hybrid_lists(facts, {.tp = 4, .dp = 2, .moe_ep = 8}, {}, sglang).value();
  EXPECT_NE(find(alone.context, "attention_all_reduce"), nullptr);
  EXPECT_EQ(find(alone.context, "dispatch"), nullptr);
  EXPECT_EQ(find(shared.context, "attention_all_reduce"), nullptr);
  EXPECT_NE(find(shared.context, "dispatch"), nullptr);
}

TEST(HybridLists, AModelWithoutAGateProjectsUpOnce) {
  const auto lists = hybrid_lists({.layers = 2,
                                   .hidden = 64,
                                   .vocab = 128,
                                   .heads = 4,
                                   .kv_heads = 4,
                                   .head_dim = 16,
                                   .inter = 256},
                                  {.tp = 2}, {}, {})
                         .value();
  EXPECT_EQ(std::get<Gemm>(find(lists.context, "up")->op).n, 128);
  EXPECT_EQ(find(lists.context, "embedding_all_reduce"), nullptr);
}

TEST(HybridLists, DraftsRepeatGenerationAlone) {
  const auto lists = hybrid_lists(qwen35_27b(), {.tp = 4}, {}, {.draft_tokens = 1}).value();
  EXPECT_EQ(find(lists.context, "qkv")->scale, 16.0);
  EXPECT_EQ(find(lists.generation, "qkv")->scale, 16.0 * 65.0 / 64.0);
}

TEST(HybridLists, RefusesHeadsThatDoNotDivide) {
  const auto lists = hybrid_lists(qwen35_27b(), {.tp = 32}, {}, {});
  ASSERT_FALSE(lists);
  EXPECT_EQ(lists.error().size(), 3U);
  EXPECT_EQ(lists.error().front().message, "24 attention heads do not divide over 32 ranks");
}

}  // namespace
}  // namespace servecast::perf
