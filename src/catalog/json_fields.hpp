// SPDX-License-Identifier: Apache-2.0
// Strict reading of one JSON object: every key is asked for once, what is left over is a Problem.
// Includes the JSON library, so only sources of this room include it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

namespace servecast::catalog {

class Fields {
 public:
  // Nothing, and a Problem, when `json` is not one object. `file` must outlive the reader.
  static std::optional<Fields> parse(std::string_view json, std::string_view file,
                                     Problems& problems);

  std::uint64_t whole(const char* key);  // > 0
  std::uint64_t whole_or_zero(const char* key);
  std::uint32_t count(const char* key);  // > 0, fits 32 bits
  std::uint32_t count_or_zero(const char* key);
  double number(const char* key);  // finite, >= 0
  bool flag(const char* key);
  std::string text(const char* key);  // not empty
  std::string any_text(const char* key);
  std::vector<std::string> texts(const char* key);  // a list of texts
  Fields object(const char* key);
  std::vector<Fields> objects(const char* key);  // a list of objects

  bool has(const char* key);  // counts the key as known
  std::vector<std::string> keys() const;
  void problem(std::string code, const std::string& key, const std::string& rule,
               std::string hint = {});
  // Adds a Problem for each key that nobody asked for.
  void finish();

 private:
  struct Object;  // wraps the library's value

  // `path` names the object in messages: "" for the whole file, "attention." for a part.
  Fields(std::shared_ptr<const Object> object, std::string path, std::string_view file,
         Problems& problems);
  // The value under `key`; nothing, and a Problem, when it is missing.
  std::shared_ptr<const Object> find(const char* key);
  std::uint64_t unsigned_number(const char* key, std::uint64_t min, std::uint64_t max);

  std::shared_ptr<const Object> object_;
  std::string path_;
  std::string_view file_;
  Problems* problems_;
  std::vector<std::string> known_;
};

}  // namespace servecast::catalog
