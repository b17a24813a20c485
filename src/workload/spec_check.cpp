// SPDX-License-Identifier: Apache-2.0
#include "workload/spec_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/time.hpp"

namespace servecast::workload {
namespace {

// Turns of one synthetic session are held together, so their number has a limit.
constexpr std::uint32_t kTurnsMax = 100'000;
constexpr std::uint64_t kSessionsMax = UINT32_MAX - 1;

bool is_positive(double value) {
  return std::isfinite(value) && value > 0;
}

class Rules {
 public:
  // `value` is printed as the user wrote it; `rule` completes "must be".
  template <class T>
  void require(bool kept, std::string_view path, const T& value, std::string_view rule) {
    if (kept) return;
    problems_.push_back(
        {"workload.range", fmt::format("{} is {}: must be {}", path, value, rule), {}, ""});
  }
  void forbid(bool broken, std::string_view message, std::string_view hint) {
    if (broken)
      problems_.push_back({"workload.combination", std::string(message), {}, std::string(hint)});
  }
  void check_length(const std::string& path, const Length& length);
  void check_source(const SyntheticSource& source);
  void check_source(const SessionSource& source);
  void check_source(const TraceSource& source);
  void check_load(const Load& load, std::string_view rate);
  Problems take() { return std::move(problems_); }

 private:
  Problems problems_;
};

void Rules::check_length(const std::string& path, const Length& length) {
  if (length.kind == Length::Kind::Fixed) {
    require(length.fixed >= 1, path, length.fixed, "at least 1");
    return;
  }
  require(length.min >= 1, path + ".min", length.min, "at least 1");
  require(length.min <= length.max, path + ".min", length.min,
          fmt::format("at most {}.max, which is {}", path, length.max));
  if (length.kind == Length::Kind::Normal) {
    require(is_positive(length.mean), path + ".mean", length.mean, "positive and finite");
    require(std::isfinite(length.stddev) && length.stddev >= 0, path + ".stddev", length.stddev,
            "zero or more, and finite");
  }
  if (length.kind == Length::Kind::Lognormal) {
    require(is_positive(length.p50), path + ".p50", length.p50, "positive and finite");
    require(is_positive(length.p95) && length.p95 >= length.p50, path + ".p95", length.p95,
            fmt::format("finite and at least {}.p50, which is {}", path, length.p50));
  }
}

void Rules::check_source(const SyntheticSource& source) {
  check_length("traffic.source.input_tokens", source.input);
  check_length("traffic.source.output_tokens", source.output);
}

void Rules::check_source(const SessionSource& source) {
  check_length("traffic.source.new_input_tokens_per_turn", source.new_input);
  check_length("traffic.source.output_tokens_per_turn", source.output);
  require(source.turns >= 1 && source.turns <= kTurnsMax, "traffic.source.session.turns",
          source.turns, fmt::format("from 1 to {}", kTurnsMax));
  const double ratio = source.shared_prefix_ratio;
  require(ratio >= 0 && ratio <= 1, "traffic.source.session.shared_prefix_ratio", ratio,
          "from 0 to 1");
  require(
      !(ratio > 0) || source.prefix_groups > 0, "traffic.source.session.prefix_groups",
      source.prefix_groups,
      fmt::format("at least 1 because traffic.source.session.shared_prefix_ratio is {}", ratio));
  const double delay = source.inter_turn_delay_ms;
  require(delay >= 0 && ns_from_ms(delay).has_value(), "traffic.source.session.inter_turn_delay_ms",
          delay, "zero or more, and within 146 years");
  require(source.block_size >= 1, "traffic.source.block_size", source.block_size, "at least 1");
}

void Rules::check_source(const TraceSource& source) {
  require(source.block_size >= 1, "traffic.source.block_size", source.block_size, "at least 1");
  forbid(source.format == TraceFormat::AzureCsv && source.start_as_given,
         "traffic.source.start is as_given: an azure_csv trace has calendar dates, not times since "
         "a start",
         "leave start out: the earliest row is then at time 0");
}

void Rules::check_load(const Load& load, std::string_view rate) {
  switch (load.kind) {
    case Load::Kind::Concurrency:
      require(load.concurrency >= 1, "traffic.load.concurrency", load.concurrency, "at least 1");
      return;
    case Load::Kind::Gamma:
      require(is_positive(load.smoothness), "traffic.load.smoothness", load.smoothness,
              "positive and finite");
      [[fallthrough]];
    case Load::Kind::Poisson:
    case Load::Kind::ConstantRate:
      require(is_positive(load.per_second), rate, load.per_second, "positive and finite");
      return;
    case Load::Kind::TraceTimestamps:
      require(is_positive(load.speedup), "traffic.load.speedup", load.speedup,
              "positive and finite");
      return;
    case Load::Kind::Burst:
      return;
  }
}

// The user's name of Stop::count.
std::string count_field(const Spec& spec) {
  return std::holds_alternative<SessionSource>(spec.source) ? "traffic.stop.sessions"
                                                            : "traffic.stop.requests";
}

std::string relative_count_field(const Spec& spec) {
  return count_field(spec) + "_per_load_unit";
}

// The load that a relative stop multiplies.
double load_units(const Load& load) {
  return load.kind == Load::Kind::Concurrency ? static_cast<double>(load.concurrency)
                                              : load.per_second;
}

}  // namespace

std::string_view rate_field(const Spec& spec) {
  return std::holds_alternative<SessionSource>(spec.source) ? "traffic.load.sessions_per_second"
                                                            : "traffic.load.requests_per_second";
}

Problems check_spec(const Spec& spec) {
  Rules rules;
  std::visit([&](const auto& source) { rules.check_source(source); }, spec.source);
  rules.check_load(spec.load, rate_field(spec));
  const Load::Kind kind = spec.load.kind;
  if (std::holds_alternative<TraceSource>(spec.source)) {
    rules.forbid(kind != Load::Kind::TraceTimestamps && kind != Load::Kind::Concurrency,
                 "traffic.load.type draws arrivals: a trace brings its own",
                 "use trace_timestamps or concurrency");
    rules.forbid(kind == Load::Kind::Concurrency && spec.load.speedup != 1,
                 "traffic.load.speedup needs traffic.load.type trace_timestamps",
                 "leave speedup out, or replay the trace's timestamps");
    return rules.take();
  }
  rules.forbid(kind == Load::Kind::TraceTimestamps,
               "traffic.load.type is trace_timestamps: a synthetic source has no timestamps",
               "use concurrency, poisson, constant_rate, gamma or burst");
  const Stop& stop = spec.stop;
  rules.forbid(stop.count.has_value() == stop.per_load_unit.has_value(),
               "traffic.stop needs either a count or a count per load unit",
               "for example requests: 100");
  if (stop.count) {
    rules.require(*stop.count >= 1 && *stop.count <= kSessionsMax, count_field(spec), *stop.count,
                  fmt::format("from 1 to {}", kSessionsMax));
  }
  if (stop.per_load_unit) {
    rules.require(is_positive(*stop.per_load_unit), relative_count_field(spec), *stop.per_load_unit,
                  "positive and finite");
    rules.forbid(
        kind == Load::Kind::Burst,
        "traffic.stop counts per load unit: traffic.load.type burst has no rate to multiply",
        "give the count itself");
  }
  return rules.take();
}

Result<std::uint32_t> resolve_count(const Spec& spec) {
  if (spec.stop.count) return static_cast<std::uint32_t>(*spec.stop.count);
  SERVECAST_CHECK(spec.stop.per_load_unit.has_value());
  // nearbyint rounds half to even: the floating-point environment is never changed.
  const double count =
      std::max(1.0, std::nearbyint(*spec.stop.per_load_unit * load_units(spec.load)));
  if (count > static_cast<double>(kSessionsMax)) {
    return fail({"workload.range",
                 fmt::format("{} is {}: times a load of {} that is {}, must be at most {}",
                             relative_count_field(spec), *spec.stop.per_load_unit,
                             load_units(spec.load), count, kSessionsMax),
                 {},
                 ""});
  }
  return static_cast<std::uint32_t>(count);
}

}  // namespace servecast::workload
