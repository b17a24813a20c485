// SPDX-License-Identifier: Apache-2.0
#include "workload/mooncake.hpp"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "workload/id_table.hpp"

namespace servecast::workload {
namespace {

namespace dom = simdjson::dom;
static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);

enum Field : std::size_t {
  RequestId,
  SessionId,
  InputLength,
  OutputLength,
  OutputTokenIds,
  HashIds,
  Timestamp,
  Delay,
  CancelAfter,
  Priority,
  StrictPriority,
  PolicyClass,
  ExtraKey,
  LoraName,
  CacheSalt,
  Images,
  kFieldCount
};

struct Key {
  std::string_view name;
  Field field;
};
constexpr std::array kKeys = {
    Key{"timestamp", Timestamp},
    Key{"input_length", InputLength},
    Key{"output_length", OutputLength},
    Key{"hash_ids", HashIds},
    Key{"session_id", SessionId},
    Key{"request_id", RequestId},
    Key{"delay", Delay},
    Key{"output_token_ids", OutputTokenIds},
    Key{"cancel_after", CancelAfter},
    Key{"priority", Priority},
    Key{"strict_priority", StrictPriority},
    Key{"policy_class", PolicyClass},
    Key{"extra_key", ExtraKey},
    Key{"lora_name", LoraName},
    Key{"cache_salt", CacheSalt},
    Key{"images", Images},
    Key{"input_tokens", InputLength},
    Key{"output_tokens", OutputLength},
    Key{"created_time", Timestamp},
    Key{"delay_ms", Delay},
    Key{"cancel_after_ms", CancelAfter},
};

// A value as the row has it, with the name it goes by there; no name when absent or null.
struct Given {
  std::string_view name;
  dom::element value;
  explicit operator bool() const { return !name.empty(); }
};
using Fields = std::array<Given, kFieldCount>;

// How a row fails.
struct Fault {
  std::string code, message, hint;
};
using Checked = std::optional<Fault>;

std::string cut(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  if (text.size() <= kShownMax) return std::string(text);
  return std::string(text.substr(0, kShownMax)) + "...";
}

std::string shown(dom::element value) {
  return cut(simdjson::minify(value));
}

Fault wrong(std::string_view field, dom::element value, std::string_view rule) {
  return {"trace.value", fmt::format("{} is {}: must be {}", field, shown(value), rule), ""};
}

Checked read_u32(const Given& given, std::uint32_t min, std::uint32_t& out) {
  std::uint64_t value = 0;
  if (given.value.get(value) != simdjson::SUCCESS || value < min || value > UINT32_MAX) {
    return wrong(given.name, given.value,
                 fmt::format("a whole number from {} to {}", min, UINT32_MAX));
  }
  out = static_cast<std::uint32_t>(value);
  return std::nullopt;
}

Checked read_text(const Given& given, std::string_view& out) {
  if (given.value.get(out) != simdjson::SUCCESS || out.empty()) {
    return wrong(given.name, given.value, "text that is not empty");
  }
  return std::nullopt;
}

constexpr std::string_view kAnyMs = "milliseconds, zero or more and at most 4.6e12";

// Whole milliseconds are converted without a detour through floating point, so that epoch times
// stay exact.
Checked read_ms(const Given& given, std::optional<std::int64_t>& out,
                std::string_view rule = kAnyMs) {
  constexpr std::uint64_t kWholeMax = 4'600'000'000'000;
  std::uint64_t whole = 0;
  double ms = 0;
  if (given.value.get(whole) == simdjson::SUCCESS && whole <= kWholeMax) {
    out = static_cast<std::int64_t>(whole * 1'000'000);
    return std::nullopt;
  }
  if (given.value.is_number() && given.value.get(ms) == simdjson::SUCCESS && ms >= 0)
    out = ns_from_ms(ms);
  if (!out) return wrong(given.name, given.value, rule);
  return std::nullopt;
}

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  out += '"';
}

// A whole number in decimal digits that 64 bits cannot hold.
bool is_too_large(std::string_view word) {
  const bool negative = word.starts_with('-');
  const std::string_view digits = word.substr(negative ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return false;
  std::int64_t below_zero = 0;
  std::uint64_t positive = 0;
  const char* const end = word.data() + word.size();
  const auto result = negative ? std::from_chars(word.data(), end, below_zero)
                               : std::from_chars(word.data(), end, positive);
  return result.ec == std::errc::result_out_of_range;
}

// What keeps a line from being JSON, in words; names the field when a number is the cause.
Fault not_json(std::string_view line, simdjson::error_code code) {
  if (code == simdjson::UTF8_ERROR) return {"trace.json", "the line is not UTF-8", ""};
  constexpr std::string_view kBetweenWords = "{}[],:\" \t\r";
  // Walk the tokens outside of strings: writers spell NaN and infinity as bare words.
  std::string_view key;
  int open = 0;  // braces and brackets
  bool is_text_open = false;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '"') {
      const std::size_t start = ++i;
      while (i < line.size() && line[i] != '"') i += line[i] == '\\' ? 2 : 1;
      key = line.substr(start, std::min(i, line.size()) - start);
      is_text_open = i >= line.size();
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < line.size() && kBetweenWords.find(line[i]) == kBetweenWords.npos) ++i;
    if (i == start) {
      if (line[i] == '{' || line[i] == '[') ++open;
      if (line[i] == '}' || line[i] == ']') --open;
      ++i;
      continue;
    }
    const std::string word(line.substr(start, i - start));
    if (is_too_large(word)) {
      return {"trace.value", fmt::format("{} is {}: the number is too large", cut(key), cut(word)),
              ""};
    }
    char* end = nullptr;
    const double number = std::strtod(word.c_str(), &end);
    if (end == word.c_str() + word.size() && !std::isfinite(number)) {
      return {"trace.value", fmt::format("{} is {}: must be a finite number", cut(key), word), ""};
    }
  }
  const std::size_t first = line.find_first_not_of(" \t");
  const bool is_object = first != line.npos && line[first] == '{';
  if (is_object && (open > 0 || is_text_open)) {
    return {"trace.json", "the line ends inside its JSON object", "the file may be cut off here"};
  }
  return {"trace.json", "the line is not one JSON object", ""};
}

class MooncakeReader {
 public:
  MooncakeReader(const TraceSource& source, TraceBuilder& builder)
      : block_size_(source.block_size), path_(source.path), builder_(builder) {}
  void read_line(std::string_view line, std::uint64_t number);
  void finish();

 private:
  Checked sort_fields(dom::object object, Fields& fields);
  Checked note_unknown(std::string_view name);
  Checked decode(const Fields& fields, TraceRow& row);
  Checked decode_lengths(const Fields& fields, TraceRow& row);
  Checked decode_hash_ids(const Given& given, Turn& turn);
  Checked decode_authored(const Given& given, Turn& turn);
  Checked decode_times(const Fields& fields, TraceRow& row);
  Checked decode_extra_key(const Fields& fields, Turn& turn);
  Checked decode_metadata(const Fields& fields, TraceRow& row);
  Checked decode_images(const Given& given, const Turn& turn);

  std::uint32_t block_size_;
  std::string path_;
  TraceBuilder& builder_;
  dom::parser parser_;
  IdTable ids_;
  std::uint64_t rows_without_ids_ = 0;
  std::vector<std::string> unknown_;  // names of the file, in first-seen order
  std::vector<std::string_view> unknown_in_row_;
  std::string metadata_;       // of the row at hand
  std::vector<Image> images_;  // of the row at hand
};

void MooncakeReader::read_line(std::string_view line, std::uint64_t number) {
  const auto reject = [&](const Fault& fault) {
    builder_.problems().add(number, fault.code, fault.message, fault.hint);
  };
  dom::element document;
  dom::object object;
  const auto code = parser_.parse(line.data(), line.size(), false).get(document);
  if (code != simdjson::SUCCESS) return reject(not_json(line, code));
  if (document.get(object) != simdjson::SUCCESS) {
    return reject(
        {"trace.json", fmt::format("the line is {}: must be a JSON object", shown(document)), ""});
  }
  Fields fields;
  TraceRow row;
  row.line = number;
  Checked fault = sort_fields(object, fields);
  if (!fault) fault = decode(fields, row);
  if (!fault) return builder_.add(row);
  std::string_view session;
  if (fields[SessionId] && !read_text(fields[SessionId], session)) builder_.skip(session);
  reject(*fault);
}

Checked MooncakeReader::sort_fields(dom::object object, Fields& fields) {
  unknown_in_row_.clear();
  Checked fault;
  for (const dom::key_value_pair pair : object) {
    const auto* key = std::find_if(kKeys.begin(), kKeys.end(),
                                   [&](const Key& known) { return known.name == pair.key; });
    if (key == kKeys.end()) {
      if (!fault) fault = note_unknown(pair.key);
      continue;
    }
    Given& given = fields[key->field];
    if (given && !fault) {
      fault = Fault{
          "trace.duplicate_key",
          given.name == pair.key
              ? fmt::format("{} is given twice", pair.key)
              : fmt::format("{} and {} are two names of one field: give one", given.name, pair.key),
          ""};
    }
    given = {pair.key, pair.value};
  }
  // Null says the same as absence.
  for (Given& given : fields) {
    if (given && given.value.is_null()) given.name = {};
  }
  return fault;
}

Checked MooncakeReader::note_unknown(std::string_view name) {
  constexpr std::size_t kNamesMax = 8;
  if (std::find(unknown_in_row_.begin(), unknown_in_row_.end(), name) != unknown_in_row_.end()) {
    return Fault{"trace.duplicate_key", fmt::format("{} is given twice", name), ""};
  }
  unknown_in_row_.push_back(name);
  if (unknown_.size() < kNamesMax &&
      std::find(unknown_.begin(), unknown_.end(), name) == unknown_.end()) {
    unknown_.emplace_back(name);
  }
  return std::nullopt;
}

Checked MooncakeReader::decode(const Fields& fields, TraceRow& row) {
  if (const Given& given = fields[SessionId]) {
    std::string_view name;
    if (auto fault = read_text(given, name)) return fault;
    row.session = name;
  }
  if (const Given& given = fields[RequestId]) {
    if (auto fault = read_text(given, row.request_name)) return fault;
  }
  if (auto fault = decode_lengths(fields, row)) return fault;
  if (auto fault = decode_times(fields, row)) return fault;
  if (auto fault = decode_extra_key(fields, row.turn)) return fault;
  if (auto fault = decode_metadata(fields, row)) return fault;
  row.metadata = metadata_;
  images_.clear();
  if (fields[Images]) {
    if (auto fault = decode_images(fields[Images], row.turn)) return fault;
  }
  row.images = images_;
  return std::nullopt;
}

Checked MooncakeReader::decode_lengths(const Fields& fields, TraceRow& row) {
  const Given& input = fields[InputLength];
  const Given& output = fields[OutputLength];
  if (!output) return Fault{"trace.missing", "output_length is missing: a row needs it", ""};
  if (auto fault = read_u32(output, 0, row.turn.output_tokens)) return fault;
  if (input) {
    if (auto fault = read_u32(input, 1, row.turn.input_tokens)) return fault;
  }
  if (const Given& hash_ids = fields[HashIds]) {
    if (auto fault = decode_hash_ids(hash_ids, row.turn)) return fault;
  } else {
    if (!input) {
      return Fault{"trace.missing",
                   "input_length and hash_ids are missing: a row needs one of them", ""};
    }
    ++rows_without_ids_;
  }
  if (const Given& given = fields[OutputTokenIds]) return decode_authored(given, row.turn);
  return std::nullopt;
}

// requires: turn.input_tokens is 0 when the row gives no input_length.
Checked MooncakeReader::decode_hash_ids(const Given& given, Turn& turn) {
  dom::array array;
  if (given.value.get(array) != simdjson::SUCCESS) {
    return wrong(given.name, given.value, "a list of whole numbers");
  }
  std::vector<std::uint32_t>& ids = builder_.ids();
  turn.ids_first = ids.size();
  for (const dom::element element : array) {
    const std::uint64_t position = ids.size() - turn.ids_first;
    std::uint64_t id = 0;
    if (element.get(id) != simdjson::SUCCESS) {
      return wrong(fmt::format("hash_ids[{}]", position), element,
                   "a whole number from 0 to 2^64 - 1");
    }
    const auto dense = ids_.intern(id);
    if (!dense) {
      return Fault{"trace.too_many_ids",
                   fmt::format("hash_ids[{}] is {}: the file has more than {} distinct ids",
                               position, id, IdTable::kCountMax),
                   ""};
    }
    ids.push_back(*dense);
  }
  const std::uint64_t count = ids.size() - turn.ids_first;
  if (turn.input_tokens == 0) {
    const std::uint64_t tokens = count * block_size_;
    if (count == 0 || tokens > UINT32_MAX) {
      return Fault{
          "trace.hash_ids",
          fmt::format("input_length is missing and {} hash_ids of {} tokens make {}: must be from "
                      "1 to {} tokens",
                      count, block_size_, tokens, UINT32_MAX),
          ""};
    }
    turn.input_tokens = static_cast<std::uint32_t>(tokens);
  }
  const std::uint64_t wanted = (std::uint64_t{turn.input_tokens} + block_size_ - 1) / block_size_;
  if (count != wanted) {
    return Fault{
        "trace.hash_ids",
        fmt::format("hash_ids has {} ids but an input of {} tokens in blocks of {} needs {}", count,
                    turn.input_tokens, block_size_, wanted),
        "traffic.source.block_size must be that of the trace"};
  }
  turn.ids_count = static_cast<std::uint32_t>(count);
  return std::nullopt;
}

Checked MooncakeReader::decode_authored(const Given& given, Turn& turn) {
  dom::array array;
  if (given.value.get(array) != simdjson::SUCCESS) {
    return wrong(given.name, given.value, "a list of whole numbers");
  }
  std::vector<std::uint32_t>& tokens = builder_.authored();
  turn.authored = true;
  turn.authored_first = tokens.size();
  for (const dom::element element : array) {
    const std::string name =
        fmt::format("output_token_ids[{}]", tokens.size() - turn.authored_first);
    std::uint32_t token = 0;
    if (auto fault = read_u32({name, element}, 0, token)) return fault;
    tokens.push_back(token);
  }
  const std::uint64_t count = tokens.size() - turn.authored_first;
  if (count != turn.output_tokens) {
    return Fault{
        "trace.value",
        fmt::format("output_token_ids has {} tokens but output_length is {}: must be equal", count,
                    turn.output_tokens),
        ""};
  }
  return std::nullopt;
}

Checked MooncakeReader::decode_times(const Fields& fields, TraceRow& row) {
  if (const Given& given = fields[Timestamp]) {
    if (auto fault = read_ms(given, row.time_ns)) return fault;
  }
  if (const Given& given = fields[Delay]) {
    if (auto fault = read_ms(given, row.delay_ns)) return fault;
  }
  if (const Given& given = fields[CancelAfter]) {
    std::optional<std::int64_t> ns;
    constexpr std::string_view kRule = "milliseconds, more than zero and at most 4.6e12";
    if (auto fault = read_ms(given, ns, kRule)) return fault;
    if (*ns == 0) return wrong(given.name, given.value, kRule);
    row.turn.cancel_after.ns = *ns;
  }
  return std::nullopt;
}

// Prompts share their prefixes only where each of these is equal (bugs.md A11). The same text in
// another field is another key.
Checked MooncakeReader::decode_extra_key(const Fields& fields, Turn& turn) {
  for (const Field field : {ExtraKey, LoraName, CacheSalt}) {
    const Given& given = fields[field];
    if (!given) continue;
    std::string_view text;
    if (auto fault = read_text(given, text)) return fault;
    turn.extra_key = xxh3(text.data(), text.size(), mix(turn.extra_key + field));
    if (turn.extra_key == 0) turn.extra_key = 1;  // 0 says that there is none
  }
  return std::nullopt;
}

// Keys in the order of CanonicalV1: sorted.
Checked MooncakeReader::decode_metadata(const Fields& fields, TraceRow& row) {
  metadata_.clear();
  const auto next_key = [&](std::string_view name) {
    metadata_ += metadata_.empty() ? "{" : ",";
    append_json_text(metadata_, name);
    metadata_ += ':';
  };
  if (const Given& given = fields[PolicyClass]) {
    std::string_view text;
    if (auto fault = read_text(given, text)) return fault;
    next_key("policy_class");
    append_json_text(metadata_, text);
  }
  if (const Given& given = fields[Priority]) {
    std::int64_t value = 0;
    if (given.value.get(value) != simdjson::SUCCESS || value < INT32_MIN || value > INT32_MAX) {
      return wrong(given.name, given.value,
                   fmt::format("a whole number from {} to {}", INT32_MIN, INT32_MAX));
    }
    next_key("priority");
    append_integer(metadata_, value);
    row.turn.priority = static_cast<std::int32_t>(value);
  }
  if (const Given& given = fields[StrictPriority]) {
    std::uint32_t value = 0;
    if (auto fault = read_u32(given, 0, value)) return fault;
    next_key("strict_priority");
    append_unsigned(metadata_, value);
  }
  if (!metadata_.empty()) metadata_ += '}';
  return std::nullopt;
}

// engine-sglang.md S10: the placeholder is not empty and lies inside the prompt.
Checked read_image(dom::object object, const std::string& name, std::uint32_t prompt_tokens,
                   Image& image) {
  struct Member {
    std::string_view key;
    std::uint64_t min;
    std::string_view rule;
    std::optional<std::uint64_t> value = {};
  };
  constexpr std::string_view kAny = "a whole number from 0 to 2^64 - 1";
  std::array members = {Member{"id", 0, kAny}, Member{"start", 0, kAny}, Member{"end", 0, kAny},
                        Member{"bytes", 1, "a whole number from 1 to 2^64 - 1"}};
  for (const dom::key_value_pair pair : object) {
    const auto member = std::ranges::find(members, pair.key, &Member::key);
    const std::string path = fmt::format("{}.{}", name, cut(pair.key));
    if (member == members.end())
      return Fault{"trace.value", path + " is not a field of an image",
                   "an image has id, start, end and bytes"};
    if (member->value) return Fault{"trace.duplicate_key", path + " is given twice", ""};
    std::uint64_t value = 0;
    if (pair.value.get(value) != simdjson::SUCCESS || value < member->min)
      return wrong(path, pair.value, member->rule);
    member->value = value;
  }
  for (const Member& member : members) {
    if (!member.value)
      return Fault{"trace.missing",
                   fmt::format("{}.{} is missing: an image needs it", name, member.key), ""};
  }
  const std::uint64_t start = *members[1].value, end = *members[2].value;
  if (end > prompt_tokens)
    return Fault{"trace.value",
                 fmt::format("{}.end is {}: must be at most {}, the tokens of the prompt", name,
                             end, prompt_tokens),
                 ""};
  if (start >= end)
    return Fault{
        "trace.value",
        fmt::format("{}.start is {}: must be below its end, which is {}", name, start, end), ""};
  image = {.identity = *members[0].value,
           .start = static_cast<std::uint32_t>(start),
           .end = static_cast<std::uint32_t>(end),
           .bytes = *members[3].value};
  return std::nullopt;
}

// requires: the row's lengths have been read.
Checked MooncakeReader::decode_images(const Given& given, const Turn& turn) {
  dom::array array;
  if (given.value.get(array) != simdjson::SUCCESS)
    return wrong(given.name, given.value, "a list of images");
  for (const dom::element element : array) {
    const std::string name = fmt::format("images[{}]", images_.size());
    dom::object object;
    if (element.get(object) != simdjson::SUCCESS)
      return wrong(name, element, "an object with id, start, end and bytes");
    if (auto fault = read_image(object, name, turn.input_tokens, images_.emplace_back()))
      return fault;
  }
  return std::nullopt;
}

void MooncakeReader::finish() {
  if (!unknown_.empty()) {
    std::string names;
    for (const std::string& name : unknown_) names += (names.empty() ? "" : ", ") + name;
    builder_.notes().warnings.push_back(
        fmt::format("{}: keys without meaning here are ignored: {}", path_, names));
  }
  if (rows_without_ids_ > 0) {
    builder_.notes().warnings.push_back(fmt::format(
        "{}: {} rows have no hash_ids; their prompts share nothing", path_, rows_without_ids_));
  }
}

}  // namespace

void read_mooncake(LineReader& lines, const TraceSource& source, TraceBuilder& builder) {
  MooncakeReader reader(source, builder);
  while (lines.next()) reader.read_line(lines.line(), lines.number());
  reader.finish();
}

}  // namespace servecast::workload
