// SPDX-License-Identifier: Apache-2.0
// Models, systems and capacities that stand in files of the user's.
#include "config/cards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/deployment.hpp"

namespace servecast::config {
namespace {

using testing::HasSubstr;

// A file of this text in a folder of the test's.
std::string file(const std::string& name, const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "cards_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / name).string();
  std::ofstream(path) << text;
  return path;
}

Result<Deployed> deployed(const std::vector<std::string>& sets) {
  const Result<Config> config = read(
      {.path = "run.yaml",
       .text =
           "engine:\n  model: Qwen/Qwen3-8B\n  hardware: h200_sxm\n  workers: {aggregated: {}}\n",
       .sets = sets,
       .seed = {}});
  if (!config) return tl::unexpected(config.error());
  return deploy(*config);
}

std::string problem_of(const std::vector<std::string>& sets) {
  const auto result = deployed(sets);
  return result ? "" : to_text(result.error().front());
}

std::string llama(const std::string& architecture) {
  return R"({"architectures": [")" + architecture +
         R"("], "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 8192})";
}

TEST(Cards, ReadTheConfigJsonOfACheckpoint) {
  const std::string path = file("config.json", llama("LlamaForCausalLM"));
  const auto result = deployed({"engine.model=" + path});
  ASSERT_TRUE(result) << problem_of({"engine.model=" + path});
  EXPECT_EQ(result->placement.model.name, "cards_test/config.json");  // no path of the machine
  EXPECT_EQ(result->memory->parts.weights, 16'059'990'016u);
  EXPECT_EQ(result->deployment.rank.max_model_len, 8192u);
  EXPECT_THAT(problem_of({"engine.model=no/such.json"}), HasSubstr("engine.model: "));
}

TEST(Cards, TakeAnotherModelsCardWhenAskedTo) {  // bugs.md A46: never silently
  const std::string path = file("foo.json", llama("FooForCausalLM"));
  EXPECT_THAT(problem_of({"engine.model=" + path}), HasSubstr("FooForCausalLM"));
  EXPECT_THAT(problem_of({"engine.model=" + path}), HasSubstr("engine.model_like"));
  const auto result = deployed({"engine.model=me/foo", "engine.model_like=Llama-3.1-8B"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->placement.model.name, "me/foo (like meta-llama/Llama-3.1-8B)");
}

TEST(Cards, ReadAHypotheticalSystem) {
  const std::string text = R"(name: my_chip
memory_bytes: 200000000000
memory_bytes_per_s: 9000000000000
memory_efficiency: 0.8
memory_latency_s: 3e-06
flops_per_s: {bf16: 3000000000000000}
power_w: 900
gpus_per_node: 8
intra_node_bytes_per_s: 900000000000
inter_node_bytes_per_s: 100000000000
pcie_bytes_per_s: 64000000000
peer_latency_s: 1e-05
reserve_collectives_bytes: {"1": 0}
reserve_other_bytes: 3000000000
source: a wish
licence: none
)";
  const auto result = deployed({"engine.hardware=" + file("my_chip.yaml", text)});
  ASSERT_TRUE(result) << problem_of({"engine.hardware=" + file("my_chip.yaml", text)});
  EXPECT_EQ(result->placement.system.name, "my_chip");
  EXPECT_EQ(result->placement.system.memory_bytes, 200'000'000'000u);
  ASSERT_EQ(result->warnings.size(), 1u);
  EXPECT_THAT(result->warnings[0], HasSubstr("datasheet"));
  EXPECT_THAT(problem_of({"engine.hardware=" + file("bad_chip.yaml", text + "speed: 1\n")}),
              HasSubstr("speed is not a key"));
}

TEST(Cards, TakeTheCapacityThatTheEngineLogged) {
  const std::string field = "engine.workers.aggregated.kv_cache.capacity={type: from_log, path: ";
  const std::string log = file("vllm.log", "INFO GPU KV cache size: 41,408 tokens\n");
  const auto result = deployed({field + log + "}"});
  ASSERT_TRUE(result) << problem_of({field + log + "}"});
  EXPECT_EQ(result->deployment.rank.blocks, 41'408u / 64);
  EXPECT_FALSE(result->memory);
  const std::string blocks = file("old.log", "# GPU blocks: 2588, # CPU blocks: 2048\n");
  EXPECT_EQ(deployed({field + blocks + "}"})->deployment.rank.blocks, 2588u);
  EXPECT_THAT(problem_of({field + log + "}", "engine.workers.aggregated.vllm.version=0.25.1"}),
              HasSubstr("from_log goes not together with kv_cache.groups"));
  const std::string none = file("none.log", "nothing\n");
  EXPECT_THAT(problem_of({field + none + "}"}),
              testing::AllOf(HasSubstr("kv_cache.capacity.path"), HasSubstr("none.log"),
                             HasSubstr("has no line")));
}

}  // namespace
}  // namespace servecast::config
