// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/csv.hpp"

#include <gtest/gtest.h>

namespace servecast::fit {
namespace {

std::string first_problem(std::string_view text) {
  const auto table = parse_csv(text, "m.csv");
  return table ? "none" : to_text(table.error().front());
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineEnds) {
  const auto table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x,\"\"y\"\"\n2\",3\r\n\r\n,\"\"\n",
      "m.csv");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->header.fields[1].text, "b");
  EXPECT_EQ(table->rows[0].fields[0].text, "x,\"y\"\n2");
  EXPECT_EQ(table->rows[0].fields[1].text, "3");
  EXPECT_EQ(table->rows[1].fields[0].text, "");
}

TEST(Csv, PlacesCountLinesInsideQuotesToo) {
  const auto table = parse_csv("a,b\n\"1\n2\",3\n4,5\n", "m.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows[0].line, 2);
  EXPECT_EQ(table->rows[0].fields[1].line, 3);
  EXPECT_EQ(table->rows[0].fields[1].column, 4);
  EXPECT_EQ(table->rows[1].line, 4);
}

TEST(Csv, TheLastLineNeedsNoEnd) {
  const auto table = parse_csv("a\n1", "m.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.at(0).fields.at(0).text, "1");
}

TEST(Csv, WhatIsWrongIsToldWithItsPlace) {
  EXPECT_EQ(first_problem(""), "m.csv:1:1: the file has no header row");
  EXPECT_EQ(first_problem("a,b\n1\n"), "m.csv:2:1: the row has 1 fields; the header has 2");
  EXPECT_EQ(first_problem("a,a\n"), "m.csv:1:3: the column a stands twice in the header");
  EXPECT_EQ(first_problem("a,\n"), "m.csv:1:3: a column has no name");
  EXPECT_EQ(first_problem("a\n\"x\n"), "m.csv:2:1: the quote is never closed");
  EXPECT_EQ(first_problem("a\n\"x\"y\n").substr(0, 48),
            "m.csv:2:4: text after the closing quote of a fie");
  EXPECT_EQ(first_problem("a\nx\"y\n").substr(0, 30), "m.csv:2:2: a quote inside a fi");
}

TEST(Csv, AWrongQuoteIsToldOnceAndSoAreManyProblems) {
  EXPECT_EQ(parse_csv("a,b\n\"x\n", "m.csv").error().size(), 1U);
  std::string text = "a,b\n";
  for (int i = 0; i < 100; ++i) text += "1\n";
  EXPECT_EQ(parse_csv(text, "m.csv").error().size(), 20U);
}

TEST(Csv, AFileThatIsNotThereIsAProblem) {
  const auto table = read_csv_file("/no/such/file.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().front().code, "file.unreadable");
}

}  // namespace
}  // namespace servecast::fit
