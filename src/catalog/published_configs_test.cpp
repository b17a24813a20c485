// SPDX-License-Identifier: Apache-2.0
// The published config.json files, where a folder of them is at hand: all are read, and to what
// their summary and the cards say.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catalog/hf_config.hpp"
#include "catalog/user_files.hpp"

namespace servecast::catalog {
namespace {

std::filesystem::path configs_folder() {
  const char* data = std::getenv("SERVECAST_DATA");
  const std::filesystem::path root =
      data != nullptr ? std::filesystem::path(data)
                      : std::filesystem::path(SERVECAST_SOURCE_DIR) / "../shared/data";
  return root / "model_configs";
}

using Row = std::map<std::string, std::string>;  // column -> field, without the empty ones

// The summary has no quoted fields.
std::vector<Row> rows_of(const std::string& csv) {
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    std::istringstream cells(line);
    std::size_t i = 0;
    Row row;
    for (std::string cell; std::getline(cells, cell, ','); ++i) {
      if (rows.empty() && columns.size() == i) columns.push_back(cell);
      if (!cell.empty() && i < columns.size() && columns[i] != cell) row[columns[i]] = cell;
    }
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

std::string file_of(std::string model) {
  return model.replace(model.find('/'), 1, "--") + "_config.json";
}

void expect_number(const Row& row, const char* column, std::uint64_t value) {
  if (const auto found = row.find(column); found != row.end()) {
    EXPECT_EQ(fmt::format("{}", value), found->second) << column;
  }
}

void expect_grouped(const GroupedAttention& a, const Row& row) {
  expect_number(row, "heads", a.heads);
  if (a.window == 0 && row.at("arch").starts_with("Gemma4"))
    return;  // global layers have their own
  expect_number(row, "head_dim", a.head_dim);
  if (!row.at("arch").starts_with("MiMoV2") || a.window == 0)
    expect_number(row, "kv_heads", a.kv_heads);
}

void expect_mixer(const Mixer& mixer, const Row& row) {
  if (const auto* a = std::get_if<GroupedAttention>(&mixer)) expect_grouped(*a, row);
  if (const auto* a = std::get_if<BlockSparseAttention>(&mixer)) expect_grouped(a->grouped, row);
  if (const auto* a = std::get_if<LatentAttention>(&mixer)) {
    expect_number(row, "heads", a->heads);
    expect_number(row, "q_lora", a->query_rank);
    expect_number(row, "kv_lora", a->kv_rank);
    expect_number(row, "qk_nope", a->head_dim_nope);
    expect_number(row, "qk_rope", a->head_dim_rope);
    expect_number(row, "v_head", a->head_dim_value);
    EXPECT_EQ(a->index.has_value(), row.contains("index_topk"));
    if (a->index) expect_number(row, "index_topk", a->index->tokens);
  }
  if (const auto* a = std::get_if<CompressedAttention>(&mixer)) {
    expect_number(row, "heads", a->heads);
    expect_number(row, "head_dim", a->head_dim);
    expect_number(row, "q_lora", a->query_rank);
    expect_number(row, "sliding_window", a->window);
  }
}

// "sliding_attention:18 full_attention:18" or one letter a layer, of the first 80.
void expect_pattern(const ModelCard& card, const std::string& pattern) {
  const auto count = [&](std::string_view kind) -> std::size_t {
    const std::size_t at = pattern.find(kind);
    return at == std::string::npos ? 0 : std::stoul(pattern.substr(at + kind.size() + 1));
  };
  std::size_t windowed = 0, linear = 0, mamba = 0;
  for (const LayerGroup& group : card.groups) {
    const auto* a = std::get_if<GroupedAttention>(&group.mixer);
    if (a != nullptr && a->window > 0) windowed += group.count;
    if (std::holds_alternative<GatedDelta>(group.mixer)) linear += group.count;
    if (std::holds_alternative<Mamba2>(group.mixer)) mamba += group.count;
  }
  if (pattern.starts_with("0:")) {  // MiMo-V2: 1 is a layer with a window
    EXPECT_EQ(windowed, count("1"));
    return;
  }
  if (pattern.find(':') == std::string::npos) {
    ASSERT_LE(pattern.size(), card.layers());
    for (std::uint32_t i = 0; i < pattern.size(); ++i) {
      const LayerGroup& group = card.groups[card.group_of(i)];
      EXPECT_EQ(std::holds_alternative<Mamba2>(group.mixer), pattern[i] == 'M') << i;
      EXPECT_EQ(std::holds_alternative<Experts>(group.feed_forward), pattern[i] == 'E') << i;
      EXPECT_EQ(std::holds_alternative<Dense>(group.feed_forward), pattern[i] == '-') << i;
    }
    return;
  }
  EXPECT_EQ(windowed, count("sliding_attention"));
  EXPECT_EQ(linear, count("linear_attention"));
  EXPECT_EQ(mamba, count("mamba"));
}

void expect_summary(const ModelCard& card, const Row& row) {
  EXPECT_EQ(card.architecture, row.at("arch"));
  expect_number(row, "layers", card.layers());
  expect_number(row, "hidden", card.hidden);
  expect_number(row, "vocab", card.vocab);
  expect_number(row, "max_pos", card.context_max);
  expect_number(row, "nextn", card.draft_layers);
  if (row.contains("tied")) {
    EXPECT_EQ(card.embeddings_tied, row.at("tied") == "True");
  }
  for (const LayerGroup& group : card.groups) expect_mixer(group.mixer, row);
  EXPECT_EQ(card.experts() != nullptr, row.contains("experts"));
  if (const Experts* experts = card.experts()) {
    expect_number(row, "experts", experts->count);
    expect_number(row, "topk", experts->per_token);
    expect_number(row, "moe_inter", experts->width);
  }
  if (row.contains("first_dense")) {
    for (std::uint32_t i = 0; i < card.layers(); ++i)
      EXPECT_EQ(std::holds_alternative<Dense>(card.groups[card.group_of(i)].feed_forward),
                i < std::stoul(row.at("first_dense")))
          << i;
  }
  if (row.contains("layer_types")) expect_pattern(card, row.at("layer_types"));
}

TEST(PublishedConfigs, AreReadAsTheirSummarySays) {
  const std::filesystem::path folder = configs_folder();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  const auto csv = read_card_file((folder / "SUMMARY.csv").string());
  ASSERT_TRUE(csv);
  const std::vector<Row> rows = rows_of(*csv);
  EXPECT_EQ(rows.size(), 93u);
  for (const Row& row : rows) {
    const std::string& name = row.at("model");
    SCOPED_TRACE(name);
    const auto text = read_card_file((folder / file_of(name)).string());
    ASSERT_TRUE(text);
    const auto card = read_hf_config(*text, name);
    ASSERT_TRUE(card) << to_text(card.error().front());
    expect_summary(*card, row);
  }
}

// A card is what the config.json says, but for names, and for precision where the file is silent.
TEST(PublishedConfigs, AreTheCardsOfTheProgram) {
  const std::filesystem::path folder = configs_folder();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  int compared = 0;
  for (const ModelCard& shipped : models()) {
    std::string name = shipped.name;
    if (const std::size_t at = name.find("meta-llama/Llama-3.1"); at == 0)
      name.replace(0, 11, "meta-llama/Meta-");
    const auto text = read_card_file((folder / file_of(name)).string());
    if (!text) continue;
    auto card = read_hf_config(*text, shipped.name);
    ASSERT_TRUE(card);
    if (shipped.source.find("precision as its publisher") != std::string::npos)
      card->precision = shipped.precision;
    card->aliases = shipped.aliases;
    card->source = shipped.source;
    card->licence = shipped.licence;
    EXPECT_EQ(to_json(*card), to_json(shipped)) << shipped.name;
    ++compared;
  }
  EXPECT_GE(compared, 86);  // the others' files have another name
}

// Any value under any key gives a card or a Problem: one file of each architecture, with each key
// replaced in turn.
TEST(PublishedConfigs, AreReadOrRefusedWhateverAKeyHolds) {
  const std::filesystem::path folder = configs_folder();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  std::map<std::string, nlohmann::json> by_architecture;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.file_size() > 60'000) continue;
    const auto text = read_card_file(entry.path().string());
    const nlohmann::json config = nlohmann::json::parse(*text, nullptr, false);
    if (config.is_object()) by_architecture[config["architectures"][0].dump()] = config;
  }
  const std::vector<nlohmann::json> values{nullptr,
                                           0,
                                           -1,
                                           7,
                                           4'294'967'295,
                                           1e300,
                                           true,
                                           "x",
                                           "",
                                           nlohmann::json::array(),
                                           {1, "x"},
                                           nlohmann::json::object(),
                                           {{"x", 1}}};
  std::size_t read = 0, refused = 0;
  const auto each_key = [&](nlohmann::json& root, nlohmann::json& object) {
    for (auto& [key, held] : object.items()) {
      const nlohmann::json kept = held;
      for (const nlohmann::json& value : values) {
        held = value;
        ++(read_hf_config(root.dump(), "a/b") ? read : refused);
      }
      held = kept;
    }
  };
  for (auto& [architecture, config] : by_architecture) {
    for (const char* inner : {"text_config", "quantization_config", "linear_attn_config",
                              "sparse_attention_config", "vision_config"}) {
      if (config.contains(inner) && config[inner].is_object()) each_key(config, config[inner]);
    }
    each_key(config, config);
  }
  EXPECT_GT(by_architecture.size(), 20u);
  EXPECT_GT(read, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace servecast::catalog
