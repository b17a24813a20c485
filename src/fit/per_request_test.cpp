// SPDX-License-Identifier: Apache-2.0
// Runs of vLLM that were measured request by request (realdata.md 2.4), where their files are at
// hand: mean TTFT within 5 %, mean TPOT within 4 %, output tokens per second within 3 %. The priors
// of data/fit/step-model.json for these GPUs come from passes of the same runs: this test tells
// that scheduling, prefix reuse and memory turn right pass times into right latencies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "config/deployment.hpp"
#include "fit/trajectory.hpp"

namespace servecast::fit {
namespace {

std::filesystem::path data_folder() {
  const char* data = std::getenv("SERVECAST_DATA");
  return data != nullptr ? std::filesystem::path(data)
                         : std::filesystem::path(SERVECAST_SOURCE_DIR) / "../shared/data";
}

std::filesystem::path trace() {
  return data_folder() /
         "traces/llmservingsim_sharegpt/sharegpt-llama-3.1-8b-300-sps10.blk16.jsonl";
}

RowCase run_of(const char* hardware, std::uint32_t max_sequences, std::uint32_t context) {
  RowCase made;
  made.config.traffic.source = workload::TraceSource{.path = trace().string(), .block_size = 16};
  made.config.traffic.load.kind = workload::Load::Kind::TraceTimestamps;
  config::Engine& engine = made.config.engine;
  engine.model = "meta-llama/Llama-3.1-8B";
  engine.hardware = hardware;
  engine.backend_version = "0.19.0";
  engine.context_length = context;
  engine.rank.block_tokens = 16;
  engine.rank.prefix_caching = true;
  engine.rank.max_sequences = max_sequences;
  engine.rank.max_batched_tokens = 2048;
  return made;
}

struct Means {
  double ttft_ms, tpot_ms, tokens_per_s;
};

void expect_near(RowCase made, const Means& measured) {
  auto deployed = config::deploy(made.config);
  ASSERT_TRUE(deployed) << to_text(deployed.error().front());
  made.deployed = std::move(*deployed);
  const auto run = run_row(made);
  ASSERT_TRUE(run) << to_text(run.error().front());
  ASSERT_EQ(run->requests.size(), 300U);
  const Figures figures = figures_of(*run);
  const auto off = [](double predicted, double of) { return 100.0 * (predicted / of - 1.0); };
  EXPECT_LE(std::abs(off(*figures.ttft_ms, measured.ttft_ms)), 5.0) << *figures.ttft_ms;
  EXPECT_LE(std::abs(off(*figures.tpot_ms, measured.tpot_ms)), 4.0) << *figures.tpot_ms;
  EXPECT_LE(std::abs(off(*figures.output_tok_s_per_gpu, measured.tokens_per_s)), 3.0)
      << *figures.output_tok_s_per_gpu;
}

// Memory for 2,588 blocks only: nearly all of TTFT is waiting for them.
TEST(PerRequest, Rtx4090WhereMemoryIsFull) {
  if (!std::filesystem::exists(trace())) GTEST_SKIP() << "no " << trace();
  RowCase made = run_of("rtx_4090", 256, 32768);
  made.config.engine.capacity = {.kind = config::Capacity::Kind::Fixed, .blocks = 2588};
  expect_near(std::move(made), {65'456.6, 32.447, 1'066.38});
}

TEST(PerRequest, RtxPro6000WhereSeatsAreFull) {
  if (!std::filesystem::exists(trace())) GTEST_SKIP() << "no " << trace();
  expect_near(run_of("rtx_pro_6000_server", 128, 131072), {7'097.16, 32.458, 2'969.26});
}

}  // namespace
}  // namespace servecast::fit
