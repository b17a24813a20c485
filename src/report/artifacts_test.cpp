// SPDX-License-Identifier: Apache-2.0
#include "report/artifacts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.hpp"
#include "report/artifact_file.hpp"

namespace servecast::report {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "servecast-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  // Every file below, name -> text.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      found[fs::relative(entry.path(), path_).string()] = text.str();
    }
    return found;
  }

 private:
  std::string path_;
};

// No file of this process may grow past `bytes` while this lives: what a full disk looks like.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

Manifest a_manifest() {
  return {.tool_version = "0.1.0",
          .argv = {"servecast", "predict", "a.yaml"},
          .seed = 42,
          .started_at = "2026-01-01T00:00:00Z",
          .ended_at = "2026-01-01T00:00:01Z",
          .host = host_facts(),
          .cost = {{"wall_time_ms", 12.5}},
          .data = {}};
}

const Problem& problem_of(const Result<void>& result) {
  EXPECT_FALSE(result.has_value());
  return result.error().front();
}

TEST(OutputDirectory, PutsEveryArtifactAndAManifestWithTheirDigests) {
  Folder folder;
  OutputDirectory out({.path = folder.path("deep/er/out")});
  ASSERT_TRUE(out.check());
  EXPECT_FALSE(fs::exists(folder.path("deep"))) << "check() must not touch anything";
  ASSERT_TRUE(out.stage("prediction.json", "{}\n"));
  ASSERT_TRUE(out.stage("requests.jsonl", [](const Write& write) -> Result<void> {
    for (int i = 0; i < 3; ++i) write("{}\n");
    return {};
  }));
  ASSERT_TRUE(out.commit(a_manifest()));
  const auto files = folder.files();
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files.at("deep/er/out/prediction.json"), "{}\n");
  EXPECT_EQ(files.at("deep/er/out/requests.jsonl"), "{}\n{}\n{}\n");
  const auto manifest = nlohmann::json::parse(files.at("deep/er/out/manifest.json"));
  EXPECT_EQ(manifest["artifacts"].size(), 2U);
  EXPECT_EQ(manifest["artifacts"]["requests.jsonl"]["bytes"], 9);
  EXPECT_EQ(manifest["artifacts"]["requests.jsonl"]["sha256"], sha256_hex("{}\n{}\n{}\n"));
  EXPECT_EQ(manifest["tool"]["version"], "0.1.0");
  EXPECT_EQ(manifest["argv"][2], "a.yaml");
  EXPECT_EQ(manifest["seed"], 42);
  EXPECT_EQ(manifest["cost"]["wall_time_ms"], 12.5);
  EXPECT_TRUE(manifest["host"].contains("architecture"));
  EXPECT_EQ(manifest["started_at"], "2026-01-01T00:00:00Z");
}

TEST(OutputDirectory, NothingIsVisibleBeforeTheCommitAndNothingStaysWithoutIt) {
  Folder folder;
  {
    OutputDirectory out({.path = folder.path("out")});
    ASSERT_TRUE(out.stage("prediction.json", "{}"));
    EXPECT_FALSE(fs::exists(folder.path("out/prediction.json")));
  }
  EXPECT_TRUE(fs::is_empty(folder.path())) << "the directory it made is gone too";
}

TEST(OutputDirectory, AcceptsADirectoryThatIsEmptyOrMissing) {
  Folder folder;
  EXPECT_TRUE(OutputDirectory({.path = folder.path()}).check());
  EXPECT_TRUE(OutputDirectory({.path = folder.path("new/")}).check());
}

TEST(OutputDirectory, RefusesAPathThatIsNoDirectory) {
  Folder folder;
  folder.put("file", "x");
  for (const std::string& path : {folder.path("file"), folder.path("file/below"), std::string()}) {
    const OutputDirectory out({.path = path, .overwrite = true});
    EXPECT_EQ(problem_of(out.check()).fault, Fault::Input) << path;
  }
}

TEST(OutputDirectory, RefusesAFullDirectoryAndSaysWhatOverwriteRemoves) {
  Folder folder;
  folder.put("prediction.json", "old");
  folder.put("notes.txt", "mine");
  folder.put("recommendations/0001.yaml", "a");
  const OutputDirectory out({.path = folder.path()});
  const Problem problem = problem_of(out.check());
  EXPECT_EQ(problem.fault, Fault::Input);
  EXPECT_THAT(problem.message, HasSubstr(folder.path()));
  EXPECT_THAT(problem.hint, HasSubstr("--overwrite"));
  EXPECT_THAT(problem.hint,
              HasSubstr("prediction.json, recommendations/0001.yaml and nothing else"));
  EXPECT_EQ(folder.files().size(), 3U);
}

TEST(OutputDirectory, OverwriteRemovesKnownNamesOnly) {
  Folder folder;
  for (const char* name :
       {"prediction.json", "notes.txt", "recommendations/0001.yaml", "recommendations/12345.yaml",
        "recommendations/best.yaml", "kv-events.jsonl", "passes.jsonl", ".requests.jsonl.partial",
        "prediction.json.bak"}) {
    folder.put(name, "old");
  }
  OutputDirectory out({.path = folder.path(), .overwrite = true});
  ASSERT_TRUE(out.check());
  ASSERT_TRUE(out.stage("prediction.json", "new"));
  EXPECT_EQ(folder.files().at("prediction.json"), "old");
  ASSERT_TRUE(out.commit(a_manifest()));
  auto files = folder.files();
  EXPECT_EQ(files.at("prediction.json"), "new");
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.push_back(name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("manifest.json", "prediction.json", "notes.txt",
                                            "recommendations/12345.yaml",
                                            "recommendations/best.yaml", "prediction.json.bak"));
}

TEST(OutputDirectory, ACheckThatFailsLeavesArtifactsAsTheyWere) {
  Folder folder;
  folder.put("prediction.json", "old");
  fs::create_directory(folder.path("manifest.json"));
  {
    OutputDirectory out({.path = folder.path(), .overwrite = true});
    EXPECT_EQ(problem_of(out.check()).code, "output.directory_in_the_way");
    EXPECT_FALSE(out.stage("prediction.json", "new"));
  }
  EXPECT_EQ(folder.files(), (std::map<std::string, std::string>{{"prediction.json", "old"}}));
}

TEST(OutputDirectory, AFullDiskLeavesNothingHalfWritten) {
  // Whichever artifact meets the end of the disk, the first or a later one, whole text or streamed.
  for (const bool streamed : {false, true}) {
    for (const bool first : {false, true}) {
      Folder folder;
      folder.put("prediction.json", "old");
      folder.put("notes.txt", "mine");
      const auto before = folder.files();
      const std::string large(100'000, 'x');
      Result<void> result;
      {
        OutputDirectory out({.path = folder.path(), .overwrite = true});
        ASSERT_TRUE(out.check());
        if (!first) {
          ASSERT_TRUE(out.stage("resolved-input.yaml", "small"));
        }
        const FullDisk full(50'000);
        result = streamed ? out.stage("requests.jsonl",
                                      [&](const Write& write) -> Result<void> {
                                        for (int i = 0; i < 10; ++i) write(large.substr(0, 10'000));
                                        return {};
                                      })
                          : out.stage("requests.jsonl", large);
        EXPECT_EQ(folder.files(), before);
      }
      const Problem& problem = problem_of(result);
      EXPECT_EQ(problem.fault, Fault::Execution);
      EXPECT_THAT(problem.message, HasSubstr("requests.jsonl"));
      EXPECT_THAT(problem.message, HasSubstr("File too large"));
      EXPECT_EQ(folder.files(), before);
    }
  }
}

TEST(OutputDirectory, AManifestThatCannotBeWrittenLeavesArtifactsAsTheyWere) {
  Folder folder;
  folder.put("prediction.json", "old");
  OutputDirectory out({.path = folder.path(), .overwrite = true});
  ASSERT_TRUE(out.stage("prediction.json", "new"));
  const FullDisk full(10);
  EXPECT_FALSE(out.commit(a_manifest()));
  EXPECT_EQ(folder.files(), (std::map<std::string, std::string>{{"prediction.json", "old"}}));
}

TEST(OutputDirectory, AManifestNumberThatIsNotFiniteIsNamed) {
  Folder folder;
  OutputDirectory out({.path = folder.path("out")});
  ASSERT_TRUE(out.stage("prediction.json", "new"));
  Manifest manifest = a_manifest();
  manifest.cost = {{"wall_time_ms", std::nan("")}};
  EXPECT_THAT(problem_of(out.commit(manifest)).message, HasSubstr("/cost/wall_time_ms"));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputDirectory, AProducerThatFailsLeavesNothing) {
  Folder folder;
  OutputDirectory out({.path = folder.path("out")});
  ASSERT_TRUE(out.stage("prediction.json", "x"));
  const auto result = out.stage("passes.jsonl", [](const Write& write) -> Result<void> {
    write("half");
    return fail({.code = "report.temporary_file",
                 .message = "gone",
                 .place = {},
                 .hint = "",
                 .fault = Fault::Resource});
  });
  EXPECT_EQ(problem_of(result).fault, Fault::Resource);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputDirectoryDeathTest, GoingOnAfterAFailureIsABug) {
  Folder folder;
  folder.put("notes.txt", "mine");
  OutputDirectory out({.path = folder.path()});
  ASSERT_FALSE(out.stage("prediction.json", "x"));
  EXPECT_EXIT((void)out.commit(a_manifest()), testing::ExitedWithCode(70), "failed_");
}

TEST(OutputDirectory, RenamesThatFailAreUndone) {
  Folder folder;
  folder.put("prediction.json", "old prediction");
  folder.put("requests.jsonl", "old requests");
  const auto before = folder.files();
  OutputDirectory out({.path = folder.path(), .overwrite = true});
  ASSERT_TRUE(out.stage("prediction.json", "new"));
  ASSERT_TRUE(out.stage("resolved-input.yaml", "new"));
  // Something takes a staged file away behind our back: its rename fails after others succeeded.
  ASSERT_EQ(::unlink(folder.path(".resolved-input.yaml.partial").c_str()), 0);
  EXPECT_THAT(problem_of(out.commit(a_manifest())).message, HasSubstr("No such file"));
  EXPECT_EQ(folder.files(), before);
}

TEST(OutputDirectory, AnotherRunInTheSameDirectoryIsNotOverwritten) {
  Folder folder;
  OutputDirectory out({.path = folder.path()});
  ASSERT_TRUE(out.stage("prediction.json", "mine"));
  folder.put("prediction.json", "theirs");
  EXPECT_EQ(problem_of(out.commit(a_manifest())).code, "output.not_empty");
  EXPECT_EQ(folder.files(), (std::map<std::string, std::string>{{"prediction.json", "theirs"}}));
}

TEST(OutputDirectory, TwoRunsAtOnceInOneDirectoryDoNotMix) {
  for (const bool overwrite : {false, true}) {
    Folder folder;
    OutputDirectory first({.path = folder.path("out"), .overwrite = overwrite});
    ASSERT_TRUE(first.stage("prediction.json", "first"));
    {
      OutputDirectory second({.path = folder.path("out"), .overwrite = overwrite});
      const Problem problem = problem_of(second.stage("prediction.json", "second"));
      EXPECT_EQ(problem.fault, Fault::Execution);
      EXPECT_EQ(problem.message, "another run is writing into '" + folder.path("out") + "'");
    }
    ASSERT_TRUE(first.commit(a_manifest()));
    EXPECT_EQ(folder.files()["out/prediction.json"], "first");
  }
}

TEST(OutputDirectory, IsFreeForTheNextRunAfterACommitOrAFailure) {
  Folder folder;
  OutputDirectory first({.path = folder.path(), .overwrite = true});
  ASSERT_TRUE(first.stage("prediction.json", "first"));
  ASSERT_TRUE(first.commit(a_manifest()));
  OutputDirectory failing({.path = folder.path(), .overwrite = true});
  ASSERT_FALSE(failing.stage("prediction.json", [](const Write&) -> Result<void> {
    return fail({.code = "test", .message = "no", .place = {}, .hint = ""});
  }));
  OutputDirectory next({.path = folder.path(), .overwrite = true});
  EXPECT_TRUE(next.stage("prediction.json", "next"));
}

// Permissions do not bind root, so this becomes nobody where it can.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) {
    if (before_ == 0) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~Unprivileged() {
    if (before_ == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  uid_t before_;
};

TEST(OutputDirectory, ADirectoryWithoutPermissionIsAProblemThatNamesIt) {
  Folder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  fs::create_directory(folder.path("locked"));
  ASSERT_EQ(::chmod(folder.path("locked").c_str(), 0555), 0);
  const Unprivileged nobody;
  OutputDirectory out({.path = folder.path("locked/out")});
  for (const Result<void>& result : {out.check(), out.stage("prediction.json", "x")}) {
    const Problem problem = problem_of(result);
    EXPECT_EQ(problem.fault, Fault::Execution);
    EXPECT_THAT(problem.message, HasSubstr("/locked'"));
    EXPECT_THAT(problem.message, HasSubstr("Permission denied"));
  }
}

TEST(ArtifactFile, ADeviceWithoutSpaceIsAProblemWithPathAndReason) {
  ArtifactFile file("/dev/full", ArtifactFile::Open::Existing);
  file.write("x");
  const Problem problem = problem_of(file.finish());
  EXPECT_EQ(problem.fault, Fault::Execution);
  EXPECT_EQ(problem.message, "cannot write '/dev/full': No space left on device");
}

TEST(KnownArtifacts, AreExactlyTheToolsNames) {
  for (const char* name :
       {"prediction.json", "requests.jsonl", "manifest.json", "resolved-input.yaml",
        "dashboard.html", "kv-events.jsonl", "passes.jsonl", "fpm-coverage.json",
        "recommendation.json", "recommendation.csv", "resource-plan.json", "resource-runtime.json",
        "execution-events.jsonl", "afd-replay-spec.json", "afd-qualification.json",
        "recommendations/0042.yaml", ".prediction.json.partial", ".prediction.json.old"}) {
    EXPECT_TRUE(is_known_artifact(name)) << name;
  }
  for (const char* name :
       {"notes.txt", "recommendations", "recommendations/12345.yaml", "recommendations/best.yaml",
        "recommendations/001a.yaml", "other/0001.yaml", "recommendations/x/0001.yaml",
        "prediction.json.partial", ".notes.txt.partial", ""}) {
    EXPECT_FALSE(is_known_artifact(name)) << name;
  }
}

}  // namespace
}  // namespace servecast::report
