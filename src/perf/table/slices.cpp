// SPDX-License-Identifier: Apache-2.0
#include "perf/table/slices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servecast::perf {
namespace {

constexpr std::string_view kSmallBatchKernel = "moe_torch_flow_min_latency";

// One source by column names. A table without a column reads as 0 or as an empty text.
class Rows {
 public:
  explicit Rows(const MeasuredTable& table)
      : table_(table), latency_(table.find("latency")), power_(table.find("power")) {}

  std::size_t size() const { return latency_ == nullptr ? 0 : table_.rows; }
  Sample sample(std::size_t row) const {
    Sample out{.ms = latency_->real[row]};
    if (power_ != nullptr && power_->kind == Column::Kind::Real) out.watts = power_->real[row];
    return out;
  }

  class Whole {
   public:
    explicit Whole(const Column* column)
        : column_(column != nullptr && column->kind == Column::Kind::Whole ? column : nullptr) {}
    std::int64_t operator[](std::size_t row) const {
      return column_ == nullptr ? 0 : column_->whole[row];
    }

   private:
    const Column* column_;
  };

  class Text {
   public:
    explicit Text(const Column* column)
        : column_(column != nullptr && column->kind == Column::Kind::Text ? column : nullptr) {}
    std::string_view operator[](std::size_t row) const {
      return column_ == nullptr ? std::string_view() : column_->text(row);
    }

   private:
    const Column* column_;
  };

  Whole whole(std::string_view name) const { return Whole(table_.find(name)); }
  Text text(std::string_view name) const { return Text(table_.find(name)); }

 private:
  const MeasuredTable& table_;
  const Column* latency_;
  const Column* power_;
};

// Calls take(rows, row) for each row of each source in order of precedence.
template <class Take>
void for_each_row(const Sources& sources, const Take& take) {
  for (const MeasuredTable& source : sources) take(Rows(source));
}

Slices<Grid> grids(Slices<std::vector<GridPoint>> points, GridShape shape) {
  Slices<Grid> out;
  for (auto& [name, list] : points) out.emplace(name, Grid(shape, std::move(list)));
  return out;
}

Slices<Curve> curves(Slices<std::vector<CurvePoint>> points, std::size_t tail) {
  Slices<Curve> out;
  for (auto& [name, list] : points) out.emplace(name, Curve(std::move(list), tail));
  return out;
}

double raised(const Op& op, const OpShape& shape, const catalog::SystemCard& system, double ms) {
  const auto bound = sol(op, shape, system);
  return bound ? std::max(ms, bound->ms()) : ms;
}

// Tables store attention with as many key-value heads as query heads under 0, so that head counts
// can be crossed.
std::int64_t stored_kv_heads(std::int64_t heads, std::int64_t kv_heads) {
  return kv_heads == heads ? 0 : kv_heads;
}

constexpr std::size_t kMatrixTail = 3;  // points whose median utilisation holds beyond a curve
constexpr std::size_t kMessageTail = 1;

}  // namespace

std::string slice_name(std::initializer_list<std::string_view> words,
                       std::initializer_list<std::int64_t> numbers) {
  std::string name;
  for (const std::string_view word : words) name += (name.empty() ? "" : "/") + std::string(word);
  for (const std::int64_t number : numbers)
    name += (name.empty() ? "" : "/") + std::to_string(number);
  return name;
}

Slices<Sites> gemm_slices(const Sources& sources, const catalog::SystemCard& system) {
  struct Building {
    std::vector<SiteKey> order;
    std::map<SiteKey, std::vector<CurvePoint>> curves;
  };
  Slices<Building> building;
  for_each_row(sources, [&](const Rows& rows) {
    const auto type = rows.text("gemm_dtype");
    const auto m = rows.whole("m"), n = rows.whole("n"), k = rows.whole("k");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Building& slice = building[std::string(type[row])];
      const SiteKey key{n[row], k[row]};
      auto [curve, fresh] = slice.curves.try_emplace(key);
      if (fresh) slice.order.push_back(key);
      Sample sample = rows.sample(row);
      if (const auto quant = quant_from(type[row]))
        sample.ms = raised(Gemm{.n = n[row], .k = k[row], .quant = *quant}, {.tokens = m[row]},
                           system, sample.ms);
      curve->second.push_back({m[row], sample});
    }
  });
  Slices<Sites> out;
  for (auto& [name, slice] : building) {
    std::vector<Site> sites;
    for (const SiteKey& key : slice.order)
      sites.push_back({key, Curve(std::move(slice.curves[key]), kMatrixTail)});
    out.emplace(name, Sites(std::move(sites)));
  }
  return out;
}

Slices<Grid> context_attention_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto math = rows.text("attn_dtype"), kv = rows.text("kv_cache_dtype");
    const auto heads = rows.whole("num_heads"), kv_heads = rows.whole("num_key_value_heads");
    const auto size = rows.whole("head_dim"), window = rows.whole("window_size");
    const auto batch = rows.whole("batch_size"), tokens = rows.whole("isl");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::int64_t stored = stored_kv_heads(heads[row], kv_heads[row]);
      points[slice_name({math[row], kv[row]}, {stored, size[row], window[row]})].push_back(
          {{heads[row], tokens[row], batch[row]}, rows.sample(row)});
    }
  });
  return grids(std::move(points), {.axes = 3, .sqrt_axis = 1});
}

Slices<Grid> generation_attention_slices(const Sources& sources,
                                         const catalog::SystemCard& system) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto kv = rows.text("kv_cache_dtype");
    const auto heads = rows.whole("num_heads"), kv_heads = rows.whole("num_key_value_heads");
    const auto size = rows.whole("head_dim"), window = rows.whole("window_size");
    const auto batch = rows.whole("batch_size"), isl = rows.whole("isl"), step = rows.whole("step");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::int64_t tokens = isl[row] + step[row];
      Sample sample = rows.sample(row);
      if (const auto quant = quant_from(kv[row])) {
        const GenerationAttention op{heads[row], kv_heads[row], size[row], window[row], *quant};
        sample.ms = raised(op, {.batch = batch[row], .length = static_cast<double>(tokens)}, system,
                           sample.ms);
      }
      const std::int64_t stored = stored_kv_heads(heads[row], kv_heads[row]);
      points[slice_name({kv[row]}, {stored, size[row], window[row]})].push_back(
          {{heads[row], batch[row], tokens}, sample});
    }
  });
  return grids(std::move(points), {.axes = 3});
}

Slices<Grid> encoder_attention_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto math = rows.text("attn_dtype");
    const auto heads = rows.whole("num_heads"), size = rows.whole("head_dim");
    const auto batch = rows.whole("batch_size"), tokens = rows.whole("isl");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[slice_name({math[row]}, {size[row]})].push_back(
          {{heads[row], tokens[row], batch[row]}, rows.sample(row)});
  });
  return grids(std::move(points), {.axes = 3, .sqrt_axis = 1});
}

Slices<Grid> mla_context_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto math = rows.text("mla_dtype"), kv = rows.text("kv_cache_dtype");
    const auto gemm = rows.text("gemm_type");
    const auto heads = rows.whole("num_heads"), batch = rows.whole("batch_size");
    const auto tokens = rows.whole("isl");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[slice_name({math[row], kv[row], gemm[row]})].push_back(
          {{heads[row], tokens[row], batch[row]}, rows.sample(row)});
  });
  return grids(std::move(points), {.axes = 3, .sqrt_axis = 1});
}

Slices<Grid> mla_generation_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto kv = rows.text("kv_cache_dtype"), gemm = rows.text("gemm_type");
    const auto heads = rows.whole("num_heads"), batch = rows.whole("batch_size");
    const auto isl = rows.whole("isl"), step = rows.whole("step");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[slice_name({kv[row], gemm[row]})].push_back(
          {{heads[row], batch[row], isl[row] + step[row]}, rows.sample(row)});
  });
  return grids(std::move(points), {.axes = 3});
}

Slices<Curve> mla_bmm_slices(const Sources& sources) {
  Slices<std::vector<CurvePoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto type = rows.text("bmm_dtype"), name = rows.text("op_name");
    const auto heads = rows.whole("num_heads"), tokens = rows.whole("num_tokens");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::string_view side = name[row].ends_with("post") ? "post" : "pre";
      points[slice_name({type[row], side}, {heads[row]})].push_back(
          {tokens[row], rows.sample(row)});
    }
  });
  return curves(std::move(points), kMessageTail);
}

Slices<Grid> dsa_context_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for (auto source = sources.begin(); source != sources.end(); ++source) {
    const Rows rows(*source);
    const auto architecture = rows.text("architecture"), name = rows.text("op_name");
    const auto math = rows.text("mla_dtype"), kv = rows.text("kv_cache_dtype");
    const auto gemm = rows.text("gemm_type");
    const auto heads = rows.whole("num_heads"), batch = rows.whole("batch_size");
    const auto tokens = rows.whole("isl"), prefix = rows.whole("step");
    // Inside one source of these tables the last row of a place counts.
    for (std::size_t back = rows.size(); back > 0; --back) {
      const std::size_t row = back - 1;
      const bool skips = name[row].find("skip_indexer") != std::string_view::npos;
      points[slice_name({architecture[row], math[row], kv[row], gemm[row]}, {skips ? 1 : 0})]
          .push_back({{heads[row], prefix[row], tokens[row], batch[row]}, rows.sample(row)});
    }
  }
  return grids(std::move(points), {.axes = 4, .sqrt_axis = 2});
}

Slices<Grid> dsa_generation_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for (const MeasuredTable& source : sources) {
    const Rows rows(source);
    const auto architecture = rows.text("architecture"), name = rows.text("op_name");
    const auto kv = rows.text("kv_cache_dtype"), gemm = rows.text("gemm_type");
    const auto heads = rows.whole("num_heads"), batch = rows.whole("batch_size");
    const auto isl = rows.whole("isl"), step = rows.whole("step");
    for (std::size_t back = rows.size(); back > 0; --back) {
      const std::size_t row = back - 1;
      const bool skips = name[row].find("skip_indexer") != std::string_view::npos;
      points[slice_name({architecture[row], kv[row], gemm[row]}, {skips ? 1 : 0})].push_back(
          {{heads[row], batch[row], isl[row] + step[row]}, rows.sample(row)});
    }
  }
  return grids(std::move(points), {.axes = 3});
}

Slices<Curve> expert_slices(const Sources& sources, bool small) {
  Slices<std::vector<CurvePoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto type = rows.text("moe_dtype"), distribution = rows.text("distribution");
    const auto kernel = rows.text("kernel_source");
    const auto topk = rows.whole("topk"), experts = rows.whole("num_experts");
    const auto hidden = rows.whole("hidden_size"), inter = rows.whole("inter_size");
    const auto tp = rows.whole("moe_tp_size"), ep = rows.whole("moe_ep_size");
    const auto tokens = rows.whole("num_tokens");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if ((kernel[row] == kSmallBatchKernel) != small) continue;
      points[slice_name({type[row], distribution[row]},
                        {topk[row], experts[row], hidden[row], inter[row], tp[row], ep[row]})]
          .push_back({tokens[row], rows.sample(row)});
    }
  });
  return curves(std::move(points), kMessageTail);
}

Slices<Curve> all_reduce_slices(const Sources& sources) {
  Slices<std::vector<CurvePoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto gpus = rows.whole("num_gpus"), size = rows.whole("message_size");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[slice_name({}, {gpus[row]})].push_back({size[row], rows.sample(row)});
  });
  return curves(std::move(points), kMessageTail);
}

Slices<Curve> nccl_slices(const Sources& sources) {
  Slices<std::vector<CurvePoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto type = rows.text("nccl_dtype"), name = rows.text("op_name");
    const auto gpus = rows.whole("num_gpus"), size = rows.whole("message_size");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[slice_name({type[row], name[row]}, {gpus[row]})].push_back(
          {size[row], rows.sample(row)});
  });
  return curves(std::move(points), kMessageTail);
}

Slices<Grid> scale_slices(const Sources& sources) {
  Slices<std::vector<GridPoint>> points;
  for_each_row(sources, [&](const Rows& rows) {
    const auto type = rows.text("quant_dtype");
    const auto m = rows.whole("m"), k = rows.whole("k");
    for (std::size_t row = 0; row < rows.size(); ++row)
      points[std::string(type[row])].push_back({{m[row], k[row]}, rows.sample(row)});
  });
  return grids(std::move(points), {.axes = 2});
}

}  // namespace servecast::perf
