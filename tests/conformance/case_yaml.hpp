// SPDX-License-Identifier: Apache-2.0
// The files of cases/ as plain values. Strict: an unknown key, a case without expectations, an
// expectation without a number to check are errors, so that a typing mistake never reads as a
// passing test.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servecast::test {

// One YAML value with its line. A map keeps the order of the file.
struct Value {
  enum class Kind { Scalar, List, Map };
  Kind kind = Kind::Scalar;
  std::string scalar;
  std::vector<Value> list;
  std::vector<std::pair<std::string, Value>> map;
  int line = 0;
  std::string file;

  const Value* find(std::string_view key) const;  // of a map; nothing when absent
  const Value& at(std::string_view key) const;    // throws when absent
  double number() const;                          // throws when the text is not a number
  std::uint64_t count() const;                    // throws when not a whole number >= 0
  bool flag() const;                              // true or false, else throws
  // Throws with file and line when a key is not among `keys`.
  void only(std::initializer_list<std::string_view> keys) const;
  [[noreturn]] void refuse(const std::string& reason) const;
};

// The documents of one file. Throws std::runtime_error with file and line when it cannot be read.
std::vector<Value> read_yaml(const std::filesystem::path& path);

// All *.yaml files of a folder by name.
std::vector<std::filesystem::path> yaml_files(const std::filesystem::path& folder);

// A name for a test from a sentence: letters and digits, words joined by '_'.
std::string test_name(std::string_view sentence);

}  // namespace servecast::test
