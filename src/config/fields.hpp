// SPDX-License-Identifier: Apache-2.0
// How the configuration looks, described once. A describe function names the fields of one mapping,
// one line a field; decoding, the JSON Schema, the reference page and `explain` all walk the same
// description.
//
//   void describe(Fields& f, workload::Load& load) {
//     f.whole("concurrency", load.concurrency, {.min = 1}, "Requests in flight at most.");
//   }
//
// A describe function must not depend on values other than through tagged(): it is also walked
// without a document.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/problem.hpp"

namespace servecast::config {

// Limits of a whole number, inclusive.
struct Whole {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  bool required = false;
};

// Limits of a real number: min inclusive unless `above`, max inclusive.
struct Real {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool above = false;
  bool required = false;
};

// One accepted word of an enumeration, or one that is known but not built: then `later` says why it
// is refused.
template <class E>
struct Word {
  std::string_view name = {};
  E value{};
  std::string_view later = {};
};

// A mapping that the document leaves out: an error, its defaults hold, or it is not there.
enum class Presence : std::uint8_t { Required, Defaulted, Optional };

class Fields;
using Describe = std::function<void(Fields&)>;

// One type of a tagged mapping: its word, what choosing it does, and the fields that only it has.
struct Branch {
  std::string_view name = {};
  std::string_view help = {};
  std::function<void()> choose = {};
  Describe fields = {};
  std::string_view later = {};  // known but not built: why it is refused
};

using ScalarValue = std::variant<std::uint64_t, double, bool, std::string>;

// One scalar field as the walkers see it.
struct Item {
  enum class Type : std::uint8_t { Whole, Real, Boolean, Text, Word };
  std::string_view name = {};
  std::string_view help = {};
  Type type = Type::Whole;
  Whole whole = {};
  Real real = {};
  bool required = false;
  bool optional = false;         // may be absent without a default; null means absent
  std::string_view absent = {};  // the word that stands for absent ("auto"), if there is one
  bool is_seed = false;          // replaced by --seed
  std::vector<std::string_view> words = {};  // Word: accepted
  std::vector<std::pair<std::string_view, std::string_view>> later =
      {};  // Word: refused, with the reason
};

class Fields {
 public:
  virtual ~Fields() = default;

  // Each returns whether the document gave the field; the value keeps its default when it did not.
  bool whole(std::string_view name, std::uint32_t& value, Whole limits, std::string_view help);
  bool whole(std::string_view name, std::uint64_t& value, Whole limits, std::string_view help);
  template <class T>
  bool whole(std::string_view name, std::optional<T>& value, Whole limits, std::string_view help,
             std::string_view absent = {});
  bool real(std::string_view name, double& value, Real limits, std::string_view help);
  bool real(std::string_view name, std::optional<double>& value, Real limits,
            std::string_view help);
  bool boolean(std::string_view name, bool& value, std::string_view help);
  bool boolean(std::string_view name, std::optional<bool>& value, std::string_view help);
  bool text(std::string_view name, std::string& value, std::string_view help);  // required
  bool text(std::string_view name, std::optional<std::string>& value, std::string_view help);
  bool seed(std::string_view name, std::uint64_t& value, std::string_view help);
  template <class E>
  bool word(std::string_view name, E& value, const std::vector<Word<E>>& words,
            std::string_view help);
  template <class E>
  bool word(std::string_view name, std::optional<E>& value, const std::vector<Word<E>>& words,
            std::string_view help);

  // A list of exactly one text (lists of files that may grow later).
  virtual bool single(std::string_view name, std::string& value, std::string_view help) = 0;
  // A list of mappings, each described by `fields`, which is called with a new item; null and an
  // absent list are empty. Returns whether the document has any.
  virtual bool list(std::string_view name, std::string_view help, const Describe& fields) = 0;
  // A list of numbers, each within `limits`. It may be absent unless they say that it is required;
  // null is absent too then.
  virtual bool numbers(std::string_view name, std::vector<double>& values, const Real& limits,
                       std::string_view help) = 0;
  virtual bool mapping(std::string_view name, Presence presence, std::string_view help,
                       const Describe& fields) = 0;
  // The field `name` picks one branch; without it `by_default` is taken.
  virtual void tagged(std::string_view name, std::string_view by_default, std::string_view help,
                      const std::vector<Branch>& branches) = 0;
  // A field that the specification knows and this version refuses. `neutral` is the value that
  // means "not used" and is accepted; null is accepted always.
  virtual void later(std::string_view name, std::string_view neutral, std::string_view reason) = 0;

  // Is every value read so far fine? Rules that compare fields are checked only then; false without
  // a document.
  virtual bool is_clean() const = 0;
  // Reports a broken rule at the field `path` ("load.type") below this mapping, or at the nearest
  // mapping above it that the document has.
  virtual void refuse(std::string_view path, std::string message, std::string hint = {}) = 0;

 protected:
  // Puts the document's value into `value`; nullopt there means absent.
  virtual bool item(const Item& item, std::optional<ScalarValue>& value) = 0;

 private:
  template <class T>
  bool optional_item(Item field, std::optional<T>& value);
  template <class E>
  static Item word_item(std::string_view name, const std::vector<Word<E>>& words,
                        std::string_view help);
};

template <class T>
bool Fields::whole(std::string_view name, std::optional<T>& value, Whole limits,
                   std::string_view help, std::string_view absent) {
  limits.max = std::min<std::uint64_t>(limits.max, std::numeric_limits<T>::max());
  Item field{.name = name, .help = help, .type = Item::Type::Whole, .whole = limits};
  field.required = limits.required;
  field.optional = true;
  field.absent = absent;
  std::optional<ScalarValue> scalar = {};
  if (value) scalar = std::uint64_t{*value};
  const bool given = item(field, scalar);
  value.reset();
  if (scalar) value = static_cast<T>(std::get<std::uint64_t>(*scalar));
  return given;
}

template <class E>
Item Fields::word_item(std::string_view name, const std::vector<Word<E>>& words,
                       std::string_view help) {
  Item field{.name = name, .help = help, .type = Item::Type::Word};
  for (const Word<E>& candidate : words) {
    if (candidate.later.empty())
      field.words.push_back(candidate.name);
    else
      field.later.emplace_back(candidate.name, candidate.later);
  }
  return field;
}

template <class E>
bool Fields::word(std::string_view name, std::optional<E>& value, const std::vector<Word<E>>& words,
                  std::string_view help) {
  Item field = word_item(name, words, help);
  field.optional = true;
  std::optional<ScalarValue> scalar = {};
  for (const Word<E>& candidate : words) {
    if (candidate.later.empty() && value && candidate.value == *value)
      scalar = std::string(candidate.name);
  }
  const bool given = item(field, scalar);
  value.reset();
  for (const Word<E>& candidate : words) {
    if (candidate.later.empty() && scalar && std::get<std::string>(*scalar) == candidate.name)
      value = candidate.value;
  }
  return given;
}

template <class E>
bool Fields::word(std::string_view name, E& value, const std::vector<Word<E>>& words,
                  std::string_view help) {
  const Item field = word_item(name, words, help);
  std::optional<ScalarValue> scalar = {};
  for (const Word<E>& candidate : words) {
    if (candidate.later.empty() && candidate.value == value) scalar = std::string(candidate.name);
  }
  const bool given = item(field, scalar);
  for (const Word<E>& candidate : words) {
    if (candidate.later.empty() && scalar && std::get<std::string>(*scalar) == candidate.name)
      value = candidate.value;
  }
  return given;
}

}  // namespace servecast::config
