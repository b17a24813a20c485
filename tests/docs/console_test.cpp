// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <gtest/gtest.h>

namespace servecast::docs {
namespace {

using Lines = std::vector<std::string>;

TEST(Console, CommandsAndTheirOutputAreReadFromConsoleBlocksOnly) {
  const std::vector<Step> steps = steps_of(
      "text\n$ not this\n```console\n$ servecast --version\nservecast 1\nline 2\n$ ls \\\n  "
      "-l\n```\n"
      "```sh\n$ nor this\n```\n");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].text, "servecast --version");
  EXPECT_EQ(steps[0].line, 4);
  EXPECT_EQ(steps[0].output, (Lines{"servecast 1", "line 2"}));
  EXPECT_EQ(steps[0].output_first, 4);
  EXPECT_EQ(steps[1].text, "ls \\\n  -l");
  EXPECT_TRUE(steps[1].output.empty());
}

TEST(Console, ANamedBlockIsAFileToWrite) {
  const std::vector<Step> steps = steps_of("```yaml a.yaml\nx: 1\ny: 2\n```\n```yaml\nz: 3\n```\n");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, Step::Kind::File);
  EXPECT_EQ(steps[0].file, "a.yaml");
  EXPECT_EQ(steps[0].text, "x: 1\ny: 2\n");
}

TEST(Console, OutputMatchesOnlyWhenEveryLineDoes) {
  EXPECT_TRUE(output_matches({"a", "b"}, {"a", "b"}));
  EXPECT_FALSE(output_matches({"a", "b"}, {"a"}));
  EXPECT_FALSE(output_matches({"a"}, {"a", "b"}));
  EXPECT_FALSE(output_matches({"a", "b"}, {"a", "c"}));
}

TEST(Console, ThreeDotsStandForTheRestOfALineOrForLines) {
  EXPECT_TRUE(line_matches("took ... ms", "took 12.5 ms"));
  EXPECT_FALSE(line_matches("took ... ms", "took 12.5 s"));
  EXPECT_TRUE(output_matches({"a", "...", "d"}, {"a", "b", "c", "d"}));
  EXPECT_TRUE(output_matches({"a", "..."}, {"a"}));
  EXPECT_FALSE(output_matches({"a", "...", "d"}, {"a", "b", "c"}));
}

TEST(Console, ACommandWithoutARuleIsUnknown) {
  EXPECT_EQ(treatment_of("servecast predict"), Treatment::Run);
  EXPECT_EQ(treatment_of("./test.sh --quick"), Treatment::Script);
  EXPECT_EQ(treatment_of("cmake --preset release"), Treatment::Preset);
  EXPECT_EQ(treatment_of("./build/release/bin/test_cache"), Treatment::Preset);
  EXPECT_EQ(treatment_of("curl x"), Treatment::Unknown);
}

}  // namespace
}  // namespace servecast::docs
