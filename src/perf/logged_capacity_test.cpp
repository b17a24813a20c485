// SPDX-License-Identifier: Apache-2.0
// KV capacities that servers logged (realdata.md 2.5), where the file of them is at hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "perf/a_placement.hpp"
#include "perf/memory.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;

std::filesystem::path log_file() {
  const char* data = std::getenv("SERVECAST_DATA");
  const std::filesystem::path root =
      data != nullptr ? std::filesystem::path(data)
                      : std::filesystem::path(SERVECAST_SOURCE_DIR) / "../shared/data";
  return root / "groundtruth" / "kv_capacity.csv";
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

struct Logged {
  explicit Logged(const std::vector<std::string>& cells)
      : model(cells.at(1)),
        gpu(cells.at(2)),
        tensor(static_cast<std::uint32_t>(std::stoul(cells.at(3)))),
        expert(static_cast<std::uint32_t>(std::stoul(cells.at(4)))),
        engine(cells.at(6).substr(0, cells.at(6).find(' '))),
        version(cells.at(6).substr(cells.at(6).find(' ') + 1)),
        fraction(cells.at(7)),
        notes(cells.at(8)),
        weights_gib(cells.at(9).empty() ? 0.0 : std::stod(cells.at(9))),
        tokens(std::stod(cells.at(11))) {}

  bool notes_have(const char* text) const { return notes.find(text) != std::string::npos; }

  std::string model, gpu;
  std::uint32_t tensor, expert;
  std::string engine, version, fraction, notes;
  double weights_gib, tokens;
};

Placement placement_of(const Logged& row) {
  Placement p = a_placement(row.model, row.gpu == "rtx4090" ? "rtx_4090" : row.gpu + "_sxm");
  p.engine = catalog::engine_from(row.engine).value();
  p.parallelism.tensor = row.tensor;
  if (p.model.experts() != nullptr) {
    p.parallelism.moe_expert = row.expert;
    p.parallelism.moe_tensor = row.tensor / row.expert;
  }
  if (p.engine == EngineKind::Sglang) p.precisions.kv_cache = catalog::Precision::Bfloat16;
  return p;
}

// Tokens by our memory model, with what the protocol of the runs fixes (realdata.md 2.2).
double tokens_of(const Logged& row, const Placement& placement) {
  // SGLang's fraction is not recorded; its log tells the bytes.
  if (placement.engine == EngineKind::Sglang) {
    const std::size_t at = row.notes.find("KV size: ");
    if (at == std::string::npos) return 0.0;
    const double gib = std::stod(row.notes.substr(at + 9));
    return static_cast<double>(
        kv_sequence_tokens(placement, static_cast<std::uint64_t>(gib * 1073741824.0)));
  }
  const std::uint32_t length = row.notes_have("max_model_len 32768") ? 32768
                               : row.notes_have("8k1k")              ? 9472
                                                                     : 2068;
  const auto capacity = kv_capacity(
      placement,
      {.max_batched_tokens = row.notes_have("max_num_batched_tokens 2048") ? 2048u : 8192u,
       .block_tokens = 16,
       .max_model_len = length,
       .memory_fraction = row.fraction.empty() ? engine_memory_fraction(placement, row.version)
                                               : std::stod(row.fraction)});
  return capacity ? static_cast<double>(capacity->tokens) : 0.0;
}

TEST(LoggedCapacity, IsMetWithinThreePercent) {
  std::ifstream file(log_file());
  if (!file) GTEST_SKIP() << "no file " << log_file();
  std::string line;
  std::getline(file, line);  // the columns
  int compared = 0;
  while (std::getline(file, line)) {
    const Logged row(cells_of(line));
    // This row says 8 ranks and holds the values of 4.
    if (row.gpu == "b200" && row.tensor == 8 && row.weights_gib > 90.0) continue;
    SCOPED_TRACE(line);
    const Placement placement = placement_of(row);
    EXPECT_NEAR(tokens_of(row, placement) / row.tokens, 1.0, 0.03);
    if (row.weights_gib > 0.0) {
      EXPECT_NEAR(double(weight_bytes(placement)) / 1073741824.0 / row.weights_gib, 1.0, 0.01);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 28);
}

}  // namespace
}  // namespace servecast::perf
