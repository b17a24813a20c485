// SPDX-License-Identifier: Apache-2.0
// Operators as their physical bound divided by the share of it that measurements of the same engine
// version reach, or, where the very operator was not measured, of one like it
// (perfmodel.md 5.1, 5.2).
#pragma once

#include <map>
#include <mutex>

#include "perf/ops/estimator.hpp"
#include "perf/table/util_grid.hpp"

namespace servecast::perf {

class EmpiricalTime {
 public:
  EmpiricalTime(const catalog::SystemCard& system, const PerfDatabase& database,
                const EstimatorSettings& settings)
      : system_(system), database_(database), settings_(settings) {}

  OpResult<OpTime> time(const Gemm& op, const OpShape& q) const;
  OpResult<OpTime> time(const ContextAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const GenerationAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const EncoderAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaContext& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaGeneration& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaBmm& op, const OpShape& q) const;
  OpResult<OpTime> time(const DsaModule& op, const OpShape& q) const;
  OpResult<OpTime> time(const Experts& op, const OpShape& q) const;
  OpResult<OpTime> time(const CustomAllReduce& op, const OpShape& q) const;
  OpResult<OpTime> time(const Nccl& op, const OpShape& q) const;

 private:
  using BoundOf = std::function<double(std::span<const double>)>;
  // The utilisation of a slice, learned when it is first asked for; nothing where the slice has no
  // usable point.
  const UtilGrid* learned(const std::string& name, const Grid& grid, std::size_t axes,
                          const BoundOf& bound) const;
  const UtilGrid* learned(const std::string& name, const Curve& curve, const BoundOf& bound) const;
  const UtilGrid* learned(Quant quant, const Sites& sites) const;
  const UtilGrid* keep(const std::string& name, std::size_t axes,
                       std::vector<UtilGrid::Point> points) const;
  const UtilGrid* known(const std::string& name) const;

  OpResult<OpTime> at(const Op& op, const OpShape& q, std::optional<double> util,
                      const std::string& what) const;
  std::optional<double> gemm_util(Quant quant, std::span<const double> at) const;
  std::optional<double> expert_util(const Experts& op, double tokens) const;
  std::optional<double> nearest_expert_util(const Experts& op, double tokens) const;

  const catalog::SystemCard& system_;
  const PerfDatabase& database_;
  const EstimatorSettings& settings_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, UtilGrid, std::less<>> grids_;
};

}  // namespace servecast::perf
