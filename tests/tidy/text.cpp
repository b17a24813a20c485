// SPDX-License-Identifier: Apache-2.0
// Checks of any text file: licence line, paths, words, columns, links.
#include <filesystem>
#include <regex>

#include "checks.hpp"
#include "lines.hpp"

namespace servecast::tidy {
namespace {

constexpr const char* kLicence = "SPDX-License-Identifier: Apache-2.0";

// Formats without comments, and the licence itself.
bool carries_licence_line(std::string_view path) {
  for (const std::string_view ending :
       {".json", ".jsonl", ".csv", ".gz", ".ndjson", ".msgpack", ".txt.expected"})
    if (path.ends_with(ending)) return false;
  return path != "LICENSE";
}

std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (const char c : line)
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++columns;  // UTF-8: not a continuation
  return columns;
}

std::string without_code(const std::string& line) {
  return std::regex_replace(line, std::regex("`[^`]*`"), "``");
}

std::string host_of(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find_first_of("/:?#)>\"' ", begin) - begin);
}

// "docs/a/../b.md" -> "docs/b.md"; a link that climbs out of the repository keeps its "..".
std::string target_of(const std::string& path, const std::string& link) {
  const std::filesystem::path from = std::filesystem::path(path).parent_path();
  std::string target = (from / link).lexically_normal().generic_string();
  while (target.ends_with('/')) target.pop_back();
  return target.empty() ? "." : target;
}

}  // namespace

std::set<std::string> parse_set(std::string_view text) {
  const std::vector<std::string> entries = entries_of(text);
  return {entries.begin(), entries.end()};
}

std::vector<Word> parse_words(std::string_view text) {
  std::vector<Word> words;
  for (const std::string& entry : entries_of(text)) {
    const std::size_t mark = std::min(entry.find(" # "), entry.size());
    const std::string spelling = entry.substr(0, mark);
    words.push_back({std::regex(spelling, std::regex::ECMAScript | std::regex::icase), spelling,
                     mark < entry.size() ? entry.substr(mark + 3) : std::string()});
  }
  return words;
}

Findings check_text(const File& file, const std::vector<Word>& words, std::size_t columns_max) {
  // A folder of one machine: where somebody's checkout or scratch space lies.
  static const std::regex machine_path(R"((^|[^\w./~-])/(work|home|Users|root|tmp|mnt|srv)(/|\b))");
  Findings findings;
  const auto found = [&](int line, const char* rule, std::string what) {
    findings.push_back({file.path, line, rule, std::move(what)});
  };
  const std::vector<std::string> lines = lines_of(file.text);
  if (carries_licence_line(file.path)) {
    const std::string first = lines.empty() ? std::string() : lines[0];
    const std::string second = first.starts_with("#!") || first.starts_with("<?xml")
                                   ? (lines.size() > 1 ? lines[1] : std::string())
                                   : std::string();
    if (first.find(kLicence) == std::string::npos && second.find(kLicence) == std::string::npos)
      found(1, "licence", std::string("the first line must say ") + kLicence);
  }
  int number = 0;
  for (const std::string& line : lines) {
    ++number;
    std::smatch match;
    if (std::regex_search(line, match, machine_path))
      found(number, "machine-path", "a path of one machine: " + trimmed(match.str()));
    if (file.path != "tools/banned-words.txt") {
      for (const Word& word : words)
        if (std::regex_search(line, match, word.pattern))
          found(number, "word", "\"" + match.str() + "\": " + word.instead);
    }
    if (!is_cpp(file.path)) continue;
    // Expected tables and messages in tests are literals that no formatter breaks.
    if (columns_of(line) > columns_max && !file.path.ends_with("_test.cpp"))
      found(number, "columns", std::to_string(columns_of(line)) + " columns");
    if (line.find('\t') != std::string::npos) found(number, "blanks", "a tab");
    if (line.ends_with(' ')) found(number, "blanks", "blanks at the end of the line");
  }
  return findings;
}

Findings check_links(const File& file, const std::set<std::string>& exists,
                     const std::set<std::string>& hosts) {
  static const std::regex url(R"(https?://[^\s)>\]"'`]+)");
  static const std::regex link(R"(\]\(([^)\s]+)[^)]*\))");
  Findings findings;
  int number = 0;
  bool fenced = false;
  for (const std::string& line : lines_of(file.text)) {
    ++number;
    for (std::sregex_iterator it(line.begin(), line.end(), url), end; it != end; ++it)
      if (!hosts.contains(host_of(it->str())))
        findings.push_back({file.path, number, "links",
                            host_of(it->str()) + " is not in tools/allowed-hosts.txt"});
    if (!file.path.ends_with(".md")) continue;
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced) continue;
    const std::string prose = without_code(line);
    for (std::sregex_iterator it(prose.begin(), prose.end(), link), end; it != end; ++it) {
      const std::string raw = (*it)[1].str();
      const std::string path = raw.substr(0, raw.find('#'));
      if (path.empty() || raw.find("://") != std::string::npos || raw.starts_with("mailto:"))
        continue;
      if (!exists.contains(target_of(file.path, path)))
        findings.push_back({file.path, number, "links", path + " does not exist"});
    }
  }
  return findings;
}

}  // namespace servecast::tidy
