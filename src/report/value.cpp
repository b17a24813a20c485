// SPDX-License-Identifier: Apache-2.0
#include "report/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/text.hpp"

namespace servecast::report {
namespace {

std::vector<const Member*> sorted(const Object& object) {
  std::vector<const Member*> members;
  members.reserve(object.size());
  for (const Member& member : object) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const Member* a, const Member* b) { return a->key < b->key; });
  for (std::size_t i = 1; i < members.size(); ++i) {
    SERVECAST_CHECK(members[i - 1]->key != members[i]->key);
  }
  return members;
}

// Length of the UTF-8 sequence that starts at `text[i]`, 0 when it is none (RFC 3629).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) -> unsigned {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  const auto continues = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;  // overlong
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // past U+10FFFF
    return 4;
  }
  return 0;
}

void append_control(std::string& out, char c) {
  switch (c) {
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4U];
  out += kHex[static_cast<unsigned char>(c) & 15U];
}

class Printer {
 public:
  Printer(std::string& out, Layout layout) : out_(out), indented_(layout == Layout::Indented) {}

  void print(const Value& value) {
    if (value.is_null()) out_ += "null";
    if (const auto* flag = value.get<bool>()) out_ += *flag ? "true" : "false";
    if (const auto* number = value.get<std::int64_t>()) append_integer(out_, *number);
    if (const auto* number = value.get<std::uint64_t>()) append_unsigned(out_, *number);
    if (const auto* number = value.get<double>()) append_double(out_, *number);
    if (const auto* text = value.get<std::string>()) append_json_string(out_, *text);
    if (const auto* array = value.get<Array>()) print(*array);
    if (const auto* object = value.get<Object>()) print(*object);
  }

 private:
  void print(const Array& array) {
    open('[');
    for (const Value& item : array) {
      next(&item == array.data());
      print(item);
    }
    close(']', array.empty());
  }
  void print(const Object& object) {
    open('{');
    bool first = true;
    for (const Member* member : sorted(object)) {
      next(first);
      first = false;
      append_json_string(out_, member->key);
      out_ += indented_ ? ": " : ":";
      print(member->value);
    }
    close('}', object.empty());
  }
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void next(bool first) {
    if (!first) out_ += ',';
    break_line();
  }
  void close(char bracket, bool empty) {
    --depth_;
    if (!empty) break_line();
    out_ += bracket;
  }
  void break_line() {
    if (!indented_) return;
    out_ += '\n';
    out_.append(2 * depth_, ' ');
  }

  std::string& out_;
  bool indented_;
  std::size_t depth_ = 0;
};

std::string pointer_token(std::string_view key) {
  std::string token = "/";
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

}  // namespace

// Not in the class: there Member is still incomplete.
Value::Value() = default;
Value::Value(std::nullptr_t) {}
Value::Value(double number) : held_(number) {}
Value::Value(const char* text) : held_(std::string(text)) {}
Value::Value(std::string_view text) : held_(std::string(text)) {}
Value::Value(std::string text) : held_(std::move(text)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
Value::Value(Array items) : held_(std::move(items)) {}
Value::Value(Object members) : held_(std::move(members)) {}

std::optional<double> Value::number() const {
  if (const auto* number = get<std::int64_t>()) return static_cast<double>(*number);
  if (const auto* number = get<std::uint64_t>()) return static_cast<double>(*number);
  if (const auto* number = get<double>()) return *number;
  return std::nullopt;
}

const Value* find(const Object& object, std::string_view key) {
  for (const Member& member : object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

void append_json(std::string& out, const Value& value, Layout layout) {
  Printer(out, layout).print(value);
}

std::string to_json(const Value& value, Layout layout) {
  std::string out;
  append_json(out, value, layout);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(out, c);
      ++i;
    } else if (const std::size_t length = utf8_length(text, i); length > 0) {
      out.append(text, i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

std::optional<std::string> find_non_finite(const Value& value) {
  if (const auto* number = value.get<double>()) {
    if (!std::isfinite(*number)) return "";
  }
  if (const auto* array = value.get<Array>()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (auto rest = find_non_finite((*array)[i])) return "/" + std::to_string(i) + *rest;
    }
  }
  if (const auto* object = value.get<Object>()) {
    for (const Member* member : sorted(*object)) {
      if (auto rest = find_non_finite(member->value)) return pointer_token(member->key) + *rest;
    }
  }
  return std::nullopt;
}

}  // namespace servecast::report
