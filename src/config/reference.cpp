// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/text.hpp"
#include "config/schema.hpp"
#include "config/setting.hpp"

namespace servecast::config {
namespace {

std::string number(double value) {
  std::string text;
  append_double(text, value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string type_text(const Outline& field) {
  if (field.kind == Outline::Kind::Single) return "list of one file";
  const Item& item = *field.item;
  std::string text = field.kind == Outline::Kind::Numbers ? "list, each a " : "";
  switch (item.type) {
    case Item::Type::Whole:
      text = fmt::format("whole number from {} to {}", item.whole.min, item.whole.max);
      break;
    case Item::Type::Real:
      text += fmt::format("number {} {}", item.real.above ? ">" : ">=", number(item.real.min));
      if (std::isfinite(item.real.max)) text += fmt::format(", <= {}", number(item.real.max));
      break;
    case Item::Type::Boolean:
      text = "true, false";
      break;
    case Item::Type::Text:
      text = "text";
      break;
    case Item::Type::Word:
      text = fmt::format("{}", fmt::join(item.words, ", "));
      break;
  }
  if (!item.absent.empty()) text += fmt::format(", or {}", item.absent);
  return text;
}

std::string default_text(const Outline& field) {
  if (field.required) return "required";
  if (field.kind == Outline::Kind::Single || !field.item) return "";
  if (field.by_default) {
    if (const auto* whole = std::get_if<std::uint64_t>(&*field.by_default)) {
      // The largest 32-bit number stands for "no bound".
      return *whole == UINT32_MAX ? "none" : std::to_string(*whole);
    }
    if (const auto* real = std::get_if<double>(&*field.by_default)) return number(*real);
    if (const auto* flag = std::get_if<bool>(&*field.by_default)) return *flag ? "true" : "false";
    return std::get<std::string>(*field.by_default);
  }
  return field.item->absent.empty() ? "none" : std::string(field.item->absent);
}

std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

bool has_fields(const Outline& field) {
  return field.kind == Outline::Kind::Mapping || field.kind == Outline::Kind::List;
}

// Where the fields of a mapping, or of each item of a list, stand.
std::string inner_path(const std::string& path, const Outline& field) {
  return join_path(path, field.name) + (field.kind == Outline::Kind::List ? "[]" : "");
}

// One field with where it stands: its dotted path and the types of tagged mappings it needs.
struct Found {
  std::string path;
  std::string when;  // "traffic.load.type: poisson"; empty = always
  const Outline* field = nullptr;
  const Outline* tag_of = nullptr;  // set when the field is the tag of this mapping
};

void collect(const Outline& mapping, const std::string& path, const std::string& when,
             std::vector<Found>& into) {
  const auto add = [&](const Outline& field, const std::string& condition) {
    into.push_back({join_path(path, field.name), condition, &field, nullptr});
    if (has_fields(field)) collect(field, inner_path(path, field), condition, into);
  };
  if (!mapping.tag.empty()) into.push_back({join_path(path, mapping.tag), when, nullptr, &mapping});
  for (const Outline& branch : mapping.branches) {
    const std::string condition = fmt::format("{}: {}", join_path(path, mapping.tag), branch.name);
    for (const Outline& field : branch.fields) add(field, condition);
  }
  for (const Outline& field : mapping.fields) add(field, when);
}

std::vector<Found> all_fields() {
  std::vector<Found> all;
  collect(outline(), "", "", all);
  return all;
}

std::string tag_words(const Outline& mapping) {
  std::vector<std::string> names;
  for (const Outline& branch : mapping.branches) {
    if (branch.kind != Outline::Kind::Later) names.push_back(branch.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string row(std::string_view field, std::string_view type, std::string_view by_default,
                std::string_view meaning) {
  return fmt::format("| {} | {} | {} | {} |\n", field, type, by_default, meaning);
}

void append_rows(std::string& page, const std::vector<Outline>& fields, const std::string& when) {
  for (const Outline& field : fields) {
    if (field.kind == Outline::Kind::Later) continue;
    const std::string name =
        when.empty() ? fmt::format("`{}`", field.name) : fmt::format("`{}` ({})", field.name, when);
    if (has_fields(field))
      page += row(name, field.kind == Outline::Kind::List ? "list of mappings" : "mapping",
                  field.required ? "required" : "", field.help);
    else
      page += row(name, type_text(field), default_text(field), field.help);
  }
}

std::string heading(const std::string& path) {
  return fmt::format("\n## {}\n\n", path.empty() ? "The document" : path);
}

void append_section(std::string& page, const Outline& mapping, const std::string& path);

void append_sections(std::string& page, const std::vector<Outline>& fields,
                     const std::string& path) {
  for (const Outline& field : fields) {
    if (has_fields(field)) append_section(page, field, inner_path(path, field));
  }
}

void append_section(std::string& page, const Outline& mapping, const std::string& path) {
  // Two types may hold the same mapping; it is described once.
  if (page.find(heading(path)) != std::string::npos) return;
  page += heading(path);
  if (!mapping.help.empty()) page += mapping.help + "\n\n";
  page += "| field | type | default | meaning |\n|---|---|---|---|\n";
  if (!mapping.tag.empty())
    page += row(fmt::format("`{}`", mapping.tag), tag_words(mapping),
                mapping.tag_default.empty() ? "required" : mapping.tag_default, mapping.tag_help);
  for (const Outline& branch : mapping.branches) append_rows(page, branch.fields, branch.name);
  append_rows(page, mapping.fields, "");
  bool titled = false;
  for (const Outline& branch : mapping.branches) {
    if (branch.kind == Outline::Kind::Later || branch.help.empty()) continue;
    if (!titled) page += "\n";
    titled = true;
    page += fmt::format("- `{}: {}`: {}\n", mapping.tag, branch.name, branch.help);
  }
  for (const Outline& branch : mapping.branches) append_sections(page, branch.fields, path);
  append_sections(page, mapping.fields, path);
}

std::string tag_help(const Found& found) {
  const Outline& mapping = *found.tag_of;
  std::string text = fmt::format("{}\n  {}\n  type: {}\n  default: {}\n", found.path,
                                 mapping.tag_help, tag_words(mapping),
                                 mapping.tag_default.empty() ? "required" : mapping.tag_default);
  for (const Outline& branch : mapping.branches) {
    if (branch.kind != Outline::Kind::Later)
      text += fmt::format("  {}: {}\n", branch.name, branch.help);
  }
  return text;
}

std::vector<std::string> accepted_names(const std::vector<Outline>& fields) {
  std::vector<std::string> names;
  for (const Outline& field : fields) {
    if (field.kind != Outline::Kind::Later) names.push_back(field.name);
  }
  return names;
}

std::string help_of(const Found& found) {
  if (found.tag_of != nullptr) return tag_help(found);
  const Outline& field = *found.field;
  if (field.kind == Outline::Kind::Later)
    return fmt::format("{}\n  refused: {}\n", found.path, field.reason);
  std::string text = fmt::format("{}\n  {}\n", found.path, field.help);
  if (!found.when.empty()) text += fmt::format("  goes with {}\n", found.when);
  if (has_fields(field)) {
    std::vector<std::string> names = accepted_names(field.fields);
    if (!field.tag.empty()) names.insert(names.begin(), field.tag);
    text += fmt::format("  {}: {}\n",
                        field.kind == Outline::Kind::List ? "fields of each item" : "fields",
                        fmt::join(names, ", "));
    for (const Outline& branch : field.branches) {
      if (branch.kind == Outline::Kind::Later) continue;
      const std::vector<std::string> own = accepted_names(branch.fields);
      text += fmt::format("  with {}: {}: {}\n", field.tag, branch.name,
                          own.empty() ? "no more" : fmt::format("{}", fmt::join(own, ", ")));
    }
    return text;
  }
  return text + fmt::format("  type: {}\n  default: {}\n", type_text(field), default_text(field));
}

std::vector<std::string> refused_rows(const Found& found) {
  std::vector<std::string> rows;
  const auto add = [&](const std::string& what, std::string_view reason) {
    rows.push_back(fmt::format("| {} | {} |\n", what, reason));
  };
  if (found.tag_of != nullptr) {
    for (const Outline& branch : found.tag_of->branches) {
      if (branch.kind == Outline::Kind::Later)
        add(fmt::format("`{}: {}`", found.path, branch.name), branch.reason);
    }
    return rows;
  }
  const Outline& field = *found.field;
  if (field.kind == Outline::Kind::Later)
    add(fmt::format("`{}`{}", found.path,
                    field.neutral.empty() ? "" : fmt::format(" (`{}`)", field.neutral)),
        field.reason);
  if (field.item) {
    for (const auto& [name, reason] : field.item->later)
      add(fmt::format("`{}: {}`", found.path, name), reason);
  }
  return rows;
}

}  // namespace

std::string reference_page() {
  std::string page =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Printed by `servecast reference "
      "configuration`; a test compares. -->\n"
      "# Configuration\n\n"
      "One YAML document (JSON is read too), one mapping at the top. It is strict: an unknown key, "
      "a key given twice, a\n"
      "wrong type or unit is an error with file, line and column, and `servecast predict` ends "
      "with exit code 2.\n"
      "Numbers are plain decimals; a number in quotes is text; only `true` and `false` are "
      "booleans; `.nan` and `.inf` are\n"
      "refused everywhere. `null` stands for \"not set\" where the default is none or a word. "
      "Anchors, aliases and merge keys\n"
      "are accepted.\n\n"
      "File names are relative to the current directory. `data:` at the start of one stands for "
      "the data folder: the\n"
      "environment variable SERVECAST_DATA, else `../shared/data` seen from the current directory "
      "or from a directory above\n"
      "the configuration.\n\n"
      "Without `traffic` the whole default traffic holds: 100 requests of 1024 and 128 tokens, 10 "
      "in flight. A `traffic` block\n"
      "that is there does not merge with it: it needs its own `stop` unless it replays a trace.\n\n"
      "`servecast explain -c FILE` prints every value with its origin, `servecast explain FIELD` "
      "what follows here for one\n"
      "field, `servecast predict --print-schema` all of it as a JSON Schema.\n";
  append_section(page, outline(), "");
  page +=
      "\n## Known and refused\n\nFields and values that this version refuses by name, with the "
      "reason. The value in brackets means \"not used\" and is accepted.\n\n"
      "| field | reason |\n|---|---|\n";
  for (const Found& found : all_fields()) {
    for (const std::string& line : refused_rows(found)) {
      // Two types may hold the same mapping; it is listed once.
      if (page.find(line) == std::string::npos) page += line;
    }
  }
  return page;
}

Result<std::string> field_help(const std::string& path) {
  std::string text;
  std::vector<std::string> paths;
  for (const Found& found : all_fields()) {
    paths.push_back(found.path);
    if (found.path == path) text += help_of(found);
  }
  if (!text.empty()) return text;
  const auto nearest = nearest_name(path, paths);
  return fail({"config.unknown_key",
               fmt::format("{} is not a field of the configuration", path),
               {},
               nearest ? fmt::format("did you mean {}?", *nearest)
                       : "see docs/reference/configuration.md"});
}

}  // namespace servecast::config
