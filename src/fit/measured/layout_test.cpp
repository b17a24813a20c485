// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/layout.hpp"

#include <gtest/gtest.h>

#include "fit/measured/notes.hpp"

namespace servecast::fit {
namespace {

Result<std::vector<MeasuredRow>> read(std::string_view text) {
  const Result<CsvTable> table = parse_csv(text, "m.csv");
  if (!table) return tl::unexpected(table.error());
  const Result<Layout> layout = layout_of(*table);
  if (!layout) return tl::unexpected(layout.error());
  return rows_of(*table, *layout);
}

TEST(Layout, ReadsTheColumnsOfTheSiliconFile) {
  const auto rows = read(
      "id,backend,model_path,system,precision,mode,isl,osl,concurrency,tp_size,moe_ep_size,"
      "prefill_num_workers,silicon_ttft_ms,silicon_tpot_ms\n"
      "x,trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,fp4,agg,1024,8192,16,8,,2,310.5,9.25\n");
  ASSERT_TRUE(rows);
  const MeasuredRow& row = rows->at(0);
  EXPECT_EQ(row.id, "x");
  EXPECT_EQ(row.engine, "trtllm");
  EXPECT_EQ(row.output_tokens, 8192U);
  EXPECT_EQ(row.widths.tensor, 8U);
  EXPECT_EQ(row.widths.moe_expert, std::nullopt);
  EXPECT_EQ(row.prefill.workers, 2U);
  EXPECT_EQ(row.ttft_ms, 310.5);
  EXPECT_EQ(row.place.line, 2);
}

constexpr std::string_view kCommon =
    "source,model,gpu,n_gpus,tp,pp,ep,dp,precision,engine,engine_version,isl,osl,concurrency,rate,"
    "ttft_ms,ttft_p50_ms,tpot_ms,out_tok_s_per_gpu,notes\n";

TEST(Layout, ReadsTheCommonColumnsAndWhatTheNotesSay) {
  const auto rows = read(std::string(kCommon) +
                         "S,openai/gpt-oss-120b,h200,1,1,1,1,1,fp4,vllm,0.22,8000,1000,64,inf,"
                         "1526.3,,41.7,512.5,\"lengths ~U[0.8L,L]; n=640 in=4; max_num_seqs=64 "
                         "max_model_len=10240; gpu_mem_util=0.85; spec=eagle3 num_spec=3\"\n");
  ASSERT_TRUE(rows);
  const MeasuredRow& row = rows->at(0);
  EXPECT_EQ(row.id, "line 2");
  EXPECT_EQ(row.requests, 640U);
  EXPECT_EQ(row.max_sequences, 64U);
  EXPECT_EQ(row.max_model_len, 10240U);
  EXPECT_EQ(row.memory_fraction, 0.85);
  EXPECT_EQ(row.nextn, 3U);
  EXPECT_EQ(row.ttft_p50_ms, std::nullopt);
  EXPECT_EQ(row.output_tok_s_per_gpu, 512.5);
  EXPECT_EQ(protocol_of(row), Protocol::InferenceMax);
}

TEST(Layout, TensorCountsAllGpusWhereAttentionIsDataParallel) {
  const auto rows = read(std::string(kCommon) +
                         "S,deepseek-ai/DeepSeek-R1,b200,8,8,1,8,8,fp8,trtllm,1,1024,1024,8,inf,"
                         "1,,1,,\n");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0).widths.tensor, 1U);
  EXPECT_EQ(rows->at(0).widths.moe_tensor, 1U);
}

TEST(Layout, TheFirstSweepsHadNoDrafts) {
  MeasuredRow row;
  row.notes = "InferenceMAX official sweep snapshot 2025-11-13; lengths ~U[0.8L,L]";
  read_notes(row);
  EXPECT_EQ(row.nextn, 0U);
  row = {};
  row.notes = "InferenceX dashboard export 2026-06";
  read_notes(row);
  EXPECT_EQ(row.nextn, std::nullopt);
}

TEST(Layout, ASubmissionTellsItsOutputsByTwoRates) {
  const auto rows = read(std::string(kCommon) +
                         "S,llama2-70b-99,H200-SXM-141GB,8,,,,,,\"TensorRT 10.2, CUDA 12.4\",,"
                         "openorca mean~294,,,,,,,4000,closed/X scenario=Offline "
                         "samples_per_s=100; output tokens only\n");
  ASSERT_TRUE(rows);
  const MeasuredRow& row = rows->at(0);
  EXPECT_TRUE(row.is_submission);
  EXPECT_EQ(row.unreadable, "");
  EXPECT_EQ(row.input_tokens, 294U);
  EXPECT_EQ(row.output_tokens, 320U);  // 4000 * 8 GPUs / 100
  EXPECT_EQ(row.widths.tensor, std::nullopt);
  EXPECT_EQ(row.engine, "trtllm");
  EXPECT_EQ(protocol_of(row), Protocol::Offline);
}

TEST(Layout, AReplicaHasItsShareOfTheRateAndTotalsTellLengths) {
  // 10 requests of 100 and 20 tokens: TTFT 50 ms, TPOT 10 ms, 10 * 50 + 190 * 10 ms in all.
  const auto rows = read(std::string(kCommon) +
                         "S,m,h100,8,2DP4TP_0,,,,bf16,vllm,,,,,0.5,50,,10,,"
                         "\"layout=2DP4TP_0 (files); served prompt tokens=1000 output tokens=200; "
                         "sum of request latencies s=2.4\"\n");
  ASSERT_TRUE(rows);
  const MeasuredRow& row = rows->at(0);
  EXPECT_EQ(row.unreadable, "");
  EXPECT_EQ(row.widths.tensor, 4U);
  EXPECT_EQ(row.rate, "0.25");
  EXPECT_EQ(row.requests, 10U);
  EXPECT_EQ(row.input_tokens, 100U);
  EXPECT_EQ(row.output_tokens, 20U);
}

TEST(Layout, NamesOfEnginesWithAFlavourAreTheEngines) {
  MeasuredRow row;
  for (const auto& [written, engine] : {std::pair{"trtllm-pytorch", "trtllm"},
                                        {"vLLM 0.9.2", "vllm"},
                                        {"dynamo-sglang", "sglang"},
                                        {"TensorRT 10.11, CUDA 12.9", "trtllm"},
                                        {"llama.cpp", "llama.cpp"}}) {
    row.engine = written;
    read_notes(row);
    EXPECT_EQ(row.engine, engine);
  }
}

TEST(Layout, AFieldThatCannotBeReadMakesTheRowUnreadableAndNotTheFile) {
  const auto rows =
      read(std::string(kCommon) + "S,m,h200,8,2DP4TP_0,1,1,1,fp4,vllm,,openorca,,,inf,1,,1,,\n");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0).unreadable, "input_tokens is 'openorca', not a whole number");
}

TEST(Layout, AMeasuredValueThatIsNoNumberIsAProblemWithItsPlace) {
  const auto rows =
      read(std::string(kCommon) + "S,m,h200,8,8,1,1,1,fp4,vllm,,1,1,1,inf,fast,,0,,\n");
  ASSERT_FALSE(rows);
  ASSERT_EQ(rows.error().size(), 2U);
  EXPECT_EQ(to_text(rows.error()[0]),
            "m.csv:2:40: ttft_ms: 'fast' is no number above 0 (leave empty what was not measured)");
  EXPECT_EQ(rows.error()[1].place.column, 46);
}

TEST(Layout, AnUnknownHeaderAsksForAMapping) {
  const auto rows = read("a,b\n1,2\n");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().front().code, "measured.layout");
}

TEST(Mapping, NamesColumnsConstantsAndFactors) {
  const auto layout = parse_mapping(
      "columns: {model: Model, ttft_ms: TTFT (s)}\nconstants: {engine: vllm, nextn: 0}\n"
      "factors: {ttft_ms: 1000}\n",
      "map.yaml");
  ASSERT_TRUE(layout);
  const auto table = parse_csv("Model,TTFT (s)\nm,0.25\n", "m.csv");
  const auto rows = rows_of(*table, *layout);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->at(0).model, "m");
  EXPECT_EQ(rows->at(0).engine, "vllm");
  EXPECT_EQ(rows->at(0).nextn, 0U);
  EXPECT_EQ(rows->at(0).ttft_ms, 250);
}

TEST(Mapping, TellsWhatItDoesNotKnow) {
  const auto layout = parse_mapping("columns: {modell: M}\nfactor: {}\nfactors: {model: 2}\n", "f");
  ASSERT_FALSE(layout);
  ASSERT_EQ(layout.error().size(), 3U);
  EXPECT_EQ(to_text(layout.error()[0]),
            "f:1:11: columns.modell: there is no such field (did you mean model?)");
  EXPECT_EQ(to_text(layout.error()[1]),
            "f:2:1: factor: there is no such section (did you mean factors?)");
  EXPECT_EQ(layout.error()[2].code, "mapping.factor");
}

TEST(Mapping, AColumnThatTheFileLacksIsAProblem) {
  const auto table = parse_csv("a\n1\n", "m.csv");
  Layout layout;
  layout.columns["model"] = "b";
  const auto rows = rows_of(*table, layout);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().front().code, "measured.no_column");
}

}  // namespace
}  // namespace servecast::fit
