// SPDX-License-Identifier: Apache-2.0
// A configuration document as a tree: scalars keep the text the user wrote, so that only strict.hpp
// decides what a number is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.hpp"

namespace servecast::config {

// Who gave a value.
enum class Origin : std::uint8_t { Default, File, Set, Seed };

struct Value {
  enum class Kind : std::uint8_t { Null, Scalar, Sequence, Mapping };
  struct Entry;

  Kind kind = Kind::Null;
  Origin origin = Origin::File;
  std::string text = {};  // Scalar
  bool quoted = false;    // Scalar in quotes: text, whatever it looks like
  Place place = {};
  std::vector<Value> items = {};  // Sequence
  std::vector<Entry> entries;     // Mapping, in document order; keys are distinct

  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Value::Entry {
  std::string key = {};
  Place place = {};
  Value value;
};

inline Value value_at(Value::Kind kind, Place place) {
  Value value;
  value.kind = kind;
  value.place = std::move(place);
  return value;
}

inline const Value::Entry* Value::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}
inline Value::Entry* Value::find(std::string_view key) {
  return const_cast<Entry*>(static_cast<const Value&>(*this).find(key));
}

}  // namespace servecast::config
