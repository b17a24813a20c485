// SPDX-License-Identifier: Apache-2.0
// Tiny builders for this room's tests: requests from token times, totals that fit them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/report.hpp"

namespace servecast::report {

inline Time at_ms(double ms) {
  return {*ns_from_ms(ms)};
}

// a_request(3).arrives(10).tokens({50, 60}).input(32): completed, admitted at its arrival.
class RequestBuilder {
 public:
  explicit RequestBuilder(std::uint64_t ordinal) {
    record_.ordinal = ordinal;
    record_.session = static_cast<std::uint32_t>(ordinal);
    record_.first_admit = record_.arrival;
    record_.admissions = 1;
    record_.input_tokens = 1;
  }
  RequestBuilder& arrives(double ms) {
    record_.arrival = record_.first_admit = at_ms(ms);
    if (times_.empty()) record_.terminal = record_.arrival;
    return *this;
  }
  RequestBuilder& admitted(double ms) {
    record_.first_admit = at_ms(ms);
    return *this;
  }
  RequestBuilder& tokens(const std::vector<double>& times) {
    times_ = times;
    record_.output_tokens = static_cast<std::uint32_t>(times.size());
    record_.requested_output_tokens = record_.output_tokens;
    if (!times.empty()) {
      record_.first_token = at_ms(times.front());
      record_.last_token = record_.terminal = at_ms(times.back());
    }
    if (times.size() > 1) record_.second_token = at_ms(times[1]);
    return *this;
  }
  RequestBuilder& ends(double ms) {
    record_.terminal = at_ms(ms);
    return *this;
  }
  RequestBuilder& input(std::uint32_t tokens) {
    record_.input_tokens = tokens;
    return *this;
  }
  RequestBuilder& reused(std::uint32_t first, std::uint32_t most) {
    record_.reused_tokens_first = first;
    record_.reused_tokens = most;
    return *this;
  }
  RequestBuilder& rejected(replay::Reason reason) {
    record_.first_admit = kNever;
    record_.admissions = 0;
    return ended(replay::Status::Rejected, reason);
  }
  RequestBuilder& ended(replay::Status status, replay::Reason reason) {
    record_.status = status;
    record_.reason = reason;
    return *this;
  }
  replay::RequestRecord& record() { return record_; }
  const std::vector<double>& times() const { return times_; }

 private:
  replay::RequestRecord record_;
  std::vector<double> times_;
};

inline RequestBuilder a_request(std::uint64_t ordinal = 0) {
  return RequestBuilder(ordinal);
}

// Feeds a collector and keeps the totals that a loop would have counted.
class TestRun {
 public:
  explicit TestRun(CollectorOptions options = {}) : collector(std::move(options)) {
    totals.workers = 1;
    facts.provenance = "fixed";
  }
  TestRun& add(RequestBuilder request) {
    const replay::RequestRecord& record = request.record();
    ++totals.requests;
    totals.first_arrival = std::min(totals.first_arrival, record.arrival);
    totals.end = std::max(totals.end, record.terminal);
    if (record.status == replay::Status::Completed) add_gaps(request.times());
    collector.on_request(record);
    return *this;
  }
  Result<Report> try_report() {
    totals.gaps.gaps_ns.assign(gaps_.begin(), gaps_.end());
    return make_report(collector, totals, facts);
  }
  Report report() {
    auto made = try_report();
    EXPECT_TRUE(made.has_value()) << to_text(made.error().front());
    return made ? *made : Report{};
  }

  Collector collector;
  replay::RunTotals totals;
  RunFacts facts;

 private:
  void add_gaps(const std::vector<double>& times) {
    for (std::size_t i = 1; i < times.size(); ++i) {
      const std::int64_t gap = (at_ms(times[i]) - at_ms(times[i - 1])).ns;
      ++gaps_[gap];
      ++totals.gaps.count;
      totals.gaps.sum_ns += static_cast<UInt128>(gap);
      totals.gaps.sum_squares_ns += static_cast<UInt128>(gap) * static_cast<UInt128>(gap);
    }
  }
  std::map<std::int64_t, std::uint64_t> gaps_;
};

// A number of the summary; NaN when it is null, a failure when the key is missing.
inline double value_of(const Report& report, std::string_view key) {
  const Value* value = find(report.summary, key);
  if (value == nullptr) {
    ADD_FAILURE() << "no key " << key;
    return 0;
  }
  return value->number().value_or(std::nan(""));
}

inline bool is_null(const Report& report, std::string_view key) {
  const Value* value = find(report.summary, key);
  return value != nullptr && value->is_null();
}

}  // namespace servecast::report
