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

std::string Fields::text(const char* key) {
  const auto value = find(key);
  if (!value) return {};
  if (value->value.is_string() && !value->value.get_ref<const std::string&>().empty())
    return value->value.get<std::string>();
  problem("card.wrong_value", key, fmt::format("is {}; it must be text", value->value.dump()));
  return {};
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

std::vector<std::string> Fields::texts(const char* key) {
  const auto value = find(key);
  if (!value) return {};
  const auto& list = value->value;
  const auto is_text = [](const nlohmann::json& item) {
    return item.is_string() && !item.get_ref<const std::string&>().empty();
  };
  if (list.is_array() && std::all_of(list.begin(), list.end(), is_text))
    return list.get<std::vector<std::string>>();
  problem("card.wrong_value", key, fmt::format("is {}; it must be a list of texts", list.dump()));
  return {};
}

std::vector<Fields> Fields::objects(const char* key) {
  const auto value = find(key);
  if (!value) return {};
  const auto& list = value->value;
  std::vector<Fields> all;
  if (list.is_array() && !list.empty() &&
      std::all_of(list.begin(), list.end(), [](const auto& item) { return item.is_object(); })) {
    for (const auto& item : list) {
      const std::string path = fmt::format("{}{}[{}].", path_, key, all.size());
      all.push_back(Fields(std::make_shared<const Object>(Object{item}), path, file_, *problems_));
    }
    return all;
  }
  problem("card.wrong_value", key, fmt::format("is {}; it must be a list of objects", list.dump()));
  return all;
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
