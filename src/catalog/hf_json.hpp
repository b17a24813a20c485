// SPDX-License-Identifier: Apache-2.0
// A config.json while it is read: facts by the first of several keys that is there, what is missing
// becomes a Problem. Only sources of this room include it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/problem.hpp"
#include "catalog/model_card.hpp"

namespace servecast::catalog {

using HfJson = nlohmann::json;

// Parses JSON in which NaN, Infinity and -Infinity stand for null. Discarded when it is none.
HfJson parse_lenient(std::string_view json);

class HfConfig {
 public:
  using Keys = std::initializer_list<const char*>;

  // `root` is the whole file and outlives the reader. Of a multimodal model facts stand in its
  // text_config.
  HfConfig(const HfJson& root, Problems& problems);

  const HfJson& root() const { return root_; }
  const HfJson& text() const { return text_; }

  // The first value that is there and not null.
  const HfJson* find(Keys keys) const { return find_in(text_, keys); }
  static const HfJson* find_in(const HfJson& object, Keys keys);
  std::optional<std::uint32_t> number(Keys keys);
  std::uint32_t number_or(Keys keys, std::uint32_t otherwise) {
    return number(keys).value_or(otherwise);
  }
  // A size above 0; its absence is a Problem.
  std::uint32_t size(Keys keys);
  bool flag(const char* key, bool otherwise) const;

  // The list under `key`, which must have one item for each of `layers`; nullptr when it is absent
  // or, with a Problem, wrong. Items past `layers` that stand for draft layers are allowed.
  const HfJson* per_layer(const char* key, std::uint32_t layers, std::uint32_t drafts = 0);

  void problem(std::string code, std::string message, std::string hint = {}) {
    problems_.push_back({.code = std::move(code),
                         .message = std::move(message),
                         .place = {},
                         .hint = std::move(hint)});
  }

 private:
  const HfJson& root_;
  const HfJson& text_;
  Problems& problems_;
};

// Fills groups, order and what belongs to layers (hf_layers.cpp). requires: architecture, family
// and hidden are set.
void read_layers(HfConfig& at, ModelCard& card);

// Fills the precision (hf_precision.cpp). requires: the layers are filled.
void read_precision(HfConfig& at, const HfJson* hf_quant_config, ModelCard& card);

}  // namespace servecast::catalog
