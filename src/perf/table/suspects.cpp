// SPDX-License-Identifier: Apache-2.0
#include "perf/table/suspects.hpp"

#include "perf/ops/sol.hpp"

namespace servecast::perf {
namespace {

constexpr double kUtilMax = 1.05;

std::int64_t whole(const MeasuredTable& table, std::string_view name, std::size_t row) {
  const Column* column = table.find(name);
  return column == nullptr || column->kind != Column::Kind::Whole ? 0 : column->whole[row];
}

Quant quant(const MeasuredTable& table, std::string_view name, std::size_t row) {
  const Column* column = table.find(name);
  if (column == nullptr || column->kind != Column::Kind::Text) return Quant::Bfloat16;
  return quant_from(column->text(row)).value_or(Quant::Bfloat16);
}

}  // namespace

bool is_suspect(const MeasuredTable& table, std::size_t row) {
  if (table.source.backend != "sglang" || table.source.table != "context_attention") return false;
  if (whole(table, "window_size", row) != 0) return false;
  const Column* latency = table.find("latency");
  static const auto cards = catalog::systems();
  for (const catalog::SystemCard& system : cards) {
    if (system.name != table.source.system || latency == nullptr) continue;
    const ContextAttention op{.heads = whole(table, "num_heads", row),
                              .kv_heads = whole(table, "num_key_value_heads", row),
                              .head_dim = whole(table, "head_dim", row),
                              .math = quant(table, "attn_dtype", row),
                              .kv = quant(table, "kv_cache_dtype", row)};
    const auto bound = sol(op,
                           {.batch = whole(table, "batch_size", row),
                            .length = static_cast<double>(whole(table, "isl", row))},
                           system);
    return bound && bound->ms() / latency->real[row] > kUtilMax;
  }
  return false;
}

}  // namespace servecast::perf
