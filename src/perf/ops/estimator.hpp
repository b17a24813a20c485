// SPDX-License-Identifier: Apache-2.0
// How long operators take: from tables, from bounds and learned efficiencies, or from bounds alone
// (perfmodel.md 5).
//
//   Estimator estimator(system, {.mode = DataMode::Hybrid}, database);
//   auto time = estimator.time(Gemm{.n = 4096, .k = 4096}, {.tokens = 512});
#pragma once

#include <memory>

#include "perf/ops/op_time.hpp"
#include "perf/ops/sol.hpp"
#include "perf/table/database.hpp"

namespace servecast::perf {

enum class DataMode : std::uint8_t {
  Table,      // measured; an operator without a table is a miss
  Hybrid,     // measured where there is a table, else Empirical
  Empirical,  // the bound divided by what share of it the own table reaches
  Sol,        // the bound alone; needs no tables
};

// What an efficiency may be learned from when an operator has no measurements of its own
// (perfmodel.md 5.2).
enum class Transfer : std::uint8_t { Off, Shape, ShapeAndPrecision };

struct EstimatorSettings {
  DataMode mode = DataMode::Table;
  Transfer transfer = Transfer::ShapeAndPrecision;
  // The numbers of the public estimators, oddities included: kernels around attention are priced
  // for one token, and decode attention is smoothed over a spread of lengths. Otherwise for all
  // tokens, at the exact length.
  bool parity = false;
};

class Estimator {
 public:
  // requires: a database of the same system unless mode is Sol.
  Estimator(catalog::SystemCard system, EstimatorSettings settings,
            std::shared_ptr<const PerfDatabase> database = nullptr);
  ~Estimator();

  OpResult<OpTime> time(const Op& op, const OpShape& shape) const;
  // With the step's scale, and sequences for tokens where it asks for them.
  OpResult<OpTime> time(const OpStep& step, const OpShape& shape) const;
  OpResult<OpTime> time(const OpList& list, const OpShape& shape) const;

  const catalog::SystemCard& system() const { return system_; }
  const EstimatorSettings& settings() const { return settings_; }

 private:
  struct Learned;
  OpResult<OpTime> fallback(const Fallback& op, const OpShape& shape) const;
  OpResult<OpTime> with(DataMode mode, const Op& op, const OpShape& shape) const;
  OpResult<OpTime> list_with(DataMode mode, const OpList& list, const OpShape& shape) const;

  catalog::SystemCard system_;
  EstimatorSettings settings_;
  std::shared_ptr<const PerfDatabase> database_;
  std::unique_ptr<Learned> learned_;
};

// A memory-bound operator at the share of bandwidth that such operators reach, with its fixed cost.
double memory_op_ms(const catalog::SystemCard& system, double bytes);

}  // namespace servecast::perf
