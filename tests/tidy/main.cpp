// SPDX-License-Identifier: Apache-2.0
// servecast_tidy CHECK ROOT: runs one check over the repository at ROOT. Exits with 1 when
// something is wrong.
//   layers       who includes whom, and where third-party headers stand
//   determinism  chance, clocks, lasting mutable state
//   text         licence lines, paths, words, columns; long files and functions are reported
//   links        relative links and link hosts
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "checks.hpp"

namespace fs = std::filesystem;
using namespace servecast::tidy;

namespace {

constexpr int kLinesMax = 600, kFunctionLinesMax = 70;
constexpr std::size_t kColumnsMax = 100;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What a build, an installation, an editor or a run leaves in the working tree.
bool is_ours(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == ".git" || name == ".cache" || name == ".vscode" || name == ".idea") return false;
  if (name == "node_modules") return false;
  return name != "build" && name != "servecast-output" && name != "compile_commands.json";
}

bool is_text(const fs::path& path) {
  for (const char* ending : {".gz", ".png", ".ico", ".xz", ".zst"})
    if (path.extension() == ending) return false;
  return true;
}

struct Tree {
  std::vector<File> files;
  std::set<std::string> exists;
};

Tree read_tree(const fs::path& root) {
  Tree tree;
  tree.exists.insert(".");
  std::vector<fs::path> paths;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    if (!is_ours(it->path())) {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    tree.exists.insert(it->path().lexically_relative(root).generic_string());
    if (it->is_regular_file() && is_text(it->path())) paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths)
    tree.files.push_back({path.lexically_relative(root).generic_string(), read(path)});
  return tree;
}

void add(Findings& all, Findings more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

int run(const std::string& check, const fs::path& root) {
  const Tree tree = read_tree(root);
  const Layers layers = parse_layers(read(root / "tools/layers.txt"));
  const std::vector<ThirdParty> third_party =
      parse_third_party(read(root / "tools/third-party.txt"));
  const std::vector<Word> words = parse_words(read(root / "tools/banned-words.txt"));
  const std::set<std::string> hosts = parse_set(read(root / "tools/allowed-hosts.txt"));
  Findings findings;
  std::size_t checked = 0;
  for (const File& file : tree.files) {
    // The checks' own tests hold bad texts on purpose.
    if (file.path.starts_with("tests/tidy/checks_test")) continue;
    const bool source = file.path.starts_with("src/") && is_cpp(file.path);
    if ((check == "layers" || check == "determinism") && !source) continue;
    ++checked;
    if (check == "layers") {
      add(findings, check_includes(file, layers, third_party));
    } else if (check == "determinism") {
      add(findings, check_determinism(file, {"cli"}));
      add(findings, check_mutable_statics(file));
    } else if (check == "text") {
      add(findings, check_text(file, words, kColumnsMax));
      add(findings, report_sizes(file, kLinesMax, kFunctionLinesMax));
    } else if (check == "links") {
      add(findings, check_links(file, tree.exists, hosts));
    } else {
      std::fprintf(stderr, "servecast_tidy: unknown check %s\n", check.c_str());
      return 2;
    }
  }
  int bad = 0;
  for (const Finding& f : findings) {
    bad += f.fatal ? 1 : 0;
    std::printf("%s:%d: %s%s: %s\n", f.path.c_str(), f.line,
                f.fatal ? "" : "note: ", f.rule.c_str(), f.what.c_str());
  }
  std::printf("%s: %zu files, %d findings\n", check.c_str(), checked, bad);
  return bad == 0 && checked > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: servecast_tidy layers|determinism|text|links ROOT\n");
    return 2;
  }
  return run(argv[1], argv[2]);
}
