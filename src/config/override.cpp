// SPDX-License-Identifier: Apache-2.0
#include "config/override.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "config/strict.hpp"
#include "config/yaml.hpp"

namespace servecast::config {
namespace {

const Place kSetPlace{"--set", 0, 0};

tl::unexpected<Problems> invalid(const std::string& argument, const std::string& rule,
                                 std::string hint = {}) {
  return fail({"config.set", fmt::format("invalid --set {}: {}", argument, rule), kSetPlace,
               std::move(hint)});
}

bool is_number(std::string_view segment) {
  return std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "mapping" or "list" when the value opens one and does not close it.
std::optional<std::string_view> unclosed(std::string_view value) {
  std::string open;  // what closes each one, innermost last
  char quote = 0;
  for (const char c : value) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
    }
  }
  if (open.empty()) return std::nullopt;
  return open.back() == '}' ? "mapping" : "list";
}

void mark_as_set(Value& value) {
  value.origin = Origin::Set;
  value.place = kSetPlace;
  for (Value& item : value.items) mark_as_set(item);
  for (Value::Entry& entry : value.entries) mark_as_set(entry.value);
}

}  // namespace

Result<void> apply_set(Value& root, const std::string& argument) {
  SERVECAST_CHECK(root.kind == Value::Kind::Mapping);
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return invalid(argument, "it has no '='", "write PATH=VALUE");
  const std::string_view path = std::string_view(argument).substr(0, equals);
  if (path.empty()) return invalid(argument, "the path is empty", "write PATH=VALUE");
  std::vector<std::string_view> segments;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string_view segment = path.substr(start, dot - start);
    if (segment.empty())
      return invalid(argument, "a part of the path is empty", "write names joined by single dots");
    if (is_number(segment))
      return invalid(argument,
                     "a part of the path is a number, but list items cannot be set one by one",
                     "set the whole list");
    segments.push_back(segment);
    start = dot + 1;
  }
  Result<Value> value = read_yaml(std::string_view(argument).substr(equals + 1), "--set");
  if (!value) {
    if (const auto what = unclosed(std::string_view(argument).substr(equals + 1)))
      return invalid(argument, fmt::format("the value is an unclosed {}", *what));
    for (Problem& problem : value.error())
      problem.message = fmt::format("invalid --set {}: {}", argument, problem.message);
    return tl::unexpected(std::move(value.error()));
  }
  mark_as_set(*value);

  Value* at = &root;
  std::string walked;
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    walked += (i == 0 ? "" : ".") + std::string(segments[i]);
    Value::Entry* entry = at->find(segments[i]);
    if (entry == nullptr) {
      Value created = value_at(Value::Kind::Mapping, kSetPlace);
      created.origin = Origin::Set;
      at->entries.push_back({std::string(segments[i]), kSetPlace, std::move(created)});
      entry = &at->entries.back();
    }
    if (entry->value.kind != Value::Kind::Mapping)
      return invalid(argument,
                     fmt::format("{} is {}, not a mapping", walked, described(entry->value)),
                     fmt::format("set {} as a whole", walked));
    at = &entry->value;
  }
  if (Value::Entry* entry = at->find(segments.back())) {
    *entry = {entry->key, kSetPlace, std::move(*value)};
  } else {
    at->entries.push_back({std::string(segments.back()), kSetPlace, std::move(*value)});
  }
  return {};
}

}  // namespace servecast::config
