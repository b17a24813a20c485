// SPDX-License-Identifier: Apache-2.0
#include "config/cards.hpp"

#include <fmt/core.h>

#include "catalog/user_files.hpp"
#include "config/yaml.hpp"

namespace servecast::config {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

// Whether JSON reads the text as a number, true, false or null too.
bool is_bare(const std::string& text) {
  if (text == "true" || text == "false" || text == "null") return true;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9')
      ++digits;
    else if (c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E')
      return false;
  }
  return digits > 0 && text.back() >= '0' && text.back() <= '9' && text.front() != '.';
}

// The document as JSON, which the catalog reads strictly.
std::string json_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null:
      return "null";
    case Value::Kind::Scalar:
      return !value.quoted && is_bare(value.text) ? value.text : quoted(value.text);
    case Value::Kind::Sequence: {
      std::string out;
      for (const Value& item : value.items) out += (out.empty() ? "" : ",") + json_of(item);
      return "[" + out + "]";
    }
    case Value::Kind::Mapping:
      break;
  }
  std::string out;
  for (const Value::Entry& entry : value.entries)
    out += (out.empty() ? "" : ",") + quoted(entry.key) + ":" + json_of(entry.value);
  return "{" + out + "}";
}

Result<catalog::ModelCard> card_of(const std::string& name) {
  return catalog::names_a_file(name) ? catalog::load_model(name) : catalog::find_model(name);
}

}  // namespace

Result<catalog::ModelCard> model_of(const Engine& engine) {
  if (!engine.model_like) return card_of(engine.model);
  Result<catalog::ModelCard> card = card_of(*engine.model_like);
  if (card) card->name = fmt::format("{} (like {})", engine.model, card->name);
  return card;
}

Result<catalog::SystemCard> system_of(const Engine& engine) {
  if (!catalog::names_a_file(engine.hardware)) return catalog::find_system(engine.hardware);
  const Result<Value> document = read_yaml_file(engine.hardware);
  if (!document) return tl::unexpected(document.error());
  return catalog::parse_system_card(json_of(*document), engine.hardware);
}

}  // namespace servecast::config
