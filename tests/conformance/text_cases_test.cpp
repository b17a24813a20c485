// SPDX-License-Identifier: Apache-2.0
// Runs every text case of cases/ in every mode: what one of them gets wrong, or differently, is a
// failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/register_tests.hpp"
#include "conformance/text_case.hpp"
#include "support/audit.hpp"
#include "support/recording.hpp"
#include "support/trace_file.hpp"

namespace servecast::test {
namespace {

workload::Spec spec_of(const TextCase& text_case, const TraceFile& trace,
                       std::uint32_t block_tokens) {
  workload::TraceSource source;
  source.path = trace.path();
  source.block_size = block_tokens;
  source.start_as_given = true;
  workload::Spec spec;
  spec.source = source;
  spec.stop = {};
  spec.load.kind = workload::Load::Kind::TraceTimestamps;
  if (text_case.concurrency) {
    spec.load.kind = workload::Load::Kind::Concurrency;
    spec.load.concurrency = *text_case.concurrency;
  }
  return spec;
}

void run_spelled(const TextCase& text_case, std::uint32_t block_tokens) {
  SCOPED_TRACE(fmt::format("trace blocks of {} tokens", block_tokens));
  const TraceFile trace(mooncake_text(text_case, block_tokens));
  const auto workload = workload::build(spec_of(text_case, trace, block_tokens));
  ASSERT_TRUE(workload) << to_text(workload.error().front());
  replay::Options options;
  options.stepping = true;
  options.capture_requests = options.capture_passes = options.capture_kv_events = true;
  options.cap = text_case.cap;
  const Recording plain = record(text_case.deployment, *workload, options);
  for (const std::string& line : broken_expectations(text_case, plain)) ADD_FAILURE() << line;
  if (!expects_a_problem(text_case)) {
    for (const std::string& broken :
         audit(text_case.deployment, plain, text_case.cap.has_value())) {
      ADD_FAILURE() << broken;
    }
  }
  options.stepping = false;
  for (const bool capture : {true, false}) {
    options.capture_requests = options.capture_passes = options.capture_kv_events = capture;
    for (const std::uint32_t passes_max : {0U, 1U, 2U, 3U}) {
      options.run_passes_max = passes_max;
      SCOPED_TRACE(fmt::format("fast mode, runs of {} passes, capture {}", passes_max, capture));
      EXPECT_EQ(first_difference(plain, record(text_case.deployment, *workload, options)),
                std::nullopt);
    }
  }
}

void run_text_case(const Value& document) {
  const TextCase text_case = read_text_case(document);
  run_spelled(text_case, text_case.trace_block_tokens);
  if (text_case.respell && text_case.trace_block_tokens != 1) run_spelled(text_case, 1);
}

}  // namespace

void register_text_cases() {
  std::set<std::string> names;
  const auto folder = std::filesystem::path(SERVECAST_SOURCE_DIR) / "tests/conformance/cases";
  for (const std::filesystem::path& file : yaml_files(folder)) {
    const std::string suite = test_name(file.stem().string());
    std::vector<Value> documents;
    try {
      documents = read_yaml(file);
      for (const Value& document : documents) {
        const std::string name = test_name(document.at("name").scalar);
        if (!names.insert(suite + name).second) document.refuse("a second case of this name");
        register_test(suite, name, [document] { run_text_case(document); });
      }
    } catch (const std::runtime_error& error) {
      register_test(suite, "can_be_read", [what = std::string(error.what())] { FAIL() << what; });
    }
  }
}

}  // namespace servecast::test
