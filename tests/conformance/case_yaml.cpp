// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

namespace servecast::test {
namespace {

Value convert(const YAML::Node& node, const std::string& file) {
  Value out;
  out.file = file;
  out.line = node.Mark().line + 1;
  if (node.IsSequence()) {
    out.kind = Value::Kind::List;
    for (const YAML::Node& item : node) out.list.push_back(convert(item, file));
  } else if (node.IsMap()) {
    out.kind = Value::Kind::Map;
    for (const auto& item : node) {
      const auto key = item.first.as<std::string>();
      if (out.find(key) != nullptr) out.refuse("the key " + key + " stands twice");
      out.map.emplace_back(key, convert(item.second, file));
    }
  } else if (node.IsScalar()) {
    out.scalar = node.Scalar();
  }
  return out;
}

}  // namespace

void Value::refuse(const std::string& reason) const {
  throw std::runtime_error(file + ":" + std::to_string(line) + ": " + reason);
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : map) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Value& Value::at(std::string_view key) const {
  if (const Value* value = find(key)) return *value;
  refuse("the key " + std::string(key) + " is missing");
}

double Value::number() const {
  double out = 0;
  const char* end = scalar.data() + scalar.size();
  const auto result = std::from_chars(scalar.data(), end, out);
  if (scalar.empty() || result.ec != std::errc() || result.ptr != end) {
    refuse("'" + scalar + "' is not a number");
  }
  return out;
}

std::uint64_t Value::count() const {
  std::uint64_t out = 0;
  const char* end = scalar.data() + scalar.size();
  const auto result = std::from_chars(scalar.data(), end, out);
  if (scalar.empty() || result.ec != std::errc() || result.ptr != end) {
    refuse("'" + scalar + "' is not a whole number");
  }
  return out;
}

bool Value::flag() const {
  if (scalar != "true" && scalar != "false") refuse("'" + scalar + "' is neither true nor false");
  return scalar == "true";
}

void Value::only(std::initializer_list<std::string_view> keys) const {
  if (kind != Kind::Map) refuse("a map is wanted here");
  for (const auto& [name, value] : map) {
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
      value.refuse("unknown key " + name);
    }
  }
}

std::vector<Value> read_yaml(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  std::vector<Value> out;
  try {
    for (const YAML::Node& node : YAML::LoadAllFromFile(path.string())) {
      out.push_back(convert(node, file));
    }
  } catch (const YAML::Exception& error) {
    throw std::runtime_error(file + ": " + error.what());
  }
  if (out.empty()) throw std::runtime_error(file + ": holds no case");
  return out;
}

std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(std::string_view sentence) {
  std::string out;
  for (const char c : sentence) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

}  // namespace servecast::test
