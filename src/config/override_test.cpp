// SPDX-License-Identifier: Apache-2.0
#include "config/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/yaml.hpp"

namespace servecast::config {
namespace {

using ::testing::HasSubstr;

Value tree(const char* text) {
  return *read_yaml(text, "f.yaml");
}

std::string problem(Value& root, const std::string& argument) {
  const Result<void> applied = apply_set(root, argument);
  return applied ? std::string() : to_text(applied.error().front());
}

TEST(Override, CreatesMissingMappingsOnTheWay) {
  Value root = tree("engine: {model: a}");
  ASSERT_EQ(problem(root, "engine.workers.aggregated.parallelism.tensor=4"), "");
  const Value& tensor = root.find("engine")
                            ->value.find("workers")
                            ->value.find("aggregated")
                            ->value.find("parallelism")
                            ->value.find("tensor")
                            ->value;
  EXPECT_EQ(tensor.text, "4");
  EXPECT_EQ(tensor.origin, Origin::Set);
  EXPECT_EQ(root.find("engine")->value.find("model")->value.origin, Origin::File);
}

TEST(Override, LetsTheLaterOneWinAndReplacesMappingsWhole) {
  Value root = tree("a: {b: 1, c: 2}");
  ASSERT_EQ(problem(root, "a.b=2"), "");
  ASSERT_EQ(problem(root, "a.b=3"), "");
  EXPECT_EQ(root.find("a")->value.find("b")->value.text, "3");
  ASSERT_EQ(problem(root, "a={d: [1, 2]}"), "");
  EXPECT_EQ(root.find("a")->value.entries.size(), 1u);
  EXPECT_EQ(root.find("a")->value.find("d")->value.items[1].origin, Origin::Set);
}

TEST(Override, SplitsAtTheFirstEqualsSignAndReadsAYamlValue) {
  Value root = tree("{}");
  ASSERT_EQ(problem(root, "a=b=c"), "");
  EXPECT_EQ(root.find("a")->value.text, "b=c");
  ASSERT_EQ(problem(root, "q=\"8\""), "");
  EXPECT_TRUE(root.find("q")->value.quoted);
  ASSERT_EQ(problem(root, "n=null"), "");
  EXPECT_EQ(root.find("n")->value.kind, Value::Kind::Null);
}

TEST(Override, SaysThatAMappingOrAListIsNotClosed) {
  Value root = tree("{}");
  EXPECT_THAT(problem(root, "a={"), HasSubstr("--set a={: the value is an unclosed mapping"));
  EXPECT_THAT(problem(root, "a=[1"), HasSubstr("the value is an unclosed list"));
  EXPECT_THAT(problem(root, "a={b: [1, ']']"), HasSubstr("the value is an unclosed mapping"));
}

TEST(Override, RefusesPathsThatAreNotNames) {
  Value root = tree("engine: {model: a, list: [1]}");
  EXPECT_THAT(problem(root, "x"), HasSubstr("invalid --set x: it has no '='"));
  EXPECT_THAT(problem(root, "=1"), HasSubstr("the path is empty"));
  EXPECT_THAT(problem(root, "a.0.b=1"), HasSubstr("a part of the path is a number"));
  EXPECT_THAT(problem(root, "a..b=1"), HasSubstr("a part of the path is empty"));
  EXPECT_THAT(problem(root, ".a=1"), HasSubstr("a part of the path is empty"));
  EXPECT_THAT(problem(root, "a.=1"), HasSubstr("a part of the path is empty"));
  EXPECT_THAT(problem(root, "engine.model.name=1"),
              HasSubstr("engine.model is \"a\", not a mapping"));
  EXPECT_THAT(problem(root, "engine.list.x=1"), HasSubstr("engine.list is a list, not a mapping"));
  EXPECT_EQ(root.entries.size(), 1u);
}

TEST(Override, NamesThePlaceWhereAValueIsNotYaml) {
  Value root = tree("{}");
  EXPECT_THAT(problem(root, "a=}"), HasSubstr("--set:1:"));
  EXPECT_THAT(problem(root, "a=[1"), HasSubstr("invalid --set a=[1"));
  EXPECT_THAT(problem(root, "a={b: 1, b: 2}"), HasSubstr("given twice"));
}

}  // namespace
}  // namespace servecast::config
