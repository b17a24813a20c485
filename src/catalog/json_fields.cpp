// SPDX-License-Identifier: Apache-2.0
#include "catalog/json_fields.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace servecast::catalog {
struct Fields::Object {
  nlohmann::json value;
};

Fields::Fields(std::shared_ptr<const Object> object, std::string path, std::string_view file,
               Problems& problems)
    : object_(std::move(object)), path_(std::move(path)), file_(file), problems_(&problems) {}

std::optional<Fields> Fields::parse(std::string_view json, std::string_view file,
                                    Problems& problems) {
  Object root{nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false)};
  if (root.value.is_object())
    return Fields(std::make_shared<const Object>(std::move(root)), "", file, problems);
  problems.push_back({.code = "card.syntax",
                      .message = "a card must be one JSON object",
                      .place = {.file = std::string(file)},
                      .hint = {}});
  return std::nullopt;
}

void Fields::problem(std::string code, const std::string& key, const std::string& rule,
                     std::string hint) {
  problems_->push_back({.code = std::move(code),
                        .message = fmt::format("{}{} {}", path_, key, rule),
                        .place = {.file = std::string(file_)},
                        .hint = std::move(hint)});
}

bool Fields::has(const char* key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return object_->value.contains(key);
}

std::shared_ptr<const Fields::Object> Fields::find(const char* key) {
  if (has(key)) return std::make_shared<const Object>(Object{object_->value[key]});
  problem("card.missing_key", key, "is missing");
  return nullptr;
}

std::uint64_t Fields::unsigned_number(const char* key, std::uint64_t min, std::uint64_t max) {
  const auto value = find(key);
  if (!value) return 0;
  if (value->value.is_number_unsigned()) {
    const auto number = value->value.get<std::uint64_t>();
    if (number >= min && number <= max) return number;
  }
  problem(
      "card.wrong_value", key,
      fmt::format("is {}; it must be a whole number from {} to {}", value->value.dump(), min, max));
  return 0;
}

std::uint64_t Fields::whole(const char* key) {
  return unsigned_number(key, 1, std::numeric_limits<std::uint64_t>::max());
}
std::uint64_t Fields::whole_or_zero(const char* key) {
  return unsigned_number(key, 0, std::numeric_limits<std::uint64_t>::max());
}
std::uint32_t Fields::count(const char* key) {
  return static_cast<std::uint32_t>(
      unsigned_number(key, 1, std::numeric_limits<std::uint32_t>::max()));
}
std::uint32_t Fields::count_or_zero(const char* key) {
  return static_cast<std::uint32_t>(
      unsigned_number(key, 0, std::numeric_limits<std::uint32_t>::max()));
}

double Fields::number(const char* key) {
  const auto value = find(key);
  if (!value) return 0.0;
  if (value->value.is_number()) {
    const auto number = value->value.get<double>();
    if (std::isfinite(number) && number >= 0.0) return number;
  }
  problem("card.wrong_value", key,
          fmt::format("is {}; it must be a number, 0 or more", value->value.dump()));
  return 0.0;
}

bool Fields::flag(const char* key) {
  const auto value = find(key);
  if (!value) return false;
  if (value->value.is_boolean()) return value->value.get<bool>();
  problem("card.wrong_value", key,
          fmt::format("is {}; it must be true or false", value->value.dump()));
  return false;
}

std::string Fields::any_text(const char* key) {
  const auto value = find(key);
  if (!value) return {};
  if (value->value.is_string()) return value->value.get<std::string>();
  problem("card.wrong_value", key, fmt::format("is {}; it must be text", value->value.dump()));
  return {};
}

std::string Fields::text(const char* key) {
  const std::size_t before = problems_->size();
  std::string text = any_text(key);
  if (text.empty() && problems_->size() == before)
    problem("card.wrong_value", key, "is empty; it must be text");
  return text;
}

std::vector<std::string> Fields::texts(const char* key) {
  std::vector<std::string> all;
  const auto value = find(key);
  if (!value) return all;
  const bool fine = value->value.is_array() &&
                    std::all_of(value->value.begin(), value->value.end(),
                                [](const nlohmann::json& one) { return one.is_string(); });
  if (fine) return value->value.get<std::vector<std::string>>();
  problem("card.wrong_value", key, "must be a list of texts");
  return all;
}

std::vector<Fields> Fields::objects(const char* key) {
  std::vector<Fields> all;
  const auto value = find(key);
  if (!value) return all;
  const bool fine = value->value.is_array() &&
                    std::all_of(value->value.begin(), value->value.end(),
                                [](const nlohmann::json& one) { return one.is_object(); });
  if (!fine) {
    problem("card.wrong_value", key, "must be a list of objects");
    return all;
  }
  for (std::size_t i = 0; i < value->value.size(); ++i)
    all.push_back(Fields(std::make_shared<const Object>(Object{value->value[i]}),
                         fmt::format("{}{}[{}].", path_, key, i), file_, *problems_));
  return all;
}

Fields Fields::object(const char* key) {
  const std::string path = path_ + key + ".";
  const auto value = find(key);
  if (value && value->value.is_object()) return Fields(value, path, file_, *problems_);
  if (value)
    problem("card.wrong_value", key,
            fmt::format("is {}; it must be an object", value->value.dump()));
  return Fields(std::make_shared<const Object>(Object{nlohmann::json::object()}), path, file_,
                *problems_);
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> all;
  for (const auto& item : object_->value.items()) all.push_back(item.key());
  return all;
}

void Fields::finish() {
  for (const std::string& key : keys()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const auto near = nearest_name(key, known_);
    problem("card.unknown_key", key, "is not a key of this object",
            near ? fmt::format("did you mean {}?", *near) : std::string{});
  }
}

}  // namespace servecast::catalog
