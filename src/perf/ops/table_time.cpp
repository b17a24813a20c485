// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/table_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "perf/ops/estimator.hpp"
#include "perf/ops/sol_internal.hpp"

namespace servecast::perf {
namespace {

using detail::real;

constexpr double kAround = 1.1;  // kernels around attention cost a tenth more than their bytes say
constexpr std::int64_t kSmallBatchTokens = 128;
constexpr std::int64_t kSmoothingSamples = 5;  // lengths over which decode attention is averaged
constexpr double kSmoothingSpread = 0.1;

OpTime measured(const Sample& sample) {
  return {sample.ms, sample.has_power() ? sample.watts * sample.ms : 0.0, TimeSource::Silicon};
}

std::string_view name(Quant quant) {
  return facts(quant).name;
}

std::int64_t stored_kv(std::int64_t heads, std::int64_t kv_heads) {
  return kv_heads == heads ? 0 : kv_heads;
}

template <class Slice>
const Slice* find(const Slices<Slice>& slices, std::string_view key) {
  const auto found = slices.find(key);
  return found == slices.end() ? nullptr : &found->second;
}

// Up to what group size a collective was measured, and that curve: beyond it its duration is scaled
// by the bound.
struct Widest {
  std::int64_t ranks = 0;
  const Curve* curve = nullptr;
};

Widest widest(const Slices<Curve>& slices, std::string_view prefix, std::int64_t wanted,
              std::int64_t cap) {
  Widest out;
  for (std::int64_t ranks = 2; ranks <= std::min(wanted, cap); ++ranks) {
    const std::string key = std::string(prefix) + std::to_string(ranks);
    if (const Curve* curve = find(slices, key)) out = {ranks, curve};
  }
  return out;
}

double group_ratio(const catalog::SystemCard& system, std::int64_t ranks, std::int64_t known) {
  if (ranks == known) return 1.0;
  return (real(ranks) - 1.0) / real(ranks) * real(known) / (real(known) - 1.0) *
         link_rate(system, known) / link_rate(system, ranks);
}

}  // namespace

std::string slice_of(const ContextAttention& op) {
  return slice_name({name(op.math), name(op.kv)},
                    {stored_kv(op.heads, op.kv_heads), op.head_dim, op.window});
}

std::string slice_of(const GenerationAttention& op) {
  return slice_name({name(op.kv)}, {stored_kv(op.heads, op.kv_heads), op.head_dim, op.window});
}

std::string slice_of(const EncoderAttention& op) {
  return slice_name({name(op.math)}, {op.head_dim});
}

std::string slice_of(const MlaContext& op) {
  return slice_name({name(op.math), name(op.kv), op.module ? name(op.gemm) : ""});
}

std::string slice_of(const MlaGeneration& op) {
  return slice_name({name(op.kv), op.module ? name(op.gemm) : ""});
}

std::string slice_of(const DsaModule& op) {
  const std::int64_t skips = op.skip_indexer ? 1 : 0;
  if (op.phase == Phase::Context)
    return slice_name({op.architecture, name(op.math), name(op.kv), name(op.gemm)}, {skips});
  return slice_name({op.architecture, name(op.kv), name(op.gemm)}, {skips});
}

std::string slice_of(const Experts& op, std::string_view distribution) {
  return slice_name({name(op.quant), distribution},
                    {op.topk, op.experts, op.hidden, op.inter, op.tp, op.ep});
}

std::string_view collective_name(Collective kind) {
  switch (kind) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::AllGather:
      return "all_gather";
    case Collective::ReduceScatter:
      return "reduce_scatter";
    case Collective::AllToAll:
      return "alltoall";
  }
  return "";
}

std::int64_t expert_tokens(const Experts& op, const OpShape& q) {
  const std::int64_t tokens = q.tokens * op.attention_dp;
  return op.balanced_by_copies ? tokens * 8 / 10 : tokens;
}

double around_attention_ms(const ContextAttention& op, const OpShape& q,
                           const catalog::SystemCard& system, bool parity, bool bound_only) {
  // Bytes of one token's queries and of its keys or values, in two-byte numbers.
  const double tokens = parity ? 1.0 : real(q.tokens);
  const double queries = tokens * real(op.heads * op.head_dim);
  const double keys = tokens * real(op.kv_heads * op.head_dim);
  const auto ms = [&](double bytes) {
    return bound_only ? detail::mem_ms(system, bytes) : memory_op_ms(system, bytes);
  };
  const double stored = bytes_of(op.math);
  double sum = 2.0 * ms(2.0 * queries + 2.0 * keys) + 2.0 * ms(keys * stored);
  if (op.qk_norm) sum += 2.0 * (2.0 * ms(2.0 * queries) + 2.0 * ms(2.0 * keys));
  return kAround * sum;
}

double TableTime::bound(const Op& op, const OpShape& q) const {
  const auto got = sol(op, q, system_);
  return got ? got->ms() : std::numeric_limits<double>::quiet_NaN();
}

namespace {

tl::unexpected<Miss> no_data(std::string_view table, std::string_view key,
                             const PerfDatabase& database) {
  return tl::unexpected(Miss{
      Miss::Kind::NoData,
      fmt::format("no measured data for {} of {} on {} {} {}", key, table, database.system().name,
                  to_string(database.version().engine), database.version().version)});
}

OpResult<OpTime> of(const std::optional<Sample>& sample, std::string_view table,
                    std::string_view key, const PerfDatabase& database) {
  if (!sample) return no_data(table, key, database);
  return measured(*sample);
}

}  // namespace

OpResult<OpTime> TableTime::time(const Gemm& op, const OpShape& q) const {
  if (op.quant == Quant::Fp8Static) return quantised_statically(op, q);
  const std::int64_t m = split_tokens(q.tokens, op.token_divisor, op.sequence_split);
  if (m == 0) return OpTime{};
  const Sites* sites = find(database_.gemm(Reach::All), name(op.quant));
  if (sites == nullptr) return no_data("gemm", name(op.quant), database_);
  const auto sample = sites->at({op.n, op.k}, real(m), [&](const SiteKey& key, double at) {
    return bound(Gemm{.n = key[0], .k = key[1], .quant = op.quant},
                 {.tokens = static_cast<std::int64_t>(at)});
  });
  return of(sample, "gemm", fmt::format("{}/{}/{}", name(op.quant), op.n, op.k), database_);
}

// Weights and activations in fp8 with a scale that is known before: what dynamic quantisation adds
// is taken off.
OpResult<OpTime> TableTime::quantised_statically(const Gemm& op, const OpShape& q) const {
  Gemm dynamic = op;
  dynamic.quant = Quant::Fp8;
  auto time = this->time(dynamic, q);
  if (!time) return time;
  const std::array<double, 2> at = {
      real(split_tokens(q.tokens, op.token_divisor, op.sequence_split)), real(op.k)};
  const auto taken = [&](const Slices<Grid>& slices, double bytes_each) {
    const Grid* grid = find(slices, name(Quant::Fp8));
    if (grid == nullptr && !slices.empty()) grid = &slices.begin()->second;
    if (grid == nullptr) return 0.0;
    const auto sample = grid->at(at, [&](std::span<const double> place) {
      return detail::mem_ms(system_, bytes_each * place[0] * place[1]);
    });
    return sample ? sample->ms : 0.0;
  };
  double less = taken(database_.compute_scale(Reach::All), 2.0);
  if (op.input_is_quantised) less += taken(database_.scale_matrix(Reach::All), 3.0);
  time->ms = std::max(time->ms - less, bound(op, q));
  time->source = TimeSource::Estimated;
  return time;
}

OpResult<OpTime> TableTime::time(const ContextAttention& op, const OpShape& q) const {
  const double full = q.length + q.prefix;
  if (q.batch == 0 || q.length == 0.0) return OpTime{};
  const std::string key = slice_of(op);
  const Grid* grid = find(database_.context_attention(Reach::All), key);
  if (grid == nullptr) return no_data("context_attention", key, database_);
  const std::array<double, 3> at = {real(op.heads), full, real(q.batch)};
  const bool as_many = op.kv_heads == op.heads;
  const auto sample = grid->at(at, [&](std::span<const double> place) {
    ContextAttention there = op;
    there.heads = static_cast<std::int64_t>(place[0]);
    if (as_many) there.kv_heads = there.heads;
    return bound(there, {.batch = static_cast<std::int64_t>(place[2]), .length = place[1]});
  });
  auto time = of(sample, "context_attention", key, database_);
  if (!time) return time;
  // Under a window work grows with the new tokens, not with the square; the public estimators do
  // not say so.
  const bool windowed = !parity_ && op.window > 0 && full > real(op.window);
  const double share =
      windowed ? q.length / full : (full * full - q.prefix * q.prefix) / (full * full);
  const OpTime around{around_attention_ms(op, q, system_, parity_, false), 0.0,
                      TimeSource::Empirical};
  return share * *time + around;
}

OpResult<OpTime> TableTime::time(const GenerationAttention& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const std::string key = slice_of(op);
  const Grid* grid = find(database_.generation_attention(Reach::All), key);
  if (grid == nullptr) return no_data("generation_attention", key, database_);
  const bool as_many = op.kv_heads == op.heads;
  const auto at_length = [&](double length) {
    const std::array<double, 3> at = {real(op.heads), real(q.batch), length};
    return grid->at(at, [&](std::span<const double> place) {
      GenerationAttention there = op;
      there.heads = static_cast<std::int64_t>(place[0]);
      if (as_many) there.kv_heads = there.heads;
      return bound(there, {.batch = static_cast<std::int64_t>(place[1]), .length = place[2]});
    });
  };
  if (!parity_) return of(at_length(q.length), "generation_attention", key, database_);
  const auto low =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(q.length * (1.0 - kSmoothingSpread)));
  const auto high = static_cast<std::int64_t>(q.length * (1.0 + kSmoothingSpread));
  OpTime sum;
  for (std::int64_t i = 0; i < kSmoothingSamples; ++i) {
    const std::int64_t length = low + (high - low) * i / (kSmoothingSamples - 1);
    const auto one = of(at_length(real(length)), "generation_attention", key, database_);
    if (!one) return one;
    sum = sum + *one;
  }
  return OpTime{sum.ms / kSmoothingSamples, sum.energy_mj / kSmoothingSamples, sum.source};
}

OpResult<OpTime> TableTime::time(const EncoderAttention& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const std::string key = slice_of(op);
  const Grid* grid = find(database_.encoder_attention(Reach::All), key);
  if (grid == nullptr) return no_data("encoder_attention", key, database_);
  const std::array<double, 3> at = {real(op.heads), q.length, real(q.batch)};
  const auto sample = grid->at(at, [&](std::span<const double> place) {
    EncoderAttention there = op;
    there.heads = static_cast<std::int64_t>(place[0]);
    return bound(there, {.batch = static_cast<std::int64_t>(place[2]), .length = place[1]});
  });
  return of(sample, "encoder_attention", key, database_);
}

OpResult<OpTime> TableTime::time(const MlaContext& op, const OpShape& q) const {
  if (q.batch == 0 || q.length == 0.0) return OpTime{};
  const char* table = op.module ? "mla_context_module" : "context_mla";
  const std::string key = slice_of(op);
  const Grid* grid = find(database_.mla_context(Reach::All, op.module), key);
  if (grid == nullptr) return no_data(table, key, database_);
  const double full = q.length + q.prefix;
  const std::array<double, 3> at = {real(op.heads), full, real(q.batch)};
  const auto sample = grid->at(at, [&](std::span<const double> place) {
    MlaContext there = op;
    there.heads = static_cast<std::int64_t>(place[0]);
    return bound(there, {.batch = static_cast<std::int64_t>(place[2]), .length = place[1]});
  });
  auto time = of(sample, table, key, database_);
  if (!time) return time;
  return (full * full - q.prefix * q.prefix) / (full * full) * *time;
}

OpResult<OpTime> TableTime::time(const MlaGeneration& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const char* table = op.module ? "mla_generation_module" : "generation_mla";
  const std::string key = slice_of(op);
  const Grid* grid = find(database_.mla_generation(Reach::All, op.module), key);
  if (grid == nullptr) return no_data(table, key, database_);
  const std::array<double, 3> at = {real(op.heads), real(q.batch), q.length};
  const auto sample = grid->at(at, [&](std::span<const double> place) {
    MlaGeneration there = op;
    there.heads = static_cast<std::int64_t>(place[0]);
    return bound(there, {.batch = static_cast<std::int64_t>(place[1]), .length = place[2]});
  });
  return of(sample, table, key, database_);
}

// Head counts that are no power of two use the next one's curve, in proportion.
OpResult<OpTime> TableTime::time(const MlaBmm& op, const OpShape& q) const {
  if (q.tokens == 0) return OpTime{};
  std::int64_t heads = 1;
  while (heads < op.heads) heads *= 2;
  const std::string key = slice_name({name(op.quant), op.pre ? "pre" : "post"}, {heads});
  const Curve* curve = find(database_.mla_bmm(Reach::All), key);
  if (curve == nullptr) return no_data("mla_bmm", key, database_);
  const auto sample = curve->at(real(q.tokens), [&](double at) {
    return bound(MlaBmm{heads, op.quant, op.pre}, {.tokens = static_cast<std::int64_t>(at)});
  });
  auto time = of(sample, "mla_bmm", key, database_);
  if (!time) return time;
  return real(op.heads) / real(heads) * *time;
}

OpResult<OpTime> TableTime::time(const DsaModule& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const bool context = op.phase == Phase::Context;
  const char* table = context ? "dsa_context_module" : "dsa_generation_module";
  const std::string key = slice_of(op);
  const Grid* grid =
      find(context ? database_.dsa_context(Reach::All) : database_.dsa_generation(Reach::All), key);
  if (grid == nullptr) return no_data(table, key, database_);
  const auto at_place = [&](std::span<const double> place) {
    DsaModule there = op;
    there.heads = static_cast<std::int64_t>(place[0]);
    const double batch = context ? place[3] : place[1];
    OpShape shape{.batch = static_cast<std::int64_t>(batch), .length = place[2]};
    if (context) shape.prefix = place[1];
    return bound(there, shape);
  };
  const std::array<double, 4> prefill = {real(op.heads), q.prefix, q.length, real(q.batch)};
  const std::array<double, 3> decode = {real(op.heads), real(q.batch), q.length};
  const auto sample = context ? grid->at(prefill, at_place) : grid->at(decode, at_place);
  return of(sample, table, key, database_);
}

OpResult<OpTime> TableTime::time(const Experts& op, const OpShape& q) const {
  const std::int64_t tokens = expert_tokens(op, q);
  if (tokens == 0) return OpTime{};
  const std::string key = slice_of(op, op.distribution);
  const Curve* curve = nullptr;
  if (op.quant == Quant::Nvfp4 && op.gated && tokens <= kSmallBatchTokens)
    curve = find(database_.experts(Reach::All, true), key);
  if (curve == nullptr) curve = find(database_.experts(Reach::All, false), key);
  if (curve == nullptr) curve = find(database_.experts(Reach::All, false), slice_of(op, "uniform"));
  const bool single = curve != nullptr && curve->points().size() == 1;
  if (curve == nullptr || (single && tokens < curve->points().front().at))
    return no_data("moe", key, database_);
  Experts gathered = op;
  gathered.attention_dp = 1;
  const auto sample = curve->at(real(tokens), [&](double at) {
    return bound(gathered, {.tokens = static_cast<std::int64_t>(at)});
  });
  return of(sample, "moe", key, database_);
}

OpResult<OpTime> TableTime::time(const CustomAllReduce& op, const OpShape& q) const {
  if (op.ranks <= 1 || q.tokens == 0) return OpTime{};
  const auto& slices = database_.all_reduce(Reach::All);
  const Widest known = widest(slices, "", op.ranks, system_.gpus_per_node);
  if (known.curve == nullptr)
    return no_data("custom_allreduce", fmt::format("{} ranks", op.ranks), database_);
  const auto sample =
      known.curve->at(real(q.tokens) * real(op.width), [](double size) { return size; });
  auto time = of(sample, "custom_allreduce", std::to_string(op.ranks), database_);
  if (!time) return time;
  return group_ratio(system_, op.ranks, known.ranks) * *time;
}

OpResult<OpTime> TableTime::time(const Nccl& op, const OpShape& q) const {
  if (op.ranks <= 1 || q.tokens == 0) return OpTime{};
  const std::string prefix = slice_name({name(op.quant), collective_name(op.kind)}) + "/";
  const Widest known = widest(database_.nccl(), prefix, op.ranks, op.ranks);
  if (known.curve == nullptr) return no_data("nccl", prefix + std::to_string(op.ranks), database_);
  const auto sample =
      known.curve->at(real(q.tokens) * real(op.width), [](double size) { return size; });
  auto time = of(sample, "nccl", prefix, database_);
  if (!time) return time;
  return group_ratio(system_, op.ranks, known.ranks) * *time;
}

}  // namespace servecast::perf
