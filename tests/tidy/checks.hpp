// SPDX-License-Identifier: Apache-2.0
// Checks that a compiler does not make: layers, determinism, text, links. Each takes the text of
// one file and returns what is wrong with it, so that every check is tested on a bad text of its
// own.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servecast::tidy {

// One file, as a path from the top of the repository ("src/base/time.hpp") and its bytes.
struct File {
  std::string path;
  std::string text;
};

struct Finding {
  std::string path;
  int line = 0;      // from 1
  std::string rule;  // "layers", "third-party", ...
  std::string what;
  bool fatal = true;  // else it is reported and does not fail the test
};

using Findings = std::vector<Finding>;

// tools/layers.txt: room -> the rooms that it may include.
using Layers = std::map<std::string, std::set<std::string>>;
Layers parse_layers(std::string_view text);

// tools/third-party.txt, in file order: the first line whose prefix fits a header rules.
struct ThirdParty {
  std::string prefix;  // ends in '/' for a folder
  std::set<std::string> rooms;
  bool in_headers = false;
};
std::vector<ThirdParty> parse_third_party(std::string_view text);

struct Word {
  std::regex pattern;
  std::string spelling, instead;
};
std::vector<Word> parse_words(std::string_view text);

// The lines of a list that are neither empty nor a comment.
std::set<std::string> parse_set(std::string_view text);

// #include "room/..." against the layers, #include <...> against the third-party table. C++ under
// src/ only.
Findings check_includes(const File& file, const Layers& layers,
                        const std::vector<ThirdParty>& third_party);

// Chance and clocks outside their doors (rooms in `clock_rooms` may see the wall clock). C++ only.
Findings check_determinism(const File& file, const std::set<std::string>& clock_rooms);

// Variables that outlive a call and can change: at namespace scope, static, thread_local. C++ only.
// A line that says "tidy: mutable-static (reason)" is let through.
Findings check_mutable_statics(const File& file);

// Licence line, machine paths, banned words, tabs and blanks at line ends, columns (C++ and
// scripts).
Findings check_text(const File& file, const std::vector<Word>& words, std::size_t columns_max);

// Sources over `lines_max` and functions over `function_lines_max`; never fatal. C++ only.
Findings report_sizes(const File& file, int lines_max, int function_lines_max);

// Links of a markdown file that lead nowhere (`exists` holds every path of the repository, folders
// too), and, in any text, hosts outside the allowed ones.
Findings check_links(const File& file, const std::set<std::string>& exists,
                     const std::set<std::string>& hosts);

bool is_cpp(std::string_view path);
// The room of "src/<room>/..."; empty elsewhere.
std::string room_of(std::string_view path);
// C++ with comments, string and character literals blanked out; line breaks stay.
std::string code_only(std::string_view text);

}  // namespace servecast::tidy
