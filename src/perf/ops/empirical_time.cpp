// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/empirical_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "perf/ops/levels.hpp"
#include "perf/ops/sol_internal.hpp"
#include "perf/ops/table_time.hpp"

namespace servecast::perf {
namespace {

using detail::real;

double bound_ms(const Op& op, const OpShape& q, const catalog::SystemCard& system) {
  const auto got = sol(op, q, system);
  return got ? got->ms() : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t whole(double x) {
  return static_cast<std::int64_t>(x);
}

template <class Slice>
const Slice* find(const Slices<Slice>& slices, std::string_view key) {
  const auto found = slices.find(key);
  return found == slices.end() ? nullptr : &found->second;
}

// The numbers that a slice's name ends with.
template <std::size_t N>
std::optional<std::array<double, N>> numbers_of(std::string_view name) {
  std::array<double, N> out{};
  for (std::size_t i = N; i > 0; --i) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const std::string_view word = name.substr(slash + 1);
    if (std::from_chars(word.data(), word.data() + word.size(), out[i - 1]).ec != std::errc())
      return std::nullopt;
    name = name.substr(0, slash);
  }
  return out;
}

}  // namespace

const UtilGrid* EmpiricalTime::known(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = grids_.find(name);
  if (found == grids_.end()) return nullptr;
  return &found->second;
}

const UtilGrid* EmpiricalTime::keep(const std::string& name, std::size_t axes,
                                    std::vector<UtilGrid::Point> points) const {
  const std::lock_guard lock(mutex_);
  return &grids_.try_emplace(name, axes, std::move(points)).first->second;
}

const UtilGrid* EmpiricalTime::learned(const std::string& name, const Grid& grid, std::size_t axes,
                                       const BoundOf& bound) const {
  const UtilGrid* found = known(name);
  if (found == nullptr) {
    std::vector<UtilGrid::Point> points;
    for (const GridPoint& point : grid.points()) {
      UtilGrid::Point one;
      for (std::size_t a = 0; a < axes; ++a) one.at[a] = real(point.at[a]);
      one.util = bound(std::span(one.at).first(axes)) / point.sample.ms;
      if (usable(one.util)) points.push_back(one);
    }
    found = keep(name, axes, std::move(points));
  }
  return found->empty() ? nullptr : found;
}

const UtilGrid* EmpiricalTime::learned(const std::string& name, const Curve& curve,
                                       const BoundOf& bound) const {
  const UtilGrid* found = known(name);
  if (found == nullptr) {
    std::vector<UtilGrid::Point> points;
    for (const CurvePoint& point : curve.points()) {
      UtilGrid::Point one;
      one.at[0] = real(point.at);
      one.util = bound(std::span(one.at).first(1)) / point.sample.ms;
      if (usable(one.util)) points.push_back(one);
    }
    found = keep(name, 1, std::move(points));
  }
  return found->empty() ? nullptr : found;
}

const UtilGrid* EmpiricalTime::learned(Quant quant, const Sites& sites) const {
  const std::string name = "gemm/" + std::string(facts(quant).name);
  const UtilGrid* found = known(name);
  if (found == nullptr) {
    std::vector<UtilGrid::Point> points;
    for (const Site& site : sites.sites()) {
      for (const CurvePoint& point : site.curve.points()) {
        const Gemm op{.n = site.key[0], .k = site.key[1], .quant = quant};
        const double util = bound_ms(op, {.tokens = point.at}, system_) / point.sample.ms;
        if (usable(util))
          points.push_back({{real(point.at), real(site.key[0]), real(site.key[1])}, util});
      }
    }
    found = keep(name, 3, std::move(points));
  }
  return found->empty() ? nullptr : found;
}

OpResult<OpTime> EmpiricalTime::at(const Op& op, const OpShape& q, std::optional<double> util,
                                   const std::string& what) const {
  const auto bound = sol(op, q, system_);
  if (!bound) return tl::unexpected(bound.error());
  if (!util)
    return tl::unexpected(
        Miss{Miss::Kind::NoEmpirical,
             fmt::format("nothing to learn the efficiency of {} on {} from", what, system_.name)});
  return OpTime{bound->ms() / *util, 0.0, TimeSource::Empirical};
}

std::optional<double> EmpiricalTime::gemm_util(Quant quant, std::span<const double> at) const {
  const auto& slices = database_.gemm(Reach::Own);
  if (const Sites* own = find(slices, facts(quant).name)) {
    if (const UtilGrid* grid = learned(quant, *own)) return grid->at(at);
  }
  if (settings_.transfer != Transfer::ShapeAndPrecision) return std::nullopt;
  // The measured mode that is nearest in rate, then in bytes; its efficiency in proportion to the
  // usual ones.
  std::vector<Quant> others;
  for (const auto& [name, sites] : slices) {
    if (const auto other = quant_from(name)) others.push_back(*other);
  }
  const auto far = [&](Quant other) {
    return std::pair(std::abs(facts(other).compute - facts(quant).compute),
                     std::abs(facts(other).bytes - facts(quant).bytes));
  };
  std::stable_sort(others.begin(), others.end(), [&](Quant a, Quant b) { return far(a) < far(b); });
  for (const Quant other : others) {
    const UtilGrid* grid = learned(other, *find(slices, facts(other).name));
    if (grid != nullptr) return grid->at(at) * gemm_level(quant) / gemm_level(other);
  }
  return std::nullopt;
}

OpResult<OpTime> EmpiricalTime::time(const Gemm& op, const OpShape& q) const {
  const std::int64_t m = split_tokens(q.tokens, op.token_divisor, op.sequence_split);
  if (m == 0) return OpTime{};
  const std::array<double, 3> place = {real(m), real(op.n), real(op.k)};
  return at(op, q, gemm_util(op.quant, place),
            fmt::format("gemm {}/{}/{}", facts(op.quant).name, op.n, op.k));
}

OpResult<OpTime> EmpiricalTime::time(const ContextAttention& op, const OpShape& q) const {
  if (q.batch == 0 || q.length == 0.0) return OpTime{};
  const auto& slices = database_.context_attention(Reach::Own);
  const bool as_many = op.kv_heads == op.heads;
  std::optional<double> util;
  const auto ask = [&](const ContextAttention& like) {
    const std::string name = slice_of(like);
    const Grid* slice = find(slices, name);
    if (slice == nullptr) return false;
    const auto bound = [&](std::span<const double> at) {
      ContextAttention there = like;
      there.heads = whole(at[0]);
      if (as_many) there.kv_heads = there.heads;
      return bound_ms(there, {.batch = whole(at[2]), .length = at[1]}, system_);
    };
    const UtilGrid* grid = learned("context_attention/" + name, *slice, 3, bound);
    if (grid == nullptr) return false;
    const std::array<double, 3> at = {real(op.heads), q.length + q.prefix, real(q.batch)};
    util = grid->at(at);
    return true;
  };
  ContextAttention like = op;
  bool found = ask(like);
  if (!found && settings_.transfer != Transfer::Off) {
    like.window = 0;
    found = ask(like);
    if (!found) {
      like.head_dim = kReferenceHead;
      found = ask(like);
      if (found)
        *util *= prefill_head_ratio(database_.version().engine, op.head_dim) /
                 prefill_head_ratio(database_.version().engine, kReferenceHead);
    }
  }
  const auto bare = at(op, q, util, "context_attention " + slice_of(op));
  if (!bare) return bare;
  return *bare + OpTime{around_attention_ms(op, q, system_, settings_.parity, false), 0.0,
                        TimeSource::Empirical};
}

OpResult<OpTime> EmpiricalTime::time(const GenerationAttention& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const auto& slices = database_.generation_attention(Reach::Own);
  const bool as_many = op.kv_heads == op.heads;
  std::optional<double> util;
  const auto ask = [&](const GenerationAttention& like) {
    const std::string name = slice_of(like);
    const Grid* slice = find(slices, name);
    if (slice == nullptr) return;
    const auto bound = [&](std::span<const double> at) {
      GenerationAttention there = like;
      there.heads = whole(at[0]);
      if (as_many) there.kv_heads = there.heads;
      return bound_ms(there, {.batch = whole(at[1]), .length = at[2]}, system_);
    };
    const UtilGrid* grid = learned("generation_attention/" + name, *slice, 3, bound);
    const std::array<double, 3> at = {real(op.heads), real(q.batch), q.length};
    if (grid != nullptr) util = grid->at(at);
  };
  GenerationAttention like = op;
  ask(like);
  if (settings_.transfer != Transfer::Off) {
    like.window = 0;
    if (!util) ask(like);
    like.head_dim = kReferenceHead;
    if (!util) ask(like);
  }
  return at(op, q, util, "generation_attention " + slice_of(op));
}

OpResult<OpTime> EmpiricalTime::time(const EncoderAttention& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const std::string name = slice_of(op);
  std::optional<double> util;
  if (const Grid* slice = find(database_.encoder_attention(Reach::Own), name)) {
    const UtilGrid* grid =
        learned("encoder_attention/" + name, *slice, 3, [&](std::span<const double> at) {
          EncoderAttention there = op;
          there.heads = whole(at[0]);
          return bound_ms(there, {.batch = whole(at[2]), .length = at[1]}, system_);
        });
    const std::array<double, 3> at = {real(op.heads), q.length, real(q.batch)};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, "encoder_attention " + name);
}

OpResult<OpTime> EmpiricalTime::time(const MlaContext& op, const OpShape& q) const {
  if (q.batch == 0 || q.length == 0.0) return OpTime{};
  const std::string name = slice_of(op);
  const std::string table = op.module ? "mla_context_module/" : "context_mla/";
  std::optional<double> util;
  if (const Grid* slice = find(database_.mla_context(Reach::Own, op.module), name)) {
    const UtilGrid* grid = learned(table + name, *slice, 3, [&](std::span<const double> at) {
      MlaContext there = op;
      there.heads = whole(at[0]);
      return bound_ms(there, {.batch = whole(at[2]), .length = at[1]}, system_);
    });
    const std::array<double, 3> at = {real(op.heads), q.length + q.prefix, real(q.batch)};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, table + name);
}

OpResult<OpTime> EmpiricalTime::time(const MlaGeneration& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const std::string name = slice_of(op);
  const std::string table = op.module ? "mla_generation_module/" : "generation_mla/";
  std::optional<double> util;
  if (const Grid* slice = find(database_.mla_generation(Reach::Own, op.module), name)) {
    const UtilGrid* grid = learned(table + name, *slice, 3, [&](std::span<const double> at) {
      MlaGeneration there = op;
      there.heads = whole(at[0]);
      return bound_ms(there, {.batch = whole(at[1]), .length = at[2]}, system_);
    });
    const std::array<double, 3> at = {real(op.heads), real(q.batch), q.length};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, table + name);
}

OpResult<OpTime> EmpiricalTime::time(const MlaBmm& op, const OpShape& q) const {
  if (q.tokens == 0) return OpTime{};
  std::int64_t heads = 1;
  while (heads < op.heads) heads *= 2;
  const std::string name = slice_name({facts(op.quant).name, op.pre ? "pre" : "post"}, {heads});
  std::optional<double> util;
  if (const Curve* curve = find(database_.mla_bmm(Reach::Own), name)) {
    const UtilGrid* grid = learned("mla_bmm/" + name, *curve, [&](std::span<const double> at) {
      return bound_ms(MlaBmm{heads, op.quant, op.pre}, {.tokens = whole(at[0])}, system_);
    });
    const std::array<double, 1> at = {real(q.tokens)};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, "mla_bmm " + name);
}

OpResult<OpTime> EmpiricalTime::time(const DsaModule& op, const OpShape& q) const {
  if (q.batch == 0) return OpTime{};
  const bool context = op.phase == Phase::Context;
  const std::string name = slice_of(op);
  const std::string table = context ? "dsa_context_module/" : "dsa_generation_module/";
  std::optional<double> util;
  const Grid* slice = find(
      context ? database_.dsa_context(Reach::Own) : database_.dsa_generation(Reach::Own), name);
  if (slice != nullptr) {
    const UtilGrid* grid =
        learned(table + name, *slice, context ? 4 : 3, [&](std::span<const double> at) {
          DsaModule there = op;
          there.heads = whole(at[0]);
          OpShape shape{.batch = whole(context ? at[3] : at[1]), .length = at[2]};
          if (context) shape.prefix = at[1];
          return bound_ms(there, shape, system_);
        });
    const std::array<double, 4> prefill = {real(op.heads), q.prefix, q.length, real(q.batch)};
    const std::array<double, 3> decode = {real(op.heads), real(q.batch), q.length};
    if (grid != nullptr) util = context ? grid->at(prefill) : grid->at(decode);
  }
  return at(op, q, util, table + name);
}

std::optional<double> EmpiricalTime::expert_util(const Experts& op, double tokens) const {
  const auto& slices = database_.experts(Reach::Own, false);
  std::string name = slice_of(op, op.distribution);
  const Curve* curve = find(slices, name);
  if (curve == nullptr) {
    name = slice_of(op, "uniform");
    curve = find(slices, name);
  }
  if (curve == nullptr) return std::nullopt;
  Experts gathered = op;
  gathered.attention_dp = 1;
  const UtilGrid* grid = learned("moe/" + name, *curve, [&](std::span<const double> at) {
    return bound_ms(gathered, {.tokens = whole(at[0])}, system_);
  });
  const std::array<double, 1> at = {tokens};
  if (grid == nullptr) return std::nullopt;
  return grid->at(at);
}

// The measured experts whose shape is nearest in normalised logarithms; the first of equally near
// ones.
std::optional<double> EmpiricalTime::nearest_expert_util(const Experts& op, double tokens) const {
  using Features = std::array<double, 6>;
  const std::string prefix = slice_name({facts(op.quant).name, op.distribution}) + "/";
  std::vector<Features> candidates;
  for (const auto& [name, curve] : database_.experts(Reach::Own, false)) {
    if (!name.starts_with(prefix)) continue;
    if (const auto numbers = numbers_of<6>(name)) candidates.push_back(*numbers);
  }
  const auto logarithm = [](double x) { return std::log(std::max(x, 1e-9)); };
  const Features query = {real(op.topk),  real(op.experts), real(op.hidden),
                          real(op.inter), real(op.tp),      real(op.ep)};
  const Features* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  Features low{}, high{};
  for (std::size_t a = 0; a < query.size(); ++a) {
    low[a] = std::numeric_limits<double>::infinity();
    high[a] = -low[a];
    for (const Features& one : candidates) {
      low[a] = std::min(low[a], logarithm(one[a]));
      high[a] = std::max(high[a], logarithm(one[a]));
    }
  }
  for (const Features& one : candidates) {
    double squared = 0.0;
    for (std::size_t a = 0; a < query.size(); ++a) {
      if (high[a] <= low[a]) continue;
      const double apart = (logarithm(one[a]) - logarithm(query[a])) / (high[a] - low[a]);
      squared += apart * apart;
    }
    if (squared < least) {
      least = squared;
      nearest = &one;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  Experts like = op;
  like.topk = whole((*nearest)[0]);
  like.experts = whole((*nearest)[1]);
  like.hidden = whole((*nearest)[2]);
  like.inter = whole((*nearest)[3]);
  like.tp = whole((*nearest)[4]);
  like.ep = whole((*nearest)[5]);
  return expert_util(like, tokens);
}

OpResult<OpTime> EmpiricalTime::time(const Experts& op, const OpShape& q) const {
  const std::int64_t tokens = expert_tokens(op, q);
  if (tokens == 0) return OpTime{};
  Experts gathered = op;
  gathered.attention_dp = 1;
  const OpShape shape{.tokens = tokens};
  auto util = expert_util(op, real(tokens));
  if (!util && settings_.transfer != Transfer::Off) util = nearest_expert_util(op, real(tokens));
  if (!util && settings_.transfer == Transfer::ShapeAndPrecision) {
    std::vector<Quant> others;
    for (const auto& [name, curve] : database_.experts(Reach::Own, false)) {
      const auto other = quant_from(name.substr(0, name.find('/')));
      if (other && (others.empty() || others.back() != *other)) others.push_back(*other);
    }
    const auto far = [&](Quant other) {
      return std::abs(facts(other).compute - facts(op.quant).compute) +
             std::abs(facts(other).bytes - facts(op.quant).bytes);
    };
    std::stable_sort(others.begin(), others.end(),
                     [&](Quant a, Quant b) { return far(a) < far(b); });
    for (const Quant other : others) {
      Experts like = op;
      like.quant = other;
      util = expert_util(like, real(tokens));
      if (!util) util = nearest_expert_util(like, real(tokens));
      if (!util) continue;
      *util *= expert_level(op.quant) / expert_level(other);
      break;
    }
  }
  return at(gathered, shape, util, "moe " + slice_of(op, op.distribution));
}

namespace {

// Beyond the groups that were measured: the efficiency of the largest one.
template <class Make>
std::pair<std::int64_t, const Curve*> largest(const Slices<Curve>& slices, std::int64_t ranks,
                                              const Make& name) {
  std::pair<std::int64_t, const Curve*> out{0, nullptr};
  for (std::int64_t n = 2; n <= ranks; ++n) {
    if (const Curve* curve = find(slices, name(n))) out = {n, curve};
  }
  return out;
}

}  // namespace

OpResult<OpTime> EmpiricalTime::time(const CustomAllReduce& op, const OpShape& q) const {
  if (op.ranks <= 1 || q.tokens == 0) return OpTime{};
  const auto [ranks, curve] = largest(database_.all_reduce(Reach::Own), op.ranks,
                                      [](std::int64_t n) { return std::to_string(n); });
  std::optional<double> util;
  if (curve != nullptr) {
    const CustomAllReduce there{.ranks = ranks, .width = 1};
    const UtilGrid* grid = learned("custom_allreduce/" + std::to_string(ranks), *curve,
                                   [&](std::span<const double> at) {
                                     return bound_ms(there, {.tokens = whole(at[0])}, system_);
                                   });
    const std::array<double, 1> at = {real(q.tokens) * real(op.width)};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, fmt::format("custom_allreduce of {} ranks", op.ranks));
}

OpResult<OpTime> EmpiricalTime::time(const Nccl& op, const OpShape& q) const {
  if (op.ranks <= 1 || q.tokens == 0) return OpTime{};
  const auto name_of = [&](std::int64_t n) {
    return slice_name({facts(op.quant).name, collective_name(op.kind)}, {n});
  };
  const auto [ranks, curve] = largest(database_.nccl(), op.ranks, name_of);
  std::optional<double> util;
  if (curve != nullptr) {
    Nccl there = op;
    there.ranks = ranks;
    there.width = 1;
    const UtilGrid* grid =
        learned("nccl/" + name_of(ranks), *curve, [&](std::span<const double> at) {
          return bound_ms(there, {.tokens = whole(at[0])}, system_);
        });
    const std::array<double, 1> at = {real(q.tokens) * real(op.width)};
    if (grid != nullptr) util = grid->at(at);
  }
  return at(op, q, util, "nccl " + name_of(op.ranks));
}

}  // namespace servecast::perf
