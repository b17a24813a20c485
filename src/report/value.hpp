// SPDX-License-Identifier: Apache-2.0
// A JSON value as the reports print it: numbers shortest round-trip (base/text.hpp), keys sorted.
//
//   Object model{{"name", "Qwen3-8B"}, {"layers", 36}};
//   std::string text = to_json(model, Layout::Compact);   // {"layers":36,"name":"Qwen3-8B"}
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace servecast::report {

struct Member;
class Value;
using Array = std::vector<Value>;
using Object = std::vector<Member>;  // any order; keys are unique. Printing sorts by key bytes.

class Value {
 public:
  Value();  // null
  Value(std::nullptr_t);
  template <std::same_as<bool> B>
  Value(B flag);
  template <std::signed_integral I>
  Value(I number);
  template <std::unsigned_integral U>
    requires(!std::same_as<U, bool>)
  Value(U number);
  Value(double number);
  Value(const char* text);
  Value(std::string_view text);
  Value(std::string text);
  Value(Array items);
  Value(Object members);
  template <class T>
  Value(const std::optional<T>& maybe) {
    if (maybe) *this = Value(*maybe);
  }

  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  bool is_null() const { return std::holds_alternative<std::monostate>(held_); }
  // The alternative asked for, or nullptr.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  // Any number as a double; nothing for what is not a number.
  std::optional<double> number() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      held_;
};

struct Member {
  std::string key;
  Value value;
};

// Here Member is complete, as the variant needs it.
template <std::same_as<bool> B>
Value::Value(B flag) : held_(flag) {}
template <std::signed_integral I>
Value::Value(I number) : held_(std::int64_t{number}) {}
template <std::unsigned_integral U>
  requires(!std::same_as<U, bool>)
Value::Value(U number) : held_(std::uint64_t{number}) {}

// The value under `key`, or nullptr.
const Value* find(const Object& object, std::string_view key);

enum class Layout { Compact, Indented };  // Indented: two spaces a level, as artifacts on disk

// requires: every number is finite, keys of one object are unique.
void append_json(std::string& out, const Value& value, Layout layout);
std::string to_json(const Value& value, Layout layout);
// A JSON string literal: minimal escapes, UTF-8 as it is; bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// JSON pointer (RFC 6901) of the first number that is not finite, depth first in key order.
std::optional<std::string> find_non_finite(const Value& value);

}  // namespace servecast::report
