// SPDX-License-Identifier: Apache-2.0
// Walks a description with a document in hand: fills the values, records each with its origin, and
// reports every unknown, missing or wrong field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "config/fields.hpp"
#include "config/setting.hpp"
#include "config/value.hpp"

namespace servecast::config {

// What all decoders of one document share.
struct Decoding {
  std::optional<std::uint64_t> seed = {};  // replaces every seed field
  Settings settings = {};
  Problems problems = {};
};

class Decoder final : public Fields {
 public:
  // `mapping` is nullptr where the document has none: every field takes its default. `at` is where
  // a missing field is reported.
  Decoder(const Value* mapping, std::string path, Place at, Decoding& shared);

  // Reports the fields that nobody described. Called once, after the description was walked.
  void finish();

  bool single(std::string_view name, std::string& value, std::string_view help) override;
  bool list(std::string_view name, std::string_view help, const Describe& fields) override;
  bool numbers(std::string_view name, std::vector<double>& values, const Real& limits,
               std::string_view help) override;
  bool mapping(std::string_view name, Presence presence, std::string_view help,
               const Describe& fields) override;
  void tagged(std::string_view name, std::string_view by_default, std::string_view help,
              const std::vector<Branch>& branches) override;
  void later(std::string_view name, std::string_view neutral, std::string_view reason) override;
  bool is_clean() const override { return shared_.problems.empty(); }
  void refuse(std::string_view path, std::string message, std::string hint) override;

 protected:
  bool item(const Item& item, std::optional<ScalarValue>& value) override;

 private:
  // A field that only other types of this mapping have.
  struct Foreign {
    std::string name = {};
    std::vector<std::string> types = {};
  };
  struct Tag {
    std::string name;
    std::string type;
    bool given = false;
    Origin origin = Origin::Default;
  };

  const Value* take(std::string_view name);
  std::string path_of(std::string_view name) const;
  void problem(std::string code, const Place& place, std::string message, std::string hint);
  void wrong_type(std::string_view name, const Value& value, const std::string& expected,
                  std::string hint = {});
  void record(std::string_view name, std::optional<std::string> yaml, const Value* value,
              std::string_view help);
  std::optional<ScalarValue> read(const Item& item, const Value& value);
  std::optional<ScalarValue> read_whole(const Item& item, const Value& value);
  std::optional<ScalarValue> read_real(const Item& item, const Value& value);
  std::optional<ScalarValue> read_word(const Item& item, const Value& value);
  void note_foreign(const std::vector<Branch>& branches, std::size_t chosen);
  void report_foreign(const Value::Entry& entry, const Foreign& foreign);

  const Value* mapping_;
  std::string path_;
  Place at_;
  Decoding& shared_;
  std::vector<std::string> accepted_;  // described so far and supported
  std::vector<std::string> known_;     // described so far
  std::vector<Foreign> foreign_;
  std::optional<Tag> tag_;
  bool skip_unknown_ = false;  // the type is unknown or refused, so its fields are not judged
};

}  // namespace servecast::config
