// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "config/config.hpp"

namespace servecast::config {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// Calls `visit` for every field of every mapping with its dotted path.
template <class Visit>
void walk(const Outline& mapping, const std::string& path, const Visit& visit) {
  const auto each = [&](const Outline& field) {
    const std::string name = path.empty() ? field.name : path + "." + field.name;
    visit(field, name);
    if (field.kind == Outline::Kind::Mapping) walk(field, name, visit);
  };
  for (const Outline& field : mapping.fields) each(field);
  for (const Outline& branch : mapping.branches) {
    for (const Outline& field : branch.fields) each(field);
  }
}

TEST(Schema, GivesEveryFieldOneSentenceAndEveryRefusalAReason) {
  int fields = 0;
  walk(outline(), "", [&](const Outline& field, const std::string& path) {
    ++fields;
    if (field.kind == Outline::Kind::Later) {
      EXPECT_FALSE(field.reason.empty()) << path;
      return;
    }
    EXPECT_TRUE(field.help.ends_with('.') || field.help.ends_with('?'))
        << path << ": " << field.help;
  });
  EXPECT_GT(fields, 100);
}

TEST(Schema, ExplainsEveryFieldAndListsItOnTheReferencePage) {
  const std::string page = reference_page();
  walk(outline(), "", [&](const Outline& field, const std::string& path) {
    EXPECT_TRUE(field_help(path)) << path;
    const bool is_refused = field.kind == Outline::Kind::Later;
    EXPECT_THAT(page, HasSubstr("`" + (is_refused ? path : field.name) + "`")) << path;
  });
}

TEST(Schema, NamesTheNearestFieldForAMistypedOne) {
  const auto help = field_help("engine.hardwear");
  ASSERT_FALSE(help);
  EXPECT_THAT(to_text(help.error().front()), HasSubstr("did you mean engine.hardware?"));
}

TEST(Schema, ListsTheFieldsOfEachTypeOfATaggedMapping) {
  const auto help = field_help("engine.workers.aggregated.kv_cache.capacity");
  ASSERT_TRUE(help);
  EXPECT_THAT(*help, HasSubstr("  fields: type\n"
                               "  with type: default: memory_fraction, cuda_graph_reserved_bytes\n"
                               "  with type: fixed: blocks, bytes\n"));
}

// An open object would let an editor accept what predict refuses.
void expect_closed(const Json& schema, const std::string& at) {
  if (schema.is_object() && schema.value("type", Json()) == "object") {
    EXPECT_EQ(schema.at("additionalProperties"), false) << at;
    for (const auto& name : schema.value("required", Json::array()))
      EXPECT_TRUE(schema.at("properties").contains(name)) << at;
  }
  if (!schema.is_structured()) return;
  for (const auto& [key, inner] : schema.items()) expect_closed(inner, at + "/" + key);
}

TEST(Schema, ClosesEveryObject) {
  const Json schema = Json::parse(json_schema());
  EXPECT_EQ(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  expect_closed(schema, "");
}

TEST(Schema, KnowsEverySettingOfAResolvedConfiguration) {
  const auto config = read({.path = "run.yaml",
                            .text = "engine: {model: m, hardware: h, workers: {aggregated: {}}}",
                            .sets = {},
                            .seed = {}});
  ASSERT_TRUE(config);
  for (const Setting& setting : config->settings)
    EXPECT_TRUE(field_help(setting.path)) << setting.path;
}

}  // namespace
}  // namespace servecast::config
