// SPDX-License-Identifier: Apache-2.0
// Rows of tables/measured-passes.yaml: whole passes from the shared sample's tables.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "conformance/measured_tables.hpp"
#include "conformance/operator_rows.hpp"
#include "perf/ops/passes.hpp"

namespace servecast::test {
namespace {

using namespace perf;

struct Described {
  ModelFacts facts;
  OpModes modes;
};

std::int64_t whole(const Value& row, std::string_view key, std::int64_t otherwise) {
  const Value* value = row.find(key);
  return value == nullptr ? otherwise : static_cast<std::int64_t>(value->count());
}

ModelFacts dense(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t inter,
                 std::int64_t vocab, bool qk_norm) {
  ModelFacts f;
  f.layers = layers;
  f.hidden = hidden;
  f.heads = heads;
  f.kv_heads = 8;
  f.head_dim = 128;
  f.inter = inter;
  f.vocab = vocab;
  f.qk_norm = qk_norm;
  return f;
}

ModelFacts experts(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t count, std::int64_t inter,
                   std::int64_t vocab) {
  ModelFacts f = dense(layers, hidden, heads, 0, vocab, true);
  f.family = Family::Experts;
  f.kv_heads = kv_heads;
  f.experts = count;
  f.topk = 8;
  f.expert_inter = inter;
  return f;
}

ModelFacts latent(std::int64_t heads, std::int64_t count, std::int64_t vocab) {
  ModelFacts f = experts(61, 7168, heads, heads, count, 2048, vocab);
  f.family = Family::LatentExperts;
  f.qk_norm = false;
  f.shared_experts = 1;
  f.q_lora = 1536;
  f.kv_lora = 512;
  f.rope = 64;
  return f;
}

ModelFacts sparse() {
  ModelFacts f = latent(128, 256, 129280);
  f.family = Family::SparseExperts;
  f.architecture = "DeepseekV32ForCausalLM";
  f.nope = 128;
  f.v = 128;
  f.index_heads = 64;
  f.index_dim = 128;
  f.index_topk = 2048;
  return f;
}

Described described(const Value& name) {
  const OpModes block{.gemm = Quant::Fp8Block, .experts = Quant::Fp8Block, .kv = Quant::Fp8};
  const OpModes int4{.experts = Quant::Int4Wo};
  const std::map<std::string, Described> models = {
      {"Llama-3.1-8B", {dense(32, 4096, 32, 14336, 128256, false), {}}},
      {"Llama-3.1-70B", {dense(80, 8192, 64, 28672, 128256, false), {}}},
      {"Qwen3-32B", {dense(64, 5120, 64, 25600, 151936, true), {}}},
      {"Qwen3-1.7B", {dense(28, 2048, 16, 6144, 151936, true), {}}},
      {"Qwen3-235B-A22B", {experts(94, 4096, 64, 4, 128, 1536, 151936), {}}},
      {"Qwen3-30B-A3B", {experts(48, 2048, 32, 4, 128, 768, 151936), {}}},
      {"MiniMax-M2.5", {experts(62, 3072, 48, 8, 256, 1536, 200064), block}},
      {"DeepSeek-V3", {latent(128, 256, 129280), block}},
      {"DeepSeek-V3.2", {sparse(), block}},
      {"Kimi-K2.5", {latent(64, 384, 163840), int4}}};
  const auto found = models.find(name.scalar);
  if (found == models.end()) name.refuse("unknown model");
  return found->second;
}

void expect_printed(const Value& want, const OpResult<OpTime>& got) {
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_NEAR(got->ms, want.number(), 5.0001e-4);  // printed with three decimals
}

}  // namespace

// A row: model, system and engine version, the pass, and durations of its prefill, of the decode
// pass after it and of a mixed pass with one decoding request.
void check_measured_pass(const Value& row) {
  row.only({"model", "system", "engine", "version", "mode", "tp", "ep", "batch", "isl", "osl",
            "prefix", "context_ms", "decode_ms", "mixed_ms", "operators"});
  if (const std::string why = no_measured_tables(); !why.empty()) GTEST_SKIP() << why;
  const Described model = described(row.at("model"));
  const Value* engine_name = row.find("engine");
  const auto engine =
      catalog::engine_from(engine_name == nullptr ? "vllm" : engine_name->scalar).value();
  const auto database =
      measured_tables(row.at("system").scalar + "_sxm", {engine, row.at("version").scalar});
  const Value* mode = row.find("mode");
  const bool empirical = mode != nullptr && mode->scalar == "empirical";
  const Estimator estimator(
      database->system(),
      {.mode = empirical ? DataMode::Empirical : DataMode::Table, .parity = true}, database);
  const Sharding sharding{.tp = whole(row, "tp", 8), .moe_ep = whole(row, "ep", 1)};
  const auto lists =
      op_lists(model.facts, sharding, model.modes, {.engine = engine, .parity = true});
  ASSERT_TRUE(lists) << to_text(lists.error().front());
  const std::int64_t batch = whole(row, "batch", 1), isl = whole(row, "isl", 1024);
  const std::int64_t osl = whole(row, "osl", 2), prefix = whole(row, "prefix", 0);
  if (const Value* operators = row.find("operators")) {
    const OpShape shape{.tokens = batch * (isl - prefix),
                        .batch = batch,
                        .length = static_cast<double>(isl - prefix),
                        .prefix = static_cast<double>(prefix)};
    for (const OpStep& step : lists->context) {
      const Value* want = operators->find(step.name);
      if (want == nullptr) continue;
      const auto got = estimator.time(step, shape);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_NEAR(got->ms, want->number(), 1e-8) << step.name;
    }
  }
  if (const Value* want = row.find("context_ms"))
    expect_printed(*want, context_pass(estimator, *lists, batch, isl, prefix));
  if (const Value* want = row.find("decode_ms"))
    expect_printed(*want, whole_decode(estimator, *lists, batch, isl, osl));
  if (const Value* want = row.find("mixed_ms"))
    expect_printed(*want, mixed_pass(estimator, *lists,
                                     {.context_tokens = isl,
                                      .decode_requests = batch,
                                      .isl = isl,
                                      .osl = osl,
                                      .prefix = prefix}));
}

}  // namespace servecast::test
