// SPDX-License-Identifier: Apache-2.0
// Walks a description without a document: what fields exist, of which types, with which defaults.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.hpp"

namespace servecast::config {

// One field, or one type of a tagged mapping.
struct Outline {
  enum class Kind : std::uint8_t { Leaf, Single, Numbers, List, Mapping, Later };
  std::string name = {};
  std::string help = {};
  Kind kind = Kind::Leaf;
  std::optional<Item> item = {};               // Leaf; of Numbers one number
  std::optional<ScalarValue> by_default = {};  // Leaf
  bool required = false;
  std::string neutral = {};          // Later: the accepted value, if there is one
  std::string reason = {};           // Later
  std::vector<Outline> fields = {};  // Mapping: its own fields; List: those of an item
  std::string tag = {};  // Mapping: the field that picks a branch; empty when not tagged
  std::string tag_help = {};
  std::string tag_default = {};        // empty: required
  std::vector<Outline> branches = {};  // Mapping: each with the fields that only it has
};

// The outline of a mapping.
Outline outline_of(const Describe& fields);
// Names that a description accepts at its own level.
std::vector<std::string> field_names(const Describe& fields);

}  // namespace servecast::config
