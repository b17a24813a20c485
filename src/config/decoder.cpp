// SPDX-License-Identifier: Apache-2.0
#include "config/decoder.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "config/outline.hpp"
#include "config/strict.hpp"

namespace servecast::config {
namespace {

std::string yaml_of(const ScalarValue& scalar) {
  std::string out;
  if (const auto* whole = std::get_if<std::uint64_t>(&scalar)) append_unsigned(out, *whole);
  if (const auto* real = std::get_if<double>(&scalar)) append_double(out, *real);
  if (const auto* flag = std::get_if<bool>(&scalar)) out = *flag ? "true" : "false";
  if (const auto* words = std::get_if<std::string>(&scalar)) out = yaml_text(*words);
  return out;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(word, names);
  return nearest ? fmt::format("did you mean \"{}\"?", *nearest) : std::string();
}

// What to write instead of the usual slips with numbers.
std::string number_hint(const Value& value) {
  if (value.kind != Value::Kind::Scalar) return {};
  if (value.quoted) return "write it without quotes";
  const std::string& text = value.text;
  if (text.find('_') != std::string::npos) return "write digits without '_'";
  if (text.size() > 1 && text[0] == '0' && text[1] != '.')
    return "write plain decimal digits without leading zeros";
  if (!text.empty() && text[0] == '+') return "write it without '+'";
  return {};
}

std::string number(double value) {
  std::string text;
  append_double(text, value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// A bound that only a type sets is left out where the other one is broken.
std::string limits_text(const Whole& limits, bool below) {
  const bool by_type = limits.max == UINT64_MAX || limits.max == UINT32_MAX;
  if (below && by_type) return fmt::format("at least {}", limits.min);
  return fmt::format("from {} to {}", limits.min, limits.max);
}

std::string limits_text(const Real& limits) {
  const std::string bound =
      limits.above ? (limits.min == 0 ? "greater than zero" : "greater than " + number(limits.min))
                   : "at least " + number(limits.min);
  return std::isfinite(limits.max) ? bound + " and at most " + number(limits.max) : bound;
}

}  // namespace

Decoder::Decoder(const Value* mapping, std::string path, Place at, Decoding& shared)
    : mapping_(mapping), path_(std::move(path)), at_(std::move(at)), shared_(shared) {}

std::string Decoder::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Decoder::problem(std::string code, const Place& place, std::string message, std::string hint) {
  shared_.problems.push_back({std::move(code), std::move(message), place, std::move(hint)});
}

void Decoder::wrong_type(std::string_view name, const Value& value, const std::string& expected,
                         std::string hint) {
  problem("config.type", value.place,
          fmt::format("{} must be {}, not {}", path_of(name), expected, described(value)),
          std::move(hint));
}

void Decoder::record(std::string_view name, std::optional<std::string> yaml, const Value* value,
                     std::string_view help) {
  Setting setting{.path = path_of(name), .yaml = std::move(yaml), .place = {}, .help = help};
  if (value != nullptr) {
    setting.origin = value->origin;
    setting.place = value->place;
  }
  shared_.settings.push_back(std::move(setting));
}

const Value* Decoder::take(std::string_view name) {
  accepted_.emplace_back(name);
  known_.emplace_back(name);
  if (mapping_ == nullptr) return nullptr;
  const Value::Entry* entry = mapping_->find(name);
  return entry == nullptr ? nullptr : &entry->value;
}

std::optional<ScalarValue> Decoder::read_whole(const Item& item, const Value& value) {
  const auto number = as_whole(value);
  const std::string or_word = item.absent.empty() ? "" : fmt::format(" or \"{}\"", item.absent);
  if (!number) {
    std::string hint = number_hint(value);
    if (hint.empty() && as_real(value)) hint = "no point and no exponent";
    wrong_type(item.name, value, "a whole number" + or_word, std::move(hint));
    return std::nullopt;
  }
  const bool below = number->negative || (!number->overflow && number->magnitude < item.whole.min);
  if (below || number->overflow || number->magnitude > item.whole.max) {
    problem("config.range", value.place,
            fmt::format("{} must be {}, not {}", path_of(item.name), limits_text(item.whole, below),
                        value.text),
            "");
    return std::nullopt;
  }
  return number->magnitude;
}

std::optional<ScalarValue> Decoder::read_real(const Item& item, const Value& value) {
  const auto number = as_real(value);
  if (!number) {
    wrong_type(item.name, value, "a finite number", number_hint(value));
    return std::nullopt;
  }
  const Real& limits = item.real;
  if (*number < limits.min || (limits.above && *number == limits.min) || *number > limits.max) {
    problem(
        "config.range", value.place,
        fmt::format("{} must be {}, not {}", path_of(item.name), limits_text(limits), value.text),
        "");
    return std::nullopt;
  }
  return *number;
}

std::optional<ScalarValue> Decoder::read_word(const Item& item, const Value& value) {
  std::vector<std::string> names(item.words.begin(), item.words.end());
  if (value.kind != Value::Kind::Scalar) {
    wrong_type(item.name, value, fmt::format("one of {}", fmt::join(names, ", ")));
    return std::nullopt;
  }
  if (contains(names, value.text)) return value.text;
  for (const auto& [name, reason] : item.later) {
    if (name != value.text) continue;
    problem("config.unsupported", value.place,
            fmt::format("{}: {}: {}", path_of(item.name), value.text, reason),
            fmt::format("accepted now: {}", fmt::join(names, ", ")));
    return std::nullopt;
  }
  problem("config.value", value.place,
          fmt::format("{} must be one of {}, not {}", path_of(item.name), fmt::join(names, ", "),
                      described(value)),
          did_you_mean(value.text, names));
  return std::nullopt;
}

std::optional<ScalarValue> Decoder::read(const Item& item, const Value& value) {
  switch (item.type) {
    case Item::Type::Whole:
      return read_whole(item, value);
    case Item::Type::Real:
      return read_real(item, value);
    case Item::Type::Word:
      return read_word(item, value);
    case Item::Type::Boolean: {
      const auto flag = as_boolean(value);
      if (!flag) wrong_type(item.name, value, "true or false");
      return flag ? std::optional<ScalarValue>(*flag) : std::nullopt;
    }
    case Item::Type::Text: {
      const auto words = as_text(value);
      if (!words) {
        const bool plain = value.kind == Value::Kind::Scalar;
        wrong_type(item.name, value, "text",
                   plain ? "put it in quotes if it is meant as text" : "");
      } else if (words->empty()) {
        problem("config.range", value.place,
                fmt::format("{} must not be empty", path_of(item.name)), "");
      }
      return words && !words->empty() ? std::optional<ScalarValue>(*words) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool Decoder::item(const Item& item, std::optional<ScalarValue>& value) {
  const Value* given = take(item.name);
  if (given != nullptr && given->kind == Value::Kind::Null && item.optional) given = nullptr;
  const bool is_absent_word = given != nullptr && !item.absent.empty() &&
                              given->kind == Value::Kind::Scalar && given->text == item.absent;
  if (given != nullptr && is_absent_word) {
    value.reset();
  } else if (given != nullptr) {
    // After a Problem the value keeps its default: nobody reads it.
    if (const auto scalar = read(item, *given)) value = *scalar;
  } else if (item.required) {
    problem("config.missing", at_, fmt::format("{} is required", path_of(item.name)),
            std::string(item.help));
  }
  if (item.is_seed && shared_.seed) {
    value = *shared_.seed;
    record(item.name, yaml_of(*value), nullptr, item.help);
    shared_.settings.back().origin = Origin::Seed;
    return true;
  }
  std::optional<std::string> yaml;
  if (value)
    yaml = yaml_of(*value);
  else if (!item.absent.empty())
    yaml = std::string(item.absent);
  record(item.name, std::move(yaml), given, item.help);
  return given != nullptr;
}

bool Decoder::single(std::string_view name, std::string& value, std::string_view help) {
  const Value* given = take(name);
  if (given == nullptr) {
    problem("config.missing", at_, fmt::format("{} is required", path_of(name)), std::string(help));
    return false;
  }
  if (given->kind != Value::Kind::Sequence) {
    wrong_type(name, *given, "a list of one file", "write [\"file\"]");
    return true;
  }
  if (given->items.size() != 1) {
    problem(
        "config.range", given->place,
        fmt::format("{} must name exactly one file, not {}", path_of(name), given->items.size()),
        "");
    return true;
  }
  const Value& only = given->items.front();
  const auto words = as_text(only);
  if (!words || words->empty()) {
    wrong_type(name, only, "a list of one file name", "put the name in quotes");
    return true;
  }
  value = *words;
  record(name, fmt::format("[{}]", yaml_text(value)), given, help);
  return true;
}

bool Decoder::list(std::string_view name, std::string_view help, const Describe& fields) {
  const Value* given = take(name);
  if (given == nullptr || given->kind == Value::Kind::Null) {
    record(name, std::nullopt, given, help);
    return false;
  }
  if (given->kind != Value::Kind::Sequence) {
    wrong_type(name, *given, "a list of mappings", "start each item with '-'");
    return true;
  }
  if (given->items.empty()) record(name, "[]", given, help);
  for (std::size_t i = 0; i < given->items.size(); ++i) {
    const Value& item = given->items[i];
    const std::string item_name = fmt::format("{}[{}]", name, i);
    if (item.kind != Value::Kind::Mapping) {
      wrong_type(item_name, item, "a mapping");
      continue;
    }
    Decoder child(&item, path_of(item_name), item.place, shared_);
    fields(child);
    child.finish();
  }
  return !given->items.empty();
}

bool Decoder::numbers(std::string_view name, std::vector<double>& values, const Real& limits,
                      std::string_view help) {
  const Value* given = take(name);
  if (!limits.required && (given == nullptr || given->kind == Value::Kind::Null)) {
    record(name, std::nullopt, given, help);
    return false;
  }
  if (given == nullptr) {
    problem("config.missing", at_, fmt::format("{} is required", path_of(name)), std::string(help));
    return false;
  }
  if (given->kind != Value::Kind::Sequence) {
    wrong_type(name, *given, "a list of numbers", "write [0.8, 0.6]");
    return true;
  }
  values.clear();
  std::string yaml;
  for (std::size_t i = 0; i < given->items.size(); ++i) {
    const std::string item_name = fmt::format("{}[{}]", name, i);
    const Item item{.name = item_name, .type = Item::Type::Real, .real = limits};
    const auto real = read_real(item, given->items[i]);
    if (!real) continue;
    values.push_back(std::get<double>(*real));
    yaml += (yaml.empty() ? "" : ", ") + yaml_of(*real);
  }
  record(name, fmt::format("[{}]", yaml), given, help);
  return true;
}

bool Decoder::mapping(std::string_view name, Presence presence, std::string_view help,
                      const Describe& fields) {
  const Value* given = take(name);
  if (given != nullptr && given->kind == Value::Kind::Null && presence == Presence::Optional)
    given = nullptr;
  if (given != nullptr && given->kind != Value::Kind::Mapping) {
    wrong_type(name, *given, "a mapping",
               given->kind == Value::Kind::Null ? "write {} for all defaults" : "");
    return true;
  }
  if (given == nullptr && presence == Presence::Required)
    problem("config.missing", at_, fmt::format("{} is required", path_of(name)), std::string(help));
  if (given == nullptr && presence != Presence::Defaulted) return false;
  Decoder child(given, path_of(name), given != nullptr ? given->place : at_, shared_);
  fields(child);
  child.finish();
  return given != nullptr;
}

void Decoder::note_foreign(const std::vector<Branch>& branches, std::size_t chosen) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (i == chosen || !branches[i].fields || !branches[i].later.empty()) continue;
    for (const std::string& name : field_names(branches[i].fields)) {
      auto found = std::find_if(foreign_.begin(), foreign_.end(),
                                [&](const Foreign& foreign) { return foreign.name == name; });
      if (found == foreign_.end()) found = foreign_.insert(foreign_.end(), {name, {}});
      found->types.emplace_back(branches[i].name);
    }
  }
}

void Decoder::tagged(std::string_view name, std::string_view by_default, std::string_view help,
                     const std::vector<Branch>& branches) {
  Item item{.name = name, .help = help, .type = Item::Type::Word};
  for (const Branch& branch : branches) {
    if (branch.later.empty())
      item.words.push_back(branch.name);
    else
      item.later.emplace_back(branch.name, branch.later);
  }
  const std::size_t problems_before = shared_.problems.size();
  std::optional<ScalarValue> type;
  if (!by_default.empty()) type = std::string(by_default);
  item.required = by_default.empty();
  const bool given = this->item(item, type);
  if (shared_.problems.size() > problems_before || !type) {
    skip_unknown_ = true;
    return;
  }
  const std::string& chosen_name = std::get<std::string>(*type);
  const auto chosen = static_cast<std::size_t>(
      std::find_if(branches.begin(), branches.end(),
                   [&](const Branch& branch) { return branch.name == chosen_name; }) -
      branches.begin());
  tag_ = Tag{std::string(name), chosen_name, given,
             given ? mapping_->find(name)->value.origin : Origin::Default};
  note_foreign(branches, chosen);
  branches[chosen].choose();
  if (branches[chosen].fields) branches[chosen].fields(*this);
}

void Decoder::later(std::string_view name, std::string_view neutral, std::string_view reason) {
  known_.emplace_back(name);
  const Value::Entry* entry = mapping_ == nullptr ? nullptr : mapping_->find(name);
  if (entry == nullptr || entry->value.kind == Value::Kind::Null) return;
  if (!neutral.empty() && entry->value.kind == Value::Kind::Scalar && entry->value.text == neutral)
    return;
  problem("config.unsupported", entry->place, fmt::format("{}: {}", path_of(name), reason),
          neutral.empty() ? "remove it" : fmt::format("remove it or write {}", neutral));
}

void Decoder::refuse(std::string_view path, std::string message, std::string hint) {
  const Value* value = mapping_;
  Place place = value != nullptr ? value->place : at_;
  for (std::string_view rest = path; value != nullptr && !rest.empty();) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const Value::Entry* entry = value->find(rest.substr(0, dot));
    value = entry != nullptr ? &entry->value : nullptr;
    if (value != nullptr) place = value->place;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  problem("config.rule", place,
          fmt::format("{}: {}", path.empty() ? path_ : path_of(path), message), std::move(hint));
}

void Decoder::report_foreign(const Value::Entry& entry, const Foreign& foreign) {
  std::string hint =
      fmt::format("{} goes with {}: {}", entry.key, tag_->name, fmt::join(foreign.types, ", "));
  if (tag_->origin == Origin::Set)
    hint = fmt::format("replace the whole mapping: --set '{}={{{}: {}, ...}}'", path_, tag_->name,
                       tag_->type);
  problem("config.foreign_field", entry.place,
          fmt::format("{}: the type {}{} does not accept the field {}; it accepts {}",
                      path_of(entry.key), tag_->type, tag_->given ? "" : " (the default)",
                      entry.key, fmt::join(accepted_, ", ")),
          std::move(hint));
}

void Decoder::finish() {
  if (mapping_ == nullptr || skip_unknown_) return;
  for (const Value::Entry& entry : mapping_->entries) {
    if (contains(known_, entry.key)) continue;
    const auto foreign = std::find_if(foreign_.begin(), foreign_.end(),
                                      [&](const Foreign& f) { return f.name == entry.key; });
    if (foreign != foreign_.end()) {
      report_foreign(entry, *foreign);
      continue;
    }
    problem(
        "config.unknown_key", entry.place,
        fmt::format("{} is not a field of this configuration, which is strict; accepted here: {}",
                    path_of(entry.key), fmt::join(accepted_, ", ")),
        did_you_mean(entry.key, accepted_));
  }
}

}  // namespace servecast::config
