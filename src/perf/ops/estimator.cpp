// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/estimator.hpp"

#include <type_traits>

#include "base/check.hpp"
#include "perf/ops/empirical_time.hpp"
#include "perf/ops/sol_internal.hpp"
#include "perf/ops/table_time.hpp"

namespace servecast::perf {
namespace {

// Kinds without a table: priced by bytes in every mode.
template <class T>
concept MemoryBound = std::is_same_v<T, Elementwise> || std::is_same_v<T, Embedding>;
template <class T>
concept Kernel =
    std::is_same_v<T, Mamba2Kernel> || std::is_same_v<T, GdnKernel> || std::is_same_v<T, KdaKernel>;
}  // namespace

struct Estimator::Learned {
  TableTime table;
  EmpiricalTime empirical;
};

double memory_op_ms(const catalog::SystemCard& system, double bytes) {
  const double rate = static_cast<double>(system.memory_bytes_per_s) * system.memory_efficiency;
  return (bytes / rate + system.memory_latency_s) * 1000.0;
}

Estimator::Estimator(catalog::SystemCard system, EstimatorSettings settings,
                     std::shared_ptr<const PerfDatabase> database)
    : system_(std::move(system)), settings_(settings), database_(std::move(database)) {
  SERVECAST_CHECK(database_ != nullptr || settings_.mode == DataMode::Sol);
  if (database_)
    learned_.reset(
        new Learned{{system_, *database_, settings_.parity}, {system_, *database_, settings_}});
}

Estimator::~Estimator() = default;

OpResult<OpTime> Estimator::time(const Op& op, const OpShape& shape) const {
  return with(settings_.mode, op, shape);
}

OpResult<OpTime> Estimator::time(const OpStep& step, const OpShape& shape) const {
  return list_with(settings_.mode, {step}, shape);
}

OpResult<OpTime> Estimator::time(const OpList& list, const OpShape& shape) const {
  return list_with(settings_.mode, list, shape);
}

OpResult<OpTime> Estimator::list_with(DataMode mode, const OpList& list,
                                      const OpShape& shape) const {
  OpTime sum;
  for (const OpStep& step : list) {
    OpShape seen = shape;
    if (step.tokens == TokensFrom::Sequences) seen.tokens = shape.batch;
    const auto one = with(mode, step.op, seen);
    if (!one) return one;
    sum = sum + step.scale * *one;
  }
  return sum;
}

// In hybrid mode the primary is asked of tables alone, so that finer measured operators win over a
// formula.
OpResult<OpTime> Estimator::fallback(const Fallback& op, const OpShape& shape) const {
  if (settings_.mode != DataMode::Table && settings_.mode != DataMode::Hybrid)
    return list_with(settings_.mode, op.primary, shape);
  const auto primary = list_with(DataMode::Table, op.primary, shape);
  if (primary || primary.error().kind != Miss::Kind::NoData) return primary;
  const auto secondary = list_with(settings_.mode, op.secondary, shape);
  if (secondary || settings_.mode == DataMode::Table) return secondary;
  return list_with(DataMode::Empirical, op.primary, shape);
}

OpResult<OpTime> Estimator::with(DataMode mode, const Op& op, const OpShape& shape) const {
  const auto bound = [&]() -> OpResult<OpTime> {
    return sol(op, shape, system_).map([](const Sol& s) {
      return OpTime{s.ms(), 0.0, TimeSource::Sol};
    });
  };
  return std::visit(
      [&](const auto& one) -> OpResult<OpTime> {
        using T = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<T, Overlap>) {
          const auto left = list_with(mode, one.left, shape);
          const auto right = list_with(mode, one.right, shape);
          if (!left) return left;
          if (!right) return right;
          return overlapped(*left, *right);
        } else if constexpr (std::is_same_v<T, Fallback>) {
          return fallback(one, shape);
        } else if constexpr (std::is_same_v<T, Dispatch>) {
          const auto parts = parts_of(one, system_);
          if (!parts) return tl::unexpected(parts.error());
          OpTime sum;
          for (const Op& part : *parts) {
            const auto time = with(mode, part, shape);
            if (!time) return time;
            sum = sum + *time;
          }
          return sum;
        } else if constexpr (MemoryBound<T>) {
          if (mode == DataMode::Sol || shape.tokens == 0) return bound();
          const double bytes = detail::sol(one, shape, system_)->mem_ms / 1000.0 *
                               static_cast<double>(system_.memory_bytes_per_s);
          return OpTime{memory_op_ms(system_, bytes), 0.0, TimeSource::Empirical};
        } else if constexpr (std::is_same_v<T, PeerToPeer>) {
          auto time = bound();
          if (mode == DataMode::Sol || shape.tokens == 0) return time;
          return OpTime{time->ms + system_.peer_latency_s * 1000.0, 0.0, TimeSource::Empirical};
        } else if constexpr (Kernel<T>) {
          return bound();
        } else {
          if (mode == DataMode::Sol) {
            auto time = bound();
            if constexpr (std::is_same_v<T, ContextAttention>) {
              if (time && shape.batch > 0)
                time->ms += around_attention_ms(one, shape, system_, settings_.parity, true);
            }
            return time;
          }
          // A precision without a rate is refused before any table is asked: no mode helps.
          if (const auto possible = sol(op, shape, system_); !possible)
            return tl::unexpected(possible.error());
          if (mode == DataMode::Empirical) return learned_->empirical.time(one, shape);
          const auto measured = learned_->table.time(one, shape);
          const bool missed = !measured && measured.error().kind == Miss::Kind::NoData;
          if (!missed || mode == DataMode::Table) return measured;
          return learned_->empirical.time(one, shape);
        }
      },
      op);
}

}  // namespace servecast::perf
