// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "config/yaml.hpp"
#include "fit/measured/layout.hpp"

namespace servecast::fit {
namespace {

using config::Value;

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> kNames{"columns", "constants", "factors"};
  return kNames;
}

std::string hint_for(const std::string& word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? fmt::format("did you mean {}?", *nearest) : "";
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const Field& field : fields()) names.emplace_back(field.name);
  return names;
}

void read_entry(const std::string& section, const Value::Entry& entry, Layout& layout,
                Problems& problems) {
  const std::string path = fmt::format("{}.{}", section, entry.key);
  const Field* field = find_field(entry.key);
  if (field == nullptr) {
    problems.push_back({"mapping.unknown_field", fmt::format("{}: there is no such field", path),
                        entry.place, hint_for(entry.key, field_names())});
    return;
  }
  const std::string& text = entry.value.text;
  if (entry.value.kind != Value::Kind::Scalar || text.empty()) {
    problems.push_back({"mapping.value", fmt::format("{}: must be one text or number", path),
                        entry.value.place, ""});
    return;
  }
  if (section == "columns") layout.columns[entry.key] = text;
  if (section == "constants") layout.constants[entry.key] = text;
  if (section != "factors") return;
  double factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error != std::errc{} || end != text.data() + text.size() || !(factor > 0 && factor < 1e12) ||
      field->real == nullptr) {
    problems.push_back({"mapping.factor",
                        fmt::format("{}: must be a number above 0, of a measured field", path),
                        entry.value.place, "write 1000 for a column in seconds"});
    return;
  }
  layout.factors[entry.key] = factor;
}

}  // namespace

Result<Layout> parse_mapping(std::string_view text, const std::string& file) {
  Result<Value> root = config::read_yaml(text, file);
  if (!root) return tl::unexpected(std::move(root.error()));
  if (root->kind != Value::Kind::Mapping)
    return fail({"mapping.top_level", "a mapping file has columns, constants and factors",
                 root->place, "write columns: {model: NAME OF THE COLUMN, ...}"});
  Layout layout{.name = file, .columns = {}, .constants = {}, .factors = {}};
  Problems problems;
  for (const Value::Entry& section : root->entries) {
    const auto& known = section_names();
    if (std::find(known.begin(), known.end(), section.key) == known.end()) {
      problems.push_back({"mapping.unknown_key",
                          fmt::format("{}: there is no such section", section.key), section.place,
                          hint_for(section.key, known)});
      continue;
    }
    if (section.value.kind != Value::Kind::Mapping)
      problems.push_back({"mapping.value", fmt::format("{}: must be a mapping", section.key),
                          section.value.place, ""});
    for (const Value::Entry& entry : section.value.entries)
      read_entry(section.key, entry, layout, problems);
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return layout;
}

Result<Layout> read_mapping(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (!text) return tl::unexpected(std::move(text.error()));
  return parse_mapping(*text, path);
}

}  // namespace servecast::fit
