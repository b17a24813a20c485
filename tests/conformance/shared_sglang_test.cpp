// SPDX-License-Identifier: Apache-2.0
// The shared SGLang results, each in the reference mode and in the fast path.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "conformance/expect_reported.hpp"
#include "conformance/expectations.hpp"
#include "conformance/register_tests.hpp"
#include "conformance/shared_files.hpp"
#include "conformance/shared_sglang.hpp"
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
  expect_reported(shared.common, *workload);
}

}  // namespace

void register_shared_sglang_tests() {
  const auto folder = shared_folder("sglang");
  if (!folder) {
    register_absent("SharedSglang");
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
