// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/bench_case.hpp"
#include "cli/child_process.hpp"
#include "cli/exit_code.hpp"
#include "cli/quick.hpp"
#include "cli/repeat.hpp"

namespace servecast::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Quick, ExpandsShortKeysAndDottedPaths) {
  const auto input = quick_input(
      {"Qwen/Qwen3-8B", "l4", "tensor=2", "rate=1.5", "requests=7", "engine.context_length=99"});
  ASSERT_TRUE(input);
  EXPECT_THAT(input->sets, ElementsAre("engine.workers.aggregated.parallelism.tensor=2",
                                       "traffic.load={type: poisson, requests_per_second: 1.5}",
                                       "traffic.stop={requests: 7}", "engine.context_length=99"));
  const auto config = config::read(*input);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.parallelism.tensor, 2u);
  EXPECT_EQ(config->traffic.stop.count, 7u);
}

TEST(Quick, GivesAConfigurationForEveryShortKey) {
  for (const QuickKey& key : quick_keys()) {
    const auto input = quick_input({"m", "h", std::string(key.name) + "=2"});
    ASSERT_TRUE(input) << key.name;
    EXPECT_TRUE(config::read(*input)) << key.name;
  }
}

TEST(Quick, QuotesNamesThatYamlWouldReadOtherwise) {
  const auto input = quick_input({"12", "no: way #x"});
  const auto config = config::read(*input);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->engine.model, "12");
  EXPECT_EQ(config->engine.hardware, "no: way #x");
}

TEST(RepeatCommand, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(repeat_command({"servecast", "--set", "a={b: 1}", "it's", ""}),
            "servecast --set 'a={b: 1}' 'it'\\''s' ''");
}

TEST(ExitCode, FollowsTheGravestFault) {
  EXPECT_EQ(exit_of({{.code = "a", .message = {}, .place = {}, .hint = {}}}), Exit::Input);
  const Problem failed{
      .code = "b", .message = {}, .place = {}, .hint = {}, .fault = Fault::Execution};
  const Problem refused{
      .code = "c", .message = {}, .place = {}, .hint = {}, .fault = Fault::Resource};
  EXPECT_EQ(exit_of({failed}), Exit::Failed);
  EXPECT_EQ(exit_of({failed, refused}), Exit::Refused);
}

TEST(ChildProcess, GivesWhatTheProgramPrintedOrWhyItFailed) {
  EXPECT_EQ(*output_of({"/bin/echo", "hello"}), "hello\n");
  EXPECT_THAT(output_of({"/bin/false"}).error().front().message, HasSubstr("exit code 1"));
  EXPECT_THAT(output_of({"/no/such/program"}).error().front().message, HasSubstr("No such file"));
  EXPECT_THAT(output_of({"/bin/sh", "-c", "kill -9 $$"}).error().front().message,
              HasSubstr("signal 9"));
}

TEST(BenchCases, AreTheFilesOfTheFolderInTheOrderAskedFor) {
  const std::string folder = std::string(SERVECAST_SOURCE_DIR) + "/bench/cases";
  const auto chosen = chosen_cases(folder, {"w3-mooncake", "dense-vllm"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ((*chosen)[0].name, "w3-mooncake");
  EXPECT_EQ((*chosen)[1].name, "dense-vllm");
  EXPECT_EQ(chosen_cases(folder, {})->size(), 32u);
  EXPECT_THAT(to_text(chosen_cases(folder, {"dense-vlm"}).error().front()),
              HasSubstr("did you mean dense-vllm?"));
  EXPECT_FALSE(chosen_cases("/no/such/folder", {}));
}

}  // namespace
}  // namespace servecast::cli
