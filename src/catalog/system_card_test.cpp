// SPDX-License-Identifier: Apache-2.0
#include "catalog/system_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "catalog/embedded.hpp"
#include "catalog/kinds.hpp"

namespace servecast::catalog {
namespace {

using testing::HasSubstr;

TEST(SystemCard, EveryCardOfTheProgramLoads) {  // perfdata.md 3
  std::set<std::string> names;
  for (const EmbeddedCard& embedded : embedded_systems()) {
    const auto card = parse_system_card(embedded.json, embedded.file);
    ASSERT_TRUE(card) << to_text(card.error().front());
    EXPECT_EQ(card->name + ".json", embedded.file);
    names.insert(card->name);
  }
  EXPECT_EQ(names, (std::set<std::string>{
                       "a100_pcie", "a100_sxm", "a30",      "b200_sxm",  "b300_sxm",
                       "b60",       "gb200",    "gb300",    "h100_pcie", "h100_sxm",
                       "h20",       "h200_sxm", "l4",       "l40s",      "mi300x",
                       "mi325x",    "mi355x",   "rtx_4090", "rtx_5090",  "rtx_pro_6000_server"}));
}

TEST(SystemCard, HoldsThePublishedConstants) {  // perfdata.md 3
  const SystemCard h200 = find_system("h200_sxm").value();
  EXPECT_EQ(h200.memory_bytes, 151'397'597'184u);
  EXPECT_EQ(h200.memory_bytes_per_s, 4'800'000'000'000u);
  EXPECT_EQ(h200.flops_per_s.fp8, 1'978'000'000'000'000u);
  EXPECT_EQ(h200.flops_per_s.fp4, std::nullopt);
  EXPECT_EQ(h200.sm, 90u);
  EXPECT_EQ(h200.reserve_collectives_bytes.at(4), 411'041'792u);
  EXPECT_EQ(h200.reserve_other_bytes, 3'758'096'384u);
  EXPECT_TRUE(h200.measured);
  EXPECT_FALSE(find_system("mi300x")->measured);
  EXPECT_EQ(find_system("rtx_4090")->memory_bytes, 25'250'627'584u);
  EXPECT_EQ(find_system("b60")->sm, std::nullopt);
  EXPECT_EQ(find_system("gb300")->rack->gpus, 72u);
  EXPECT_EQ(find_system("rtx_pro_6000_server")->flops_per_s.fp4, 1'871'202'139'854'795u);
}

TEST(FindSystem, FitsTheExactNameOnly) {  // bugs.md A46
  for (const char* name : {"h999", "H200_SXM", "h200", "", "h200_sxm "}) {
    const auto card = find_system(name);
    ASSERT_FALSE(card) << name;
    EXPECT_EQ(card.error().front().code, "system.unknown");
    EXPECT_THAT(card.error().front().message, HasSubstr("rtx_pro_6000_server"));
  }
  EXPECT_EQ(find_system("h200-sxm").error().front().hint, "did you mean h200_sxm?");
  EXPECT_EQ(find_system("b20_sxm").error().front().hint, "did you mean b200_sxm?");
}

TEST(ParseSystemCard, RefusesWhatItDoesNotKnow) {
  const std::string valid(embedded_systems().front().json);
  const auto code_with = [&](std::string_view from, std::string_view to) {
    std::string json = valid;
    const std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const auto card = parse_system_card(json.replace(at, from.size(), to), "x.json");
    return card ? std::string("accepted") : card.error().front().code;
  };
  EXPECT_EQ(code_with("\"power_w\"", "\"power\": 1, \"power_w\""), "card.unknown_key");
  EXPECT_EQ(code_with("\"int8\"", "\"int4\""), "card.unknown_key");
  EXPECT_EQ(code_with("\"2\": ", "\"two\": "), "card.unknown_key");
  EXPECT_EQ(code_with("\"1\": 0, ", ""), "card.missing_key");
  EXPECT_EQ(code_with("\"power_w\": ", "\"power_w\": -"), "card.wrong_value");
  EXPECT_EQ(code_with("\"memory_efficiency\": 0.8", "\"memory_efficiency\": 1.8"),
            "card.wrong_value");
}

TEST(Kinds, NamesReadBack) {
  EXPECT_EQ(precision_names().size(), 12u);
  for (const std::string& name : precision_names())
    EXPECT_EQ(to_string(precision_from(name).value()), name);
  EXPECT_EQ(to_string(family_of("GlmMoeDsaForCausalLM").value()), "deepseek_v32");
  EXPECT_EQ(family_of("FooForCausalLM"), std::nullopt);
  for (const char* name : {"vllm", "sglang", "trtllm"})
    EXPECT_EQ(to_string(engine_from(name).value()), name);
  EXPECT_EQ(precision_from("mixed_precision"), std::nullopt);
  EXPECT_EQ(engine_from("vLLM"), std::nullopt);
}

}  // namespace
}  // namespace servecast::catalog
