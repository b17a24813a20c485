// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace servecast::config {
namespace {

using ::testing::HasSubstr;

std::string problem(std::string_view text) {
  const Result<Value> value = read_yaml(text, "f.yaml");
  return value ? std::string() : to_text(value.error().front());
}

TEST(Yaml, KeepsTheTextOfEveryScalarAndWhetherItWasQuoted) {
  const auto root =
      read_yaml("a: 010\nb: \"12\"\nc: ~\nd: [yes, {e: 1e3}]\nf: !!str 7\n", "f.yaml");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("a")->value.text, "010");
  EXPECT_FALSE(root->find("a")->value.quoted);
  EXPECT_EQ(root->find("b")->value.text, "12");
  EXPECT_TRUE(root->find("b")->value.quoted);
  EXPECT_EQ(root->find("c")->value.kind, Value::Kind::Null);
  EXPECT_EQ(root->find("d")->value.items[1].find("e")->value.text, "1e3");
  EXPECT_TRUE(root->find("f")->value.quoted);
  EXPECT_EQ(root->find("d")->value.items[1].find("e")->place, (Place{"f.yaml", 4, 11}));
}

TEST(Yaml, ReadsJson) {
  const auto root = read_yaml("{\"a\": {\"b\": [1, 2.5, \"x\", true, null]}}", "f.json");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("a")->value.find("b")->value.items.size(), 5u);
}

TEST(Yaml, NamesBothLinesOfADuplicateKey) {
  EXPECT_EQ(
      problem("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n"),
      "f.yaml:5:3: the key \"c\" is given twice: on line 3 and on line 5 (remove one of them)");
  EXPECT_THAT(problem("{a: 1, \"a\": 2}"), HasSubstr("given twice"));
}

TEST(Yaml, ExpandsAliasesAndMergeKeys) {
  const auto root = read_yaml(
      "base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\nuse: {<<: [*b, *o], x: 9}\none: {<<: "
      "*o}\nseq: [*b]\n",
      "f");
  ASSERT_TRUE(root);
  const Value& use = root->find("use")->value;
  EXPECT_EQ(use.find("x")->value.text, "9");
  EXPECT_EQ(use.find("y")->value.text, "2");
  EXPECT_EQ(use.find("z")->value.text, "4");
  EXPECT_EQ(use.find("<<"), nullptr);
  EXPECT_EQ(root->find("one")->value.entries.size(), 2u);
  EXPECT_EQ(root->find("seq")->value.items[0].find("x")->value.text, "1");
  EXPECT_THAT(problem("a: {<<: 3}"), HasSubstr("merge key << takes a mapping"));
}

// Ten levels of ten aliases each would be 10^10 values.
TEST(Yaml, RefusesAnAliasBombQuickly) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level <= 10; ++level) {
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int i = 0; i < 10; ++i) text += (i ? ", *a" : "*a") + std::to_string(level - 1);
    text += "]\n";
  }
  EXPECT_THAT(problem(text), HasSubstr("more than 100000 values once its aliases are expanded"));
}

TEST(Yaml, RefusesAValueThatContainsItself) {
  EXPECT_THAT(problem("a: &a [*a]"), HasSubstr("inside the value that it names"));
  EXPECT_THAT(problem("a: *nowhere"), HasSubstr("malformed YAML"));
}

TEST(Yaml, RefusesDeepNestingInEveryStyle) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(problem("a: " + nested(kDepthMax - 1)), "");
  EXPECT_THAT(problem("a: " + nested(kDepthMax)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(problem("a: " + nested(100'000)), HasSubstr("nested deeper than 64 levels"));
  std::string block;
  for (std::size_t i = 0; i < 100; ++i) block += std::string(i, ' ') + "k:\n";
  EXPECT_THAT(problem(block), HasSubstr("nested deeper than 64 levels"));
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_THAT(problem(dashes), HasSubstr("nested deeper than 64 levels"));
}

TEST(Yaml, RefusesADocumentThatIsTooLarge) {
  EXPECT_THAT(problem(std::string(kDocumentBytesMax + 1, ' ')), HasSubstr("larger than 16 MiB"));
  std::string many = "a: [";
  for (int i = 0; i < 110'000; ++i) many += "1,";
  EXPECT_THAT(problem(many + "]"), HasSubstr("more than 100000 values"));
}

TEST(Yaml, RefusesASecondDocument) {
  EXPECT_EQ(problem("---\na: 1\n...\n"), "");
  EXPECT_THAT(problem("a: 1\n---\nb: 2\n"),
              HasSubstr("f.yaml:2:1: a configuration is one document"));
}

TEST(Yaml, RefusesWhatIsNotYamlWithItsPlace) {
  EXPECT_THAT(problem("a: [1, 2\nb: 3\n"), HasSubstr("f.yaml:"));
  EXPECT_THAT(problem("a: 'open\n"), HasSubstr("malformed YAML"));
  EXPECT_THAT(problem("a: b: c\n"), HasSubstr("f.yaml:1:5: malformed YAML"));
  EXPECT_THAT(problem("\ta: 1\n"), HasSubstr("f.yaml:1:"));
  EXPECT_THAT(problem("a: \xff\n"), HasSubstr("f.yaml:1: the text is not UTF-8"));
  EXPECT_THAT(problem("a: \"\\0\"\n"), HasSubstr("zero byte"));
  EXPECT_THAT(problem("? [a]\n: 1\n"), HasSubstr("a key must be a name"));
  EXPECT_THAT(problem("a: !python/object 1\n"), HasSubstr("is not accepted"));
  EXPECT_THAT(problem("a: !!int 1\n"), HasSubstr("is not accepted"));
}

}  // namespace
}  // namespace servecast::config
