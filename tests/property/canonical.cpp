// SPDX-License-Identifier: Apache-2.0
#include "property/canonical.hpp"

#include "report/report.hpp"

namespace servecast::test {

std::string canonical_line_of(const Recording& run) {
  if (!run.problems.empty()) return to_text(run.problems.front());
  report::Collector collector({.keep_requests = true});
  for (const RecordedRequest& request : run.requests) {
    replay::RequestRecord record = request.record;
    record.history = request.history;
    collector.on_request(record);
  }
  const auto report = report::make_report(collector, run.totals, {.provenance = "fixed"});
  if (!report) return to_text(report.error().front());
  return report::canonical_line(*report, collector, {});
}

}  // namespace servecast::test
