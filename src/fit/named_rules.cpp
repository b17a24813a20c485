// SPDX-License-Identifier: Apache-2.0
#include "fit/named_rules.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "config/yaml.hpp"
#include "fit/embedded_rules.hpp"

namespace servecast::fit {
namespace {

using config::Value;

using Bound = std::optional<std::uint32_t> NamedRule::*;
constexpr std::array<std::pair<std::string_view, Bound>, 6> kBounds{
    {{"concurrency_min", &NamedRule::concurrency_min},
     {"concurrency_max", &NamedRule::concurrency_max},
     {"tensor_min", &NamedRule::tensor_min},
     {"tensor_max", &NamedRule::tensor_max},
     {"input_tokens", &NamedRule::input_tokens},
     {"output_tokens", &NamedRule::output_tokens}}};

std::optional<std::uint32_t> whole(const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

// False: no such key, or a value that it cannot have.
bool read_key(const Value::Entry& entry, NamedRule& rule) {
  const Value& value = entry.value;
  if (entry.key == "ids") {
    for (const Value& id : value.items) rule.ids.push_back(id.text);
    return !rule.ids.empty();
  }
  if (entry.key == "reason") rule.reason = value.text;
  if (entry.key == "source") rule.source = value.text;
  if (entry.key == "reason" || entry.key == "source") return !value.text.empty();
  if (entry.key == "verdict") {
    rule.verdict =
        value.text == "special" ? NamedRule::Verdict::Special : NamedRule::Verdict::Exclude;
    return value.text == "special" || value.text == "exclude";
  }
  for (const auto& [name, bound] : kBounds) {
    if (entry.key != name) continue;
    rule.*bound = whole(value.text);
    return (rule.*bound).has_value();
  }
  return false;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  // The last * seen and the text that it has swallowed so far: on a mismatch it swallows one more.
  std::size_t p = 0, t = 0, star = std::string_view::npos, swallowed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      swallowed = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++swallowed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool applies(const NamedRule& rule, const MeasuredRow& row) {
  const auto at_least = [](const auto& bound, const auto& value) {
    return !bound || value.value_or(0) >= *bound;
  };
  const auto at_most = [](const auto& bound, const auto& value) {
    return !bound || value.value_or(UINT32_MAX) <= *bound;
  };
  return at_least(rule.concurrency_min, row.concurrency) &&
         at_most(rule.concurrency_max, row.concurrency) &&
         at_least(rule.tensor_min, row.widths.tensor) &&
         at_most(rule.tensor_max, row.widths.tensor) &&
         (!rule.input_tokens || row.input_tokens == rule.input_tokens) &&
         (!rule.output_tokens || row.output_tokens == rule.output_tokens) &&
         std::any_of(rule.ids.begin(), rule.ids.end(),
                     [&](const std::string& id) { return matches(id, row.id); });
}

Result<std::vector<NamedRule>> parse_rules(std::string_view json, const std::string& file) {
  Result<Value> root = config::read_yaml(json, file);
  if (!root) return tl::unexpected(std::move(root.error()));
  const Value::Entry* list = root->find("rules");
  if (list == nullptr || list->value.kind != Value::Kind::Sequence)
    return fail({"hygiene.rules", "the file needs a list of rules", root->place, ""});
  std::vector<NamedRule> rules;
  Problems problems;
  for (const Value& item : list->value.items) {
    NamedRule& rule = rules.emplace_back();
    for (const Value::Entry& entry : item.entries) {
      if (!read_key(entry, rule))
        problems.push_back({"hygiene.key",
                            fmt::format("{}: no such key, or not a value it can have", entry.key),
                            entry.place, ""});
    }
    if (rule.ids.empty() || rule.reason.empty() || item.find("verdict") == nullptr)
      problems.push_back({"hygiene.rule", "a rule has ids, verdict and reason", item.place, ""});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rules;
}

std::vector<NamedRule> shipped_rules() {
  std::vector<NamedRule> all;
  for (const EmbeddedRules& file : embedded_rules()) {
    Result<std::vector<NamedRule>> rules = parse_rules(file.json, std::string(file.file));
    SERVECAST_CHECK(rules.has_value());
    std::move(rules->begin(), rules->end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace servecast::fit
