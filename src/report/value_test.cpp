// SPDX-License-Identifier: Apache-2.0
#include "report/value.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace servecast::report {
namespace {

TEST(Value, SortsKeysAtEveryLevelAndKeepsTheOrderOfArrays) {
  const Object object{{"z", Array{Object{{"b", 1}, {"a", 2}}, 3}}, {"a", 4}};
  EXPECT_EQ(to_json(object, Layout::Compact), R"({"a":4,"z":[{"a":2,"b":1},3]})");
}

TEST(Value, IndentsByTwoSpacesAndKeepsEmptyContainersShort) {
  const Object object{{"b", Array{1, Object{{"c", nullptr}}}}, {"a", Array{}}, {"d", Object{}}};
  EXPECT_EQ(
      to_json(object, Layout::Indented),
      "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": {}\n}");
}

TEST(Value, PrintsNumbersByTheirKind) {
  const Array array{-3, 18446744073709551615U, 2.0, 0.1, 1e16, 1e300, -0.0, true, false};
  EXPECT_EQ(to_json(array, Layout::Compact),
            "[-3,18446744073709551615,2.0,0.1,1e16,1e300,-0.0,true,false]");
}

TEST(Value, EscapesOnlyWhatJsonDemands) {
  EXPECT_EQ(to_json("a\"b\\c/\n\t\x01\x7f é", Layout::Compact),
            "\"a\\\"b\\\\c/\\n\\t\\u0001\x7f é\"");
}

TEST(Value, AnyBytesBecomeAJsonText) {
  // Every pair of bytes, also such that are no UTF-8.
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string bytes{static_cast<char>(a), static_cast<char>(b), 'x'};
      const std::string text = to_json(bytes, Layout::Compact);
      const auto parsed = nlohmann::json::parse(text, nullptr, false);
      ASSERT_TRUE(parsed.is_string()) << a << ' ' << b;
      if (a < 128 && b < 128) {
        ASSERT_EQ(parsed.get<std::string>(), bytes);
      }
    }
  }
}

TEST(Value, RefusesOverlongSurrogateAndTooLargeUtf8) {
  for (const std::string bytes :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF0\x80\x80\x80"}) {
    EXPECT_EQ(to_json(bytes, Layout::Compact).find(bytes), std::string::npos);
  }
  const std::string valid = "\xF0\x9F\x98\x80 \xED\x9F\xBF \xE0\xA0\x80";
  EXPECT_EQ(to_json(valid, Layout::Compact), "\"" + valid + "\"");
}

TEST(Value, NamesTheFirstNumberThatIsNotFiniteByItsPointer) {
  const double inf = std::numeric_limits<double>::infinity();
  const Object object{{"b", inf}, {"a", Array{1.0, Object{{"x/y~z", std::nan("")}}}}};
  EXPECT_EQ(find_non_finite(object), "/a/1/x~1y~0z");
  EXPECT_EQ(find_non_finite(Object{{"a", 1.0}, {"b", "inf"}}), std::nullopt);
}

TEST(Value, AnAbsentOptionalIsNull) {
  EXPECT_EQ(to_json(std::optional<std::uint64_t>{}, Layout::Compact), "null");
  EXPECT_EQ(to_json(std::optional<std::uint64_t>{7}, Layout::Compact), "7");
}

}  // namespace
}  // namespace servecast::report
