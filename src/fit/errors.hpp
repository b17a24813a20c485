// SPDX-License-Identifier: Apache-2.0
// How far predictions are from measurements: signed errors of rows, their statistics, by group.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/backtest.hpp"

namespace servecast::fit {

// What is compared. TTFT is the mean; TtftP50 counts only where a file has the median.
enum class Metric : std::uint8_t { Ttft, TtftP50, Tpot, E2e, Throughput };
inline constexpr std::array<Metric, 5> kMetrics{Metric::Ttft, Metric::TtftP50, Metric::Tpot,
                                                Metric::E2e, Metric::Throughput};
std::string_view to_string(Metric metric);  // "ttft", "ttft_p50", "tpot", "e2e", "throughput"

// Of one row, in ms or output tokens/s/GPU.
std::optional<double> measured_of(const RowResult& row, Metric metric);
std::optional<double> predicted_of(const RowResult& row, Metric metric);
// predicted / measured - 1, in percent; nothing where one of them is missing.
std::optional<double> error_percent(const RowResult& row, Metric metric);

// Of signed errors in percent. Quantiles interpolate between order statistics.
struct ErrorStats {
  std::size_t count = 0;
  double mape = 0, median_ape = 0, p90_ape = 0;  // of their sizes
  double bias = 0;                               // mean with sign
};
std::optional<ErrorStats> stats_of(const std::vector<double>& errors);

struct Tally {
  std::size_t rows = 0;       // all
  std::size_t counted = 0;    // in the denominator of coverage
  std::size_t predicted = 0;  // of them
  std::array<std::optional<ErrorStats>, kMetrics.size()> errors = {};  // by kMetrics

  // TTFT and TPOT with an interval, and how many measured ones lie inside.
  std::size_t intervals = 0, hits = 0;

  std::optional<double> coverage() const;           // predicted / counted
  std::optional<double> interval_hit_rate() const;  // hits / intervals
};

struct Group {
  std::string by = {}, value = {};  // "engine", "vllm"
  Tally tally = {};
};

struct Count {
  Status status = Status::Use;
  std::string reason = {};
  std::size_t rows = 0;
};

struct Summary {
  // Errors: rows of status Use and Special, without those whose concurrency is assumed.
  Tally all = {};
  Tally regular = {};              // of status Use
  Tally special = {};              // of status Special
  std::vector<Group> groups = {};  // model, system, engine, mode, concurrency; as `all`
  // Rows of any status but Use, by status and reason; names of twins are left out.
  std::vector<Count> left_out = {};
  std::size_t disaggregated = 0, assumed_pools = 0;  // exact repetitions not counted
};
Summary summarise(const Backtest& backtest);

}  // namespace servecast::fit
