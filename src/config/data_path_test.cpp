// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "config/config.hpp"

namespace servecast::config {
namespace {

namespace fs = std::filesystem;

class DataPath : public ::testing::Test {
 protected:
  DataPath() {
    if (const char* named = std::getenv("SERVECAST_DATA")) named_ = named;
    unsetenv("SERVECAST_DATA");
    std::string name = (fs::temp_directory_path() / "data-path-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~DataPath() override {
    if (!named_.empty()) setenv("SERVECAST_DATA", named_.c_str(), 1);
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  fs::path root_;
  std::string named_;
};

TEST_F(DataPath, LeavesOtherPathsAsTheyAreWritten) {
  EXPECT_EQ(*resolve_path("traces/a.jsonl", "run.yaml"), "traces/a.jsonl");
  EXPECT_EQ(*resolve_path("/abs/a.jsonl", "run.yaml"), "/abs/a.jsonl");
}

TEST_F(DataPath, TakesTheFolderThatTheEnvironmentNames) {
  setenv("SERVECAST_DATA", "/some/where", 1);
  EXPECT_EQ(*resolve_path("data:traces/a.jsonl", "run.yaml"), "/some/where/traces/a.jsonl");
  unsetenv("SERVECAST_DATA");
}

TEST_F(DataPath, FindsSharedDataAboveTheConfiguration) {
  fs::create_directories(root_ / "shared" / "data");
  fs::create_directories(root_ / "project" / "bench" / "cases");
  const auto path =
      resolve_path("data:a.jsonl", (root_ / "project" / "bench" / "cases" / "run.yaml").string());
  ASSERT_TRUE(path);
  // The nearest one wins; without one in the working tree it is the one above the project.
  if (fs::is_directory(fs::current_path() / ".." / "shared" / "data")) return;
  EXPECT_EQ(*path, (root_ / "shared" / "data" / "a.jsonl").string());
}

TEST_F(DataPath, SaysHowToNameTheFolderWhenThereIsNone) {
  if (fs::is_directory(fs::current_path() / ".." / "shared" / "data"))
    GTEST_SKIP() << "this place has a data folder";
  const auto path = resolve_path("data:a.jsonl", (root_ / "run.yaml").string());
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().front().code, "config.no_data");
  EXPECT_THAT(to_text(path.error().front()), ::testing::HasSubstr("SERVECAST_DATA"));
}

}  // namespace
}  // namespace servecast::config
