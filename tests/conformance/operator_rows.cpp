// SPDX-License-Identifier: Apache-2.0
#include "conformance/operator_rows.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "conformance/measured_tables.hpp"
#include "perf/ops/estimator.hpp"
#include "perf/ops/table_time.hpp"

namespace servecast::test {
namespace {

using namespace perf;

constexpr double kRelative = 1e-9;

std::int64_t whole(const Value& map, std::string_view key, std::int64_t otherwise) {
  const Value* value = map.find(key);
  return value == nullptr ? otherwise : static_cast<std::int64_t>(value->count());
}

Quant quant(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  if (value == nullptr) return Quant::Bfloat16;
  const auto found = quant_from(value->scalar);
  if (!found) value->refuse("unknown quantisation mode");
  return *found;
}

Phase phase(const Value& map) {
  const Value* value = map.find("phase");
  if (value == nullptr || value->scalar == "context") return Phase::Context;
  if (value->scalar != "generation") value->refuse("context or generation");
  return Phase::Generation;
}

Collective collective(const Value& name) {
  const std::map<std::string, Collective> kinds = {{"all_reduce", Collective::AllReduce},
                                                   {"all_gather", Collective::AllGather},
                                                   {"reduce_scatter", Collective::ReduceScatter},
                                                   {"all_to_all", Collective::AllToAll}};
  const auto kind = kinds.find(name.scalar);
  if (kind == kinds.end()) name.refuse("unknown collective");
  return kind->second;
}

template <class Kernel>
typename Kernel::Part part(const Value& map) {
  const std::string& name = map.at("part").scalar;
  if (name != "convolution" && name != "scan") map.refuse("part is convolution or scan");
  return name == "scan" ? Kernel::Part::Scan : Kernel::Part::Convolution;
}

Op read_attention(const std::string& kind, const Value& v) {
  v.only({"heads", "kv_heads", "head_dim", "window", "math", "kv", "gemm"});
  const auto heads = whole(v, "heads", 0);
  if (kind == "context_attention")
    return ContextAttention{.heads = heads,
                            .kv_heads = whole(v, "kv_heads", 0),
                            .head_dim = whole(v, "head_dim", 0),
                            .window = whole(v, "window", 0),
                            .math = quant(v, "math"),
                            .kv = quant(v, "kv")};
  if (kind == "generation_attention")
    return GenerationAttention{.heads = heads,
                               .kv_heads = whole(v, "kv_heads", 0),
                               .head_dim = whole(v, "head_dim", 0),
                               .window = whole(v, "window", 0),
                               .kv = quant(v, "kv")};
  if (kind == "mla_context")
    return MlaContext{.heads = heads, .math = quant(v, "math"), .kv = quant(v, "kv")};
  if (kind == "mla_bmm") return MlaBmm{.heads = heads, .quant = quant(v, "math")};
  return MlaGeneration{.heads = heads,
                       .kv = quant(v, "kv"),
                       .module = kind == "mla_generation_module",
                       .gemm = quant(v, "gemm")};
}

Op read_kernel(const std::string& kind, const Value& v) {
  v.only({"part", "phase", "k_heads", "k_dim", "v_heads", "v_dim", "conv", "heads", "head_dim",
          "groups", "state"});
  if (kind == "gdn")
    return GdnKernel{.part = part<GdnKernel>(v),
                     .phase = phase(v),
                     .k_heads = whole(v, "k_heads", 0),
                     .k_dim = whole(v, "k_dim", 0),
                     .v_heads = whole(v, "v_heads", 0),
                     .v_dim = whole(v, "v_dim", 0),
                     .conv = whole(v, "conv", 0)};
  return Mamba2Kernel{.part = part<Mamba2Kernel>(v),
                      .phase = phase(v),
                      .heads = whole(v, "heads", 0),
                      .head_dim = whole(v, "head_dim", 0),
                      .groups = whole(v, "groups", 0),
                      .state = whole(v, "state", 0),
                      .conv = whole(v, "conv", 0)};
}

Op read_experts(const Value& v) {
  v.only({"hidden", "inter", "topk", "experts", "tp", "ep", "quant", "distribution"});
  const Value* distribution = v.find("distribution");
  return Experts{.hidden = whole(v, "hidden", 0),
                 .inter = whole(v, "inter", 0),
                 .topk = whole(v, "topk", 0),
                 .experts = whole(v, "experts", 0),
                 .tp = whole(v, "tp", 1),
                 .ep = whole(v, "ep", 1),
                 .quant = quant(v, "quant"),
                 .distribution = distribution == nullptr ? "" : distribution->scalar};
}

Op read_op(const std::string& kind, const Value& v) {
  if (kind == "elementwise") return Elementwise{.in = whole(v, "in", 0), .out = whole(v, "out", 0)};
  if (kind == "gemm")
    return Gemm{.n = whole(v, "n", 0), .k = whole(v, "k", 0), .quant = quant(v, "quant")};
  if (kind == "experts") return read_experts(v);
  if (kind == "custom_all_reduce")
    return CustomAllReduce{.ranks = whole(v, "ranks", 1), .width = whole(v, "width", 1)};
  if (kind == "nccl")
    return Nccl{.kind = collective(v.at("kind")),
                .ranks = whole(v, "ranks", 1),
                .width = whole(v, "width", 1)};
  if (kind == "peer_to_peer") return PeerToPeer{.width = whole(v, "width", 0)};
  if (kind == "gdn" || kind == "mamba2") return read_kernel(kind, v);
  return read_attention(kind, v);
}

OpShape shape_of(const Value& row) {
  OpShape shape{.tokens = whole(row, "tokens", 0), .batch = whole(row, "batch", 1)};
  shape.length = static_cast<double>(whole(row, "length", 0));
  shape.prefix = static_cast<double>(whole(row, "prefix", 0));
  return shape;
}

Op op_of(const Value& row) {
  for (const auto& [key, value] : row.map) {
    if (value.kind == Value::Kind::Map) return read_op(key, value);
  }
  row.refuse("a row names one operator");
}

void expect_close(const Value* want, double got, const char* what) {
  if (want == nullptr) return;
  const double number = want->number();
  EXPECT_NEAR(got, number, std::abs(number) * kRelative) << what;
}

}  // namespace

// A row: `system`, one operator by its name, the pass, and the bounds in ms or in bytes of memory.
void check_operator(const Value& row) {
  row.only({"system",
            "tokens",
            "batch",
            "length",
            "prefix",
            "ms",
            "math_ms",
            "mem_ms",
            "bytes",
            "refused",
            "elementwise",
            "gemm",
            "experts",
            "custom_all_reduce",
            "nccl",
            "peer_to_peer",
            "gdn",
            "mamba2",
            "context_attention",
            "generation_attention",
            "mla_context",
            "mla_generation",
            "mla_generation_module",
            "mla_bmm"});
  const std::map<std::string, std::string> short_names = {{"h200", "h200_sxm"},
                                                          {"b200", "b200_sxm"}};
  const auto system = catalog::find_system(short_names.at(row.at("system").scalar)).value();
  const Op op = op_of(row);
  const OpShape shape = shape_of(row);
  const auto got = sol(op, shape, system);
  if (row.find("refused") != nullptr) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind, Miss::Kind::MissingSystemFlops);
    return;
  }
  ASSERT_TRUE(got) << got.error().message;
  if (row.find("ms") == nullptr && row.find("math_ms") == nullptr &&
      row.find("mem_ms") == nullptr && row.find("bytes") == nullptr)
    row.refuse("a row expects something");
  expect_close(row.find("ms"), got->ms(), "the bound");
  expect_close(row.find("math_ms"), got->math_ms, "arithmetic");
  expect_close(row.find("mem_ms"), got->mem_ms, "memory");
  const double bytes = got->mem_ms / 1000.0 * static_cast<double>(system.memory_bytes_per_s);
  expect_close(row.find("bytes"), bytes, "bytes");
}

// A row: as `operator`, with `mode`, and the system, engine version and estimator's duration in ms,
// from the sample. `parity` is the default: the numbers are those of the public estimators.
void check_measured(const Value& row) {
  row.only({"system", "version", "mode", "tokens", "batch", "length", "prefix", "ms", "within_ms",
            "bare", "refused", "gemm", "experts", "custom_all_reduce", "nccl", "context_attention",
            "generation_attention"});
  if (const std::string why = no_measured_tables(); !why.empty()) GTEST_SKIP() << why;
  const auto database = measured_tables(row.at("system").scalar + "_sxm",
                                        {catalog::EngineKind::Vllm, row.at("version").scalar});
  const std::map<std::string, DataMode> modes = {
      {"table", DataMode::Table}, {"hybrid", DataMode::Hybrid}, {"empirical", DataMode::Empirical}};
  const Estimator estimator(database->system(),
                            {.mode = modes.at(row.at("mode").scalar), .parity = true}, database);
  const Op op = op_of(row);
  const OpShape shape = shape_of(row);
  const auto got = estimator.time(op, shape);
  if (const Value* code = row.find("refused")) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind,
              code->scalar == "no_data" ? Miss::Kind::NoData : Miss::Kind::MissingSystemFlops);
    return;
  }
  ASSERT_TRUE(got) << got.error().message;
  double ms = got->ms;
  // `bare`: without the kernels around prefill attention.
  if (row.find("bare") != nullptr)
    ms -=
        around_attention_ms(std::get<ContextAttention>(op), shape, database->system(), true, false);
  expect_close(&row.at("ms"), ms, "the duration");
}

void check_dsa_pairs(const Value& row) {
  row.only({"batch", "length", "prefix", "topk", "pairs"});
  EXPECT_EQ(dsa_pairs(row.at("batch").number(), row.at("length").number(),
                      row.at("prefix").number(), row.at("topk").number()),
            row.at("pairs").number());
}

}  // namespace servecast::test
