// SPDX-License-Identifier: Apache-2.0
#include "report/artifacts.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/check.hpp"
#include "report/artifact_file.hpp"

namespace servecast::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "manifest.json";
constexpr std::array<std::string_view, 16> kKnown{
    "afd-qualification.json", "afd-replay-spec.json",
    "dashboard.html",         "execution-events.jsonl",
    "fpm-coverage.json",      "kv-events.jsonl",
    "kv-events.msgpack",      kManifest,
    "passes.jsonl",           "prediction.json",
    "recommendation.csv",     "recommendation.json",
    "requests.jsonl",         "resolved-input.yaml",
    "resource-plan.json",     "resource-runtime.json"};
constexpr std::string_view kRecommendations = "recommendations";

bool is_recommendation(std::string_view file) {
  return file.size() == 9 && file.substr(4) == ".yaml" &&
         std::all_of(file.begin(), file.begin() + 4, [](char c) { return c >= '0' && c <= '9'; });
}

// "recommendations/0001.yaml" -> "recommendations/.0001.yaml.old"
std::string hidden(std::string_view name, std::string_view suffix) {
  const std::size_t slash = name.rfind('/');
  const std::size_t file = slash == std::string_view::npos ? 0 : slash + 1;
  return fmt::format("{}.{}{}", name.substr(0, file), name.substr(file), suffix);
}
std::string partial(std::string_view name) {
  return hidden(name, ".partial");
}
std::string aside(std::string_view name) {
  return hidden(name, ".old");
}

// The name that a file left behind by a killed run was to get; `file` itself when it is none.
std::string_view without_hiding(std::string_view file) {
  if (!file.starts_with('.')) return file;
  for (const std::string_view suffix : {".partial", ".old"}) {
    if (file.ends_with(suffix)) return file.substr(1, file.size() - 1 - suffix.size());
  }
  return file;
}

bool is_hidden(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  return without_hiding(file) != file;
}

Problem unusable(std::string code, std::string message, std::string hint) {
  return {.code = std::move(code),
          .message = std::move(message),
          .place = {},
          .hint = std::move(hint),
          .fault = Fault::Input};
}

struct Contents {
  bool empty = true;
  std::vector<std::string> known;  // sorted, relative to the directory
};

Result<Contents> contents_of(const std::string& path) {
  Contents contents;
  std::error_code error;
  const auto look = [&](const fs::path& directory, const std::string& prefix) {
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      contents.empty = false;
      const std::string name = prefix + entry->path().filename().string();
      if (is_known_artifact(name)) contents.known.push_back(name);
    }
  };
  look(path, "");
  const fs::path recommendations = fs::path(path) / kRecommendations;
  std::error_code absent;
  if (!error && fs::is_directory(recommendations, absent)) {
    look(recommendations, std::string(kRecommendations) + "/");
  }
  if (error) return fail(output_problem("read the directory", path, error.value()));
  std::sort(contents.known.begin(), contents.known.end());
  return contents;
}

// Renames that are undone together unless kept.
class Renames {
 public:
  explicit Renames(std::string directory) : directory_(std::move(directory)) {}
  ~Renames() {
    for (auto step = done_.rbegin(); step != done_.rend(); ++step) {
      ::rename(step->to.c_str(), step->from.c_str());
    }
  }
  Renames(const Renames&) = delete;
  Renames& operator=(const Renames&) = delete;

  Result<void> rename(std::string_view from, std::string_view to) {
    Step step{.from = fmt::format("{}/{}", directory_, from),
              .to = fmt::format("{}/{}", directory_, to)};
    if (::rename(step.from.c_str(), step.to.c_str()) != 0) {
      return fail(output_problem("replace", step.to, errno));
    }
    done_.push_back(std::move(step));
    return {};
  }
  void keep() { done_.clear(); }

 private:
  struct Step {
    std::string from, to;
  };
  std::string directory_;
  std::vector<Step> done_;
};

void sync_directory(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

bool is_known_artifact(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) {
    return std::find(kKnown.begin(), kKnown.end(), without_hiding(name)) != kKnown.end();
  }
  return name.substr(0, slash) == kRecommendations &&
         is_recommendation(without_hiding(name.substr(slash + 1)));
}

Object host_facts() {
  utsname system{};
  if (::uname(&system) != 0) return {};
  return {{"architecture", system.machine},
          {"kernel", system.release},
          {"name", system.nodename},
          {"operating_system", system.sysname},
          {"processors", static_cast<std::int64_t>(::sysconf(_SC_NPROCESSORS_ONLN))}};
}

OutputDirectory::OutputDirectory(OutputOptions options) : options_(std::move(options)) {
  while (options_.path.size() > 1 && options_.path.ends_with('/')) options_.path.pop_back();
}

OutputDirectory::~OutputDirectory() {
  discard();
}

Result<void> OutputDirectory::check_path() const {
  const std::string& path = options_.path;
  if (path.empty()) {
    return fail(
        unusable("output.no_path", "the output directory has an empty name", "name a directory"));
  }
  std::error_code error;
  fs::path existing = path;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.has_parent_path() ? existing.parent_path() : fs::path(".");
  }
  if (!fs::is_directory(existing, error)) {
    return fail(unusable(
        "output.not_a_directory",
        fmt::format("output '{}': '{}' exists and is not a directory", path, existing.string()),
        "name another directory"));
  }
  if (::faccessat(AT_FDCWD, existing.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return fail(output_problem("write to the directory", existing.string(), errno));
  }
  return {};
}

Result<void> OutputDirectory::check() const {
  if (auto ok = check_path(); !ok) return ok;
  const std::string& path = options_.path;
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const auto contents = contents_of(path);
  if (!contents) return tl::unexpected(contents.error());
  if (!contents->empty && !options_.overwrite) {
    const std::string removed = contents->known.empty()
                                    ? "nothing that is there"
                                    : joined(contents->known) + " and nothing else";
    return fail(
        unusable("output.not_empty", fmt::format("output directory '{}' is not empty", path),
                 fmt::format("name another one, or pass --overwrite, which removes {}", removed)));
  }
  for (const std::string& name : contents->known) {
    if (fs::symlink_status(fs::path(path) / name, error).type() != fs::file_type::directory)
      continue;
    return fail(
        unusable("output.directory_in_the_way",
                 fmt::format("output '{}/{}' is a directory where a file will stand", path, name),
                 "move it away"));
  }
  return {};
}

Result<void> OutputDirectory::make_directory() {
  std::vector<std::string> missing;  // innermost first
  std::error_code error;
  for (fs::path path = options_.path; !path.empty() && !fs::exists(path, error);
       path = path.parent_path()) {
    missing.push_back(path.string());
  }
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    if (::mkdir(path->c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return fail(output_problem("make the directory", *path, errno));
    }
    made_.push_back(*path);
  }
  return {};
}

// The kernel frees the lock of a process that is killed.
Result<void> OutputDirectory::take_lock() {
  const std::string& path = options_.path;
  lock_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) return fail(output_problem("open the directory", path, errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return fail(output_problem("lock the directory", path, errno));
  made_.clear();  // in use: the other run's now
  return fail({.code = "output.in_use",
               .message = fmt::format("another run is writing into '{}'", path),
               .place = {},
               .hint = "use one output directory per run",
               .fault = Fault::Execution});
}

void OutputDirectory::free_lock() {
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void OutputDirectory::discard() {
  for (const Staged& staged : staged_) {
    ::unlink(fmt::format("{}/{}", options_.path, partial(staged.name)).c_str());
  }
  staged_.clear();
  // Only what this object made and nobody filled since.
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::rmdir(path->c_str());
  made_.clear();
  free_lock();
}

Result<void> OutputDirectory::stage(std::string_view name, std::string_view text) {
  return stage(name, [&](const Write& write) -> Result<void> {
    write(text);
    return {};
  });
}

Result<void> OutputDirectory::stage(std::string_view name,
                                    const std::function<Result<void>(const Write&)>& produce) {
  SERVECAST_CHECK(is_known_artifact(name));
  for (const Staged& staged : staged_) SERVECAST_CHECK(staged.name != name);
  SERVECAST_CHECK(!failed_);
  const auto failed = [&](Problems problems) {
    failed_ = true;
    discard();
    return tl::unexpected(std::move(problems));
  };
  if (staged_.empty()) {
    // The lock comes before the look: the directory may have changed while the run went on.
    if (auto ok = check_path(); !ok) return failed(ok.error());
    if (auto ok = make_directory(); !ok) return failed(ok.error());
    if (auto ok = take_lock(); !ok) return failed(ok.error());
    if (auto ok = check(); !ok) return failed(ok.error());
  }
  const std::string path = fmt::format("{}/{}", options_.path, partial(name));
  if (options_.overwrite) ::unlink(path.c_str());
  ArtifactFile file(path, ArtifactFile::Open::New);
  if (file.is_open()) staged_.push_back({.name = std::string(name), .bytes = 0, .sha256 = {}});
  auto produced = produce([&](std::string_view text) { file.write(text); });
  auto finished = file.finish();
  if (!produced) return failed(produced.error());
  if (!finished) return failed(finished.error());
  auto digest = sha256_of_file(path);
  if (!digest) return failed(digest.error());
  staged_.back().bytes = file.bytes();
  staged_.back().sha256 = *std::move(digest);
  return {};
}

Result<void> OutputDirectory::commit(const Manifest& manifest) {
  Object artifacts;
  for (const Staged& staged : staged_) {
    artifacts.push_back({staged.name, Object{{"bytes", staged.bytes}, {"sha256", staged.sha256}}});
  }
  const Object document{
      {"argv", Array(manifest.argv.begin(), manifest.argv.end())},
      {"artifacts", artifacts},
      {"cost", manifest.cost},
      {"data", manifest.data},
      {"ended_at", manifest.ended_at},
      {"host", manifest.host},
      {"schema_version", "1.0"},
      {"seed", manifest.seed},
      {"started_at", manifest.started_at},
      {"tool", Object{{"name", "servecast"}, {"version", manifest.tool_version}}}};
  if (auto pointer = find_non_finite(document)) {
    discard();
    return fail({.code = "output.not_finite",
                 .message = "manifest.json would hold a number that is not finite at " + *pointer,
                 .place = {},
                 .hint = "",
                 .fault = Fault::Execution});
  }
  if (auto ok = stage(kManifest, to_json(document, Layout::Indented) + '\n'); !ok) return ok;

  const auto contents = contents_of(options_.path);
  auto replaced = contents ? replace(contents->known) : tl::unexpected(contents.error());
  if (!replaced) {
    discard();
    return replaced;
  }
  // The results stand. What is hidden now belongs to earlier runs.
  staged_.clear();
  made_.clear();
  if (const auto rest = contents_of(options_.path)) {
    for (const std::string& name : rest->known) {
      if (is_hidden(name)) ::unlink(fmt::format("{}/{}", options_.path, name).c_str());
    }
  }
  sync_directory(options_.path);
  free_lock();
  return {};
}

Result<void> OutputDirectory::replace(const std::vector<std::string>& present) {
  Renames renames(options_.path);
  for (const std::string& name : present) {
    if (is_hidden(name)) continue;
    if (!options_.overwrite) {
      return fail(
          unusable("output.not_empty",
                   fmt::format("'{}' appeared in '{}' while the run went on", name, options_.path),
                   "use one output directory per run"));
    }
    if (auto ok = renames.rename(name, aside(name)); !ok) return ok;
  }
  for (const Staged& staged : staged_) {
    if (auto ok = renames.rename(partial(staged.name), staged.name); !ok) return ok;
  }
  renames.keep();
  return {};
}

}  // namespace servecast::report
