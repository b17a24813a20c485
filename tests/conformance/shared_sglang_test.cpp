// SPDX-License-Identifier: Apache-2.0
// The shared SGLang results, each in the reference mode and in the fast path.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "conformance/expectations.hpp"
#include "conformance/register_tests.hpp"
#include "conformance/shared_files.hpp"
#include "conformance/shared_sglang.hpp"
#include "report/report.hpp"
#include "support/recording.hpp"

namespace servecast::test {
namespace {

void expect_reference(const SharedSglangCase& shared, const workload::Workload& workload,
                      const replay::Options& options) {
  SCOPED_TRACE(fmt::format("{} mode{}", options.stepping ? "stepping" : "fast",
                           options.capture_passes ? ", passes captured" : ""));
  const Recording run = record(shared.common.deployment, workload, options);
  const auto none = std::optional<std::string>();
  if (options.capture_passes) {
    EXPECT_EQ(sglang_passes_mismatch(shared, run), none);
    EXPECT_EQ(sglang_events_mismatch(shared, run), none);
  }
  EXPECT_EQ(rows_mismatch(shared.common, run), none);
  EXPECT_EQ(sglang_histories_mismatch(shared, run), none);
  EXPECT_EQ(summary_mismatch(shared.common, run), none);
}

void expect_reported(const SharedSglangCase& shared, const workload::Workload& workload) {
  report::Collector collector({});
  const auto totals = replay::run(shared.common.deployment, workload, {}, collector);
  ASSERT_TRUE(totals) << to_text(totals.error().front());
  const auto report = report::make_report(collector, *totals, {});
  ASSERT_TRUE(report) << to_text(report.error().front());
  std::map<std::string, double> reported;
  for (const report::Member& member : report->summary) {
    const std::optional<double> number = member.value.number();
    if (number || member.value.is_null()) reported[member.key] = number.value_or(0);
  }
  EXPECT_EQ(reported_mismatch(shared.common, reported), std::nullopt);
}

void run_case(const std::filesystem::path& folder) {
  const SharedSglangCase shared = read_shared_sglang_case(folder);
  const Result<workload::Workload> workload = workload::build(shared.common.spec);
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  replay::Options options;
  options.capture_requests = options.capture_passes = options.capture_kv_events = true;
  options.stepping = true;
  expect_reference(shared, *workload, options);
  options.stepping = false;
  expect_reference(shared, *workload, options);
  options.capture_passes = options.capture_kv_events = false;
  expect_reference(shared, *workload, options);
  options.capture_requests = false;
  expect_reference(shared, *workload, options);
  expect_reported(shared, *workload);
}

}  // namespace

void register_shared_sglang_tests() {
  const auto folder = shared_folder("sglang");
  if (!folder) {
    register_test("SharedSglang", "all", [] {
      GTEST_SKIP() << "the shared conformance cases are not on this machine: neither beside "
                      "SERVECAST_DATA nor in ../shared/conformance";
    });
    return;
  }
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(*folder))
    cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  for (const std::filesystem::path& path : cases)
    register_test("SharedSglang", path.filename().string(), [path] { run_case(path); });
}

}  // namespace servecast::test
