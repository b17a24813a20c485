// SPDX-License-Identifier: Apache-2.0
// Runs golden cases: golden CASE... With UPDATE_GOLDEN=1 a case that differs is rewritten from what
// happened.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "transcript.hpp"

namespace servecast::golden {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const fs::path& path, const std::string& text) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    // Wall time is a fact of this machine, not of the result.
    if (line.starts_with("Wall Time (ms): ")) line = "Wall Time (ms): *";
    lines.push_back(line);
  }
  return lines;
}

Command run(const Command& command, const fs::path& folder) {
  const std::string shell =
      "cd '" + folder.string() + "' && { " + command.line + "\n} >../out 2>../err </dev/null";
  const int status = std::system(shell.c_str());
  Command happened{
      command.line, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}, {}};
  happened.out = lines_of(read(folder.parent_path() / "out"));
  happened.err = lines_of(read(folder.parent_path() / "err"));
  return happened;
}

bool equal(const std::vector<std::string>& expected, const std::vector<std::string>& found) {
  if (expected.size() != found.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!matches(expected[i], found[i])) return false;
  }
  return true;
}

// Is the case as expected? Prints what happened instead when it is not.
bool check(const fs::path& path, const fs::path& scratch) {
  Transcript transcript = parse(read(path));
  const fs::path folder = scratch / "work";
  fs::create_directories(folder);
  for (const File& file : transcript.files) write(folder / file.name, file.text);
  bool same = true;
  for (Command& command : transcript.commands) {
    Command happened = run(command, folder);
    if (happened.exit_code == command.exit_code && equal(command.out, happened.out) &&
        equal(command.err, happened.err))
      continue;
    same = false;
    Transcript shown;
    shown.commands = {happened};
    std::printf("%s: this happened instead:\n%s", path.filename().c_str(), to_text(shown).c_str());
    command = std::move(happened);
  }
  if (same || std::getenv("UPDATE_GOLDEN") == nullptr) return same;
  write(path, to_text(transcript));
  std::printf("%s: rewritten\n", path.filename().c_str());
  return true;
}

int run_cases(int argc, char** argv) {
  std::string scratch = (fs::temp_directory_path() / "golden-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) return 1;
  setenv("PATH", (std::string(SERVECAST_PROGRAM_DIR ":") + std::getenv("PATH")).c_str(), 1);
  setenv("LC_ALL", "C", 1);
  unsetenv("SERVECAST_DATA");
  bool passed = true;
  for (int i = 1; i < argc; ++i)
    passed = check(fs::absolute(argv[i]), fs::path(scratch) / std::to_string(i)) && passed;
  fs::remove_all(scratch);
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace servecast::golden

int main(int argc, char** argv) {
  try {
    return servecast::golden::run_cases(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden: %s\n", error.what());
    return 2;
  }
}
