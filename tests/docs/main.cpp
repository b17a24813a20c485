// SPDX-License-Identifier: Apache-2.0
// servecast_docs BINARY ROOT PAGE: runs the console blocks of a markdown page in an empty folder
// that has the repository's examples/ in it, and compares what they print with what the page shows.
// UPDATE_GOLDEN=1 writes the real output into the page, except where the page leaves lines out by
// "...".
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "console.hpp"

namespace fs = std::filesystem;
using namespace servecast::docs;

namespace {

struct Ran {
  int exit_code = 0;
  std::vector<std::string> output;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Folder {  // removed with all that the commands left in it
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "servecast-docs-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Ran run(const fs::path& folder, const fs::path& programs, const std::string& command) {
  const fs::path script = folder / ".step.sh", log = folder / ".step.log";
  std::ofstream(script) << "cd '" << (folder / "at").string() << "'\n"
                        << "PATH='" << programs.string() << "':$PATH\nexport PATH LC_ALL=C\n"
                        << command << "\n";
  const std::string line = "sh '" + script.string() + "' >'" + log.string() + "' 2>&1 </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, lines_of(read(log))};
}

// What is wrong with a command that is shown but not run here; empty = nothing.
std::string check_script(const fs::path& root, const std::string& command) {
  const std::string word = command.substr(0, command.find(' '));
  if (access((root / word).c_str(), X_OK) != 0) return word + " is not a program of the repository";
  const std::string source = read(root / word);
  for (std::size_t at = command.find(" --"); at != std::string::npos;
       at = command.find(" --", at + 1)) {
    const std::string option = command.substr(at + 1, command.find(' ', at + 1) - at - 1);
    if (source.find(option) == std::string::npos) return word + " has no option " + option;
  }
  return {};
}

std::string check_preset(const fs::path& root, const std::string& command) {
  const std::string presets = read(root / "CMakePresets.json");
  for (const char* before : {"--preset ", "build/"}) {
    const std::size_t at = command.find(before);
    if (at == std::string::npos) continue;
    const std::string rest = command.substr(at + std::string(before).size());
    const std::string name = rest.substr(0, rest.find_first_of(" /\n"));
    if (presets.find("\"name\": \"" + name + "\"") == std::string::npos)
      return "CMakePresets.json has no preset " + name;
  }
  return {};
}

class Page {
 public:
  Page(fs::path root, fs::path page) : root_(std::move(root)), path_(std::move(page)) {}

  int check(const fs::path& binary) {
    Folder folder;
    const fs::path programs = folder.path() / "bin", at = folder.path() / "at";
    fs::create_directories(programs);
    fs::create_directories(at);
    fs::create_symlink(binary, programs / "servecast");
    fs::create_directory_symlink(root_ / "examples", at / "examples");
    const std::string text = read(path_);
    lines_ = lines_of(text);
    for (const Step& step : steps_of(text)) {
      if (step.kind == Step::Kind::File) {
        std::ofstream(at / step.file) << step.text;
      } else {
        check_step(step, folder.path(), programs);
      }
      ++steps_;
    }
    if (updated_) write();
    std::printf("%s: %d steps, %d run, %d wrong\n", path_.c_str(), steps_, ran_, wrong_);
    return wrong_ == 0 && steps_ > 0 ? 0 : 1;
  }

 private:
  void complain(const Step& step, const std::string& what) {
    ++wrong_;
    std::printf("%s:%d: %s\n  $ %s\n", path_.c_str(), step.line, what.c_str(), step.text.c_str());
  }

  void check_step(const Step& step, const fs::path& folder, const fs::path& programs) {
    std::string what;
    switch (treatment_of(step.text)) {
      case Treatment::Run:
        return check_run(step, run(folder, programs, step.text));
      case Treatment::Script:
        what = check_script(root_, step.text);
        break;
      case Treatment::Preset:
        what = check_preset(root_, step.text);
        break;
      case Treatment::Read:
        break;
      case Treatment::Unknown:
        what = "no rule says how to check this command";
        break;
    }
    if (!what.empty()) complain(step, what);
  }

  void check_run(const Step& step, const Ran& ran) {
    ++ran_;
    const bool same = step.output.empty() || output_matches(step.output, ran.output);
    if (ran.exit_code == 0 && same) return;
    if (ran.exit_code == 0 && std::getenv("UPDATE_GOLDEN") != nullptr &&
        !leaves_lines_out(step.output)) {
      update(step, ran.output);
      return;
    }
    complain(step, ran.exit_code == 0 ? "the output differs"
                                      : "exit code " + std::to_string(ran.exit_code));
    for (const std::string& line : step.output) std::printf("  shown| %s\n", line.c_str());
    for (const std::string& line : ran.output) std::printf("  real | %s\n", line.c_str());
  }

  static bool leaves_lines_out(const std::vector<std::string>& output) {
    return std::find(output.begin(), output.end(), "...") != output.end();
  }

  // A line that shows "..." stays as long as it fits.
  static std::string to_show(const std::vector<std::string>& shown, const std::string& real) {
    for (const std::string& line : shown)
      if (line.find("...") != std::string::npos && line_matches(line, real)) return line;
    return real;
  }

  // Lines are replaced in place, so that the numbers of later steps stay right until the page is
  // written.
  void update(const Step& step, const std::vector<std::string>& output) {
    updated_ = true;
    const std::size_t first = std::size_t(step.output_first);
    for (std::size_t i = 0; i < step.output.size(); ++i) lines_[first + i] = kGone;
    std::string joined;
    for (const std::string& line : output)
      joined += (joined.empty() ? "" : "\n") + to_show(step.output, line);
    lines_[first] = joined;
  }

  void write() const {
    std::ofstream out(path_, std::ios::binary);
    for (const std::string& line : lines_)
      if (line != kGone) out << line << "\n";
  }

  static constexpr const char* kGone = "\x01";
  fs::path root_, path_;
  std::vector<std::string> lines_;
  int steps_ = 0, ran_ = 0, wrong_ = 0;
  bool updated_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: servecast_docs BINARY ROOT PAGE\n");
    return 2;
  }
  return Page(argv[2], argv[3]).check(argv[1]);
}
