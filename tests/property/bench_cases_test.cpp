// SPDX-License-Identifier: Apache-2.0
// The benchmark cases in both modes: crowded and long, where the random workloads are small.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/deployment.hpp"
#include "property/canonical.hpp"
#include "support/recording.hpp"
#include "workload/workload.hpp"

namespace servecast::test {
namespace {

struct BenchCase {
  std::string name;
  std::vector<std::string> sets;  // shortens the longest, unless SERVECAST_LONG_CASES is set
};
void PrintTo(const BenchCase& bench, std::ostream* out) {
  *out << bench.name;
}

class BenchCases : public testing::TestWithParam<BenchCase> {};

TEST_P(BenchCases, AgreeInBothModes) {
  const std::string path =
      std::string(SERVECAST_SOURCE_DIR) + "/bench/cases/" + GetParam().name + ".yaml";
  const bool whole = std::getenv("SERVECAST_LONG_CASES") != nullptr;
  const auto config =
      config::read({.path = path, .sets = whole ? std::vector<std::string>() : GetParam().sets});
  if (!config && config.error().front().message.find("data:") != std::string::npos) {
    GTEST_SKIP() << to_text(config.error().front());
  }
  ASSERT_TRUE(config) << to_text(config.error().front());
  const auto deployed = config::deploy(*config);
  ASSERT_TRUE(deployed) << to_text(deployed.error().front());
  const auto workload = workload::build(config->traffic);
  ASSERT_TRUE(workload) << to_text(workload.error().front());

  replay::Options options;
  options.cap = config->cap;
  const Recording fast = record(deployed->deployment, *workload, options);
  options.stepping = true;
  const Recording plain = record(deployed->deployment, *workload, options);
  EXPECT_EQ(first_difference(plain, fast), std::nullopt);
  EXPECT_TRUE(canonical_line_of(plain) == canonical_line_of(fast)) << "CanonicalV1 differs";
  EXPECT_EQ(plain.totals.requests, workload->request_count());
}

INSTANTIATE_TEST_SUITE_P(
    All, BenchCases,
    testing::Values(BenchCase{"dense-vllm", {}}, BenchCase{"moe-long-prefill", {}},
                    BenchCase{"long-decode", {}}, BenchCase{"cache-pressure-vllm", {}},
                    BenchCase{"w3-mooncake", {}}, BenchCase{"dense-sglang", {}},
                    BenchCase{"moe-long-decode", {}}, BenchCase{"cache-pressure-sglang", {}},
                    BenchCase{"w3-mooncake-sglang", {}},
                    BenchCase{"state-hybrid", {"traffic.stop.sessions=256"}},
                    BenchCase{"scale-512", {}},
                    BenchCase{"mla-multiworker-dp", {"traffic.stop.requests=8192"}},
                    BenchCase{"scale-2048", {"traffic.stop.sessions=4096"}},
                    BenchCase{"day", {"traffic.stop.requests=30000"}},
                    BenchCase{"ten-million", {"traffic.stop.requests=200000"}}),
    [](const testing::TestParamInfo<BenchCase>& bench) {
      std::string name = bench.param.name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace servecast::test
