// SPDX-License-Identifier: Apache-2.0
// The shared vLLM results, each in the reference mode and in the fast path.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "conformance/expect_reported.hpp"
#include "conformance/expectations.hpp"
#include "conformance/register_tests.hpp"
#include "conformance/shared_case.hpp"
#include "conformance/shared_files.hpp"
#include "support/audit.hpp"
#include "support/recording.hpp"

namespace servecast::test {
namespace {

void expect_reference(const SharedCase& shared, const workload::Workload& workload,
                      const replay::Options& options) {
  SCOPED_TRACE(fmt::format("{} mode{}", options.stepping ? "stepping" : "fast",
                           options.capture_passes ? ", passes captured" : ""));
  const Recording run = record(shared.deployment, workload, options);
  const auto none = std::optional<std::string>();
  if (options.capture_passes && !shared.passes.empty()) {
    EXPECT_EQ(passes_mismatch(shared, run), none);
  }
  EXPECT_EQ(rows_mismatch(shared, run), none);
  EXPECT_EQ(summary_mismatch(shared, run), none);
  for (const std::string& broken : audit(shared.deployment, run, false)) ADD_FAILURE() << broken;
}

void run_case(const std::filesystem::path& folder) {
  const SharedCase shared = read_shared_case(folder);
  const Result<workload::Workload> workload = workload::build(shared.spec);
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  replay::Options options;
  options.stepping = true;
  options.capture_passes = true;
  expect_reference(shared, *workload, options);
  options.stepping = false;
  expect_reference(shared, *workload, options);
  options.capture_passes = false;
  expect_reference(shared, *workload, options);
  expect_reported(shared, *workload);
}

}  // namespace

void register_shared_vllm_tests() {
  const auto folder = shared_folder("vllm");
  if (!folder) {
    register_absent("SharedVllm");
    return;
  }
  for (const std::filesystem::path& path : shared_vllm_cases(*folder)) {
    const bool micro = path.parent_path().filename() == "micro";
    const std::string name = (micro ? "micro_" : "") + path.filename().string();
    register_test("SharedVllm", name, [path] { run_case(path); });
  }
}

}  // namespace servecast::test
