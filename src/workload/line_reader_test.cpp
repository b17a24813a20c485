// SPDX-License-Identifier: Apache-2.0
#include "workload/line_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace servecast::workload {
namespace {

using testing::ElementsAre;

std::vector<std::string> numbered(LineReader& lines) {
  std::vector<std::string> all;
  while (lines.next())
    all.push_back(std::to_string(lines.number()) + ":" + std::string(lines.line()));
  return all;
}

std::vector<std::string> numbered(std::string_view text) {
  LineReader lines(text);
  return numbered(lines);
}

// Gives the text in pieces of `size` bytes.
LineReader::Fill in_pieces(std::string text, std::size_t size) {
  return
      [text = std::move(text), size, at = std::size_t{0}](char* out, std::size_t capacity) mutable {
        const std::size_t count = std::min({size, capacity, text.size() - at});
        std::memcpy(out, text.data() + at, count);
        at += count;
        return count;
      };
}

TEST(LineReader, SkipsBlankLinesButCountsThem) {
  EXPECT_THAT(numbered("a\n\n \t\nb\n"), ElementsAre("1:a", "4:b"));
}

TEST(LineReader, GivesALastLineWithoutLineFeed) {
  EXPECT_THAT(numbered("a\nb"), ElementsAre("1:a", "2:b"));
}

TEST(LineReader, DropsCarriageReturnsAndTheByteOrderMark) {
  EXPECT_THAT(numbered("\xEF\xBB\xBF"
                       "a\r\n\r\nb\r\n"),
              ElementsAre("1:a", "3:b"));
}

TEST(LineReader, FindsNothingInAnEmptyText) {
  EXPECT_THAT(numbered(""), ElementsAre());
}

TEST(LineReader, LinesDoNotDependOnThePiecesTheyComeIn) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::string(static_cast<std::size_t>(i), 'x') + "\n";
  const auto whole = numbered(text);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    LineReader lines(in_pieces(text, size));
    EXPECT_EQ(numbered(lines), whole);
  }
}

TEST(LineReader, HoldsALineLongerThanItsChunk) {
  const std::string line(3'000'000, 'y');
  EXPECT_THAT(numbered(line + "\nz"), ElementsAre("1:" + line, "2:z"));
}

TEST(LineReader, StopsAtALineThatIsTooLongAndNamesIt) {
  LineReader lines(in_pieces("ab\n" + std::string(200, 'x') + "\ncd\n", 10), 100);
  EXPECT_THAT(numbered(lines), ElementsAre("1:ab"));
  EXPECT_TRUE(lines.too_long());
  EXPECT_EQ(lines.number(), 2u);
  EXPECT_FALSE(lines.next());
}

TEST(LineReader, TakesALineOfTheGreatestLength) {
  LineReader lines(in_pieces(std::string(99, 'x') + "\ncd\n", 1000), 100);
  EXPECT_EQ(numbered(lines).size(), 2u);
  EXPECT_FALSE(lines.too_long());
}

}  // namespace
}  // namespace servecast::workload
