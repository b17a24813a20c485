// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace servecast::config {
namespace {

// Carries a Problem out of the parser's callbacks; never leaves this file.
struct Refused {
  Problem problem;
};

std::size_t count_nodes(const Value& value) {
  std::size_t count = 1;
  for (const Value& item : value.items) count += count_nodes(item);
  for (const Value::Entry& entry : value.entries) count += count_nodes(entry.value);
  return count;
}

// Builds the tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  Value take_root() {
    return root_ ? std::move(*root_) : value_at(Value::Kind::Null, {file_, 0, 0});
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      refuse("config.documents", place(mark),
             "a configuration is one document, but another one starts here",
             "remove the '---' line");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(value_at(Value::Kind::Null, place(mark)), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!quoted) check_tag(mark, tag);
    Value value = value_at(Value::Kind::Scalar, place(mark));
    value.text = text;
    value.quoted = quoted;
    if (text.find('\0') != std::string::npos)
      refuse("config.syntax", value.place, "a text holds a zero byte", "");
    add(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse("config.alias", place(mark), "an alias stands inside the value that it names",
             "a value cannot contain itself");
    nodes_ += found->second.nodes;
    check_node_count(place(mark));
    attach(found->second.value, place(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(value_at(Value::Kind::Sequence, place(mark)), mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(value_at(Value::Kind::Mapping, place(mark)), mark, tag, anchor);
  }
  void OnMapEnd() override {
    merge(open_.back());
    close();
  }

 private:
  struct Key {
    std::string text;
    Place place;
  };
  struct Merge {
    Value value;
    Place place;
  };
  // A sequence or mapping whose end was not seen yet.
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;  // read, its value comes next
    bool key_is_merge = false;
    std::map<std::string, int> lines;  // of the keys so far
    std::optional<Merge> merge;
  };
  struct Anchored {
    Value value;
    std::size_t nodes = 0;
  };

  [[noreturn]] static void refuse(const char* code, Place place, std::string message,
                                  std::string hint) {
    throw Refused{{code, std::move(message), std::move(place), std::move(hint)}};
  }

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag != "?" && !tag.empty())
      refuse("config.tag", place(mark), fmt::format("the tag {} is not accepted", tag),
             "write the value without a tag");
  }

  void check_node_count(const Place& at) const {
    if (nodes_ > kNodesMax)
      refuse("config.too_large", at,
             fmt::format("the document has more than {} values once its aliases are expanded",
                         kNodesMax),
             "a configuration needs a few hundred at most");
  }

  void open(Value value, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (tag != "!") check_tag(mark, tag);
    if (open_.size() >= kDepthMax)
      refuse("config.too_deep", value.place,
             fmt::format("values are nested deeper than {} levels", kDepthMax), "");
    if (!open_.empty() && open_.back().value.kind == Value::Kind::Mapping && !open_.back().key)
      refuse("config.key", value.place, "a key must be a name, not a list or a mapping", "");
    ++nodes_;
    check_node_count(value.place);
    open_.push_back(
        {.value = std::move(value), .anchor = anchor, .key = {}, .lines = {}, .merge = {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    remember(done.value, done.anchor);
    const Place at = done.value.place;
    attach(std::move(done.value), at);
  }

  void add(Value value, YAML::anchor_t anchor) {
    ++nodes_;
    check_node_count(value.place);
    remember(value, anchor);
    const Place at = value.place;
    attach(std::move(value), at);
  }

  void remember(const Value& value, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = {value, count_nodes(value)};
  }

  // Puts a complete value where the parser stands; `at` is the place of the alias for an aliased
  // value.
  void attach(Value value, const Place& at) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.kind == Value::Kind::Sequence) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.key) {
      take_key(parent, value, at);
    } else if (parent.key_is_merge) {
      parent.merge = Merge{std::move(value), at};
      parent.key.reset();
    } else {
      parent.value.entries.push_back(
          {std::move(parent.key->text), std::move(parent.key->place), std::move(value)});
      parent.key.reset();
    }
  }

  static void take_key(Open& parent, const Value& value, const Place& at) {
    if (value.kind != Value::Kind::Scalar) refuse("config.key", at, "a key must be a name", "");
    const auto [line, is_new] = parent.lines.emplace(value.text, at.line);
    if (!is_new)
      refuse("config.duplicate_key", at,
             fmt::format("the key \"{}\" is given twice: on line {} and on line {}", value.text,
                         line->second, at.line),
             "remove one of them");
    parent.key = Key{value.text, at};
    parent.key_is_merge = value.text == "<<" && !value.quoted;
  }

  // Applies a merge key: the mapping's own keys win, then those of the earlier merged mapping.
  static void merge(Open& mapping) {
    if (!mapping.merge) return;
    const Merge merged = std::move(*mapping.merge);
    if (merged.value.kind == Value::Kind::Mapping) {
      merge_one(mapping, merged.value, merged.place);
      return;
    }
    if (merged.value.kind != Value::Kind::Sequence)
      refuse("config.merge", merged.place, "the merge key << takes a mapping or a list of mappings",
             "");
    for (const Value& item : merged.value.items) merge_one(mapping, item, merged.place);
  }

  static void merge_one(Open& mapping, const Value& from, const Place& at) {
    if (from.kind != Value::Kind::Mapping)
      refuse("config.merge", at, "the merge key << takes a mapping or a list of mappings", "");
    for (const Value::Entry& entry : from.entries) {
      if (mapping.lines.emplace(entry.key, entry.place.line).second)
        mapping.value.entries.push_back(entry);
    }
  }

  std::string file_;
  std::optional<Value> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// Line of the first byte that is not part of well-formed UTF-8; 0 when the text is fine.
int line_of_bad_utf8(std::string_view text) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') ++line;
    const std::size_t length = byte < 0x80   ? 1
                               : byte < 0xC2 ? 0
                               : byte < 0xE0 ? 2
                               : byte < 0xF0 ? 3
                               : byte < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return line;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return line;
    }
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool overlong = (byte == 0xE0 && second < 0xA0) || (byte == 0xF0 && second < 0x90);
    const bool surrogate = byte == 0xED && second >= 0xA0;
    if (overlong || surrogate || (byte == 0xF4 && second >= 0x90)) return line;
    i += length;
  }
  return 0;
}

Problem too_large(const std::string& file) {
  return {"config.too_large",
          fmt::format("the document is larger than {} MiB", kDocumentBytesMax >> 20),
          {file, 0, 0},
          ""};
}

}  // namespace

Result<Value> read_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kDocumentBytesMax) return fail(too_large(file));
  if (text.find('\0') != std::string_view::npos)
    return fail(
        {"config.encoding", "the text holds a zero byte", {file, 0, 0}, "save the file as UTF-8"});
  if (const int line = line_of_bad_utf8(text); line > 0)
    return fail(
        {"config.encoding", "the text is not UTF-8", {file, line, 0}, "save the file as UTF-8"});
  // The parser takes a quoted text that nobody closes for complete when a line end follows, so none
  // does.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(file);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take_root();
  } catch (const Refused& refused) {
    return fail(refused.problem);
  } catch (const YAML::Exception& error) {
    return fail({"config.syntax",
                 "malformed YAML: " + error.msg,
                 {file, error.mark.line + 1, error.mark.column + 1},
                 ""});
  }
}

Result<Value> read_yaml_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  if (stream) {
    std::string chunk(std::size_t{1} << 16, '\0');
    while (text.size() <= kDocumentBytesMax &&
           (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())),
            stream.gcount() > 0)) {
      text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    }
  }
  if (stream.bad() || !stream.is_open() || (text.empty() && !stream.eof()))
    return fail({"config.unreadable",
                 fmt::format("cannot read the configuration: {}", std::strerror(errno)),
                 {path, 0, 0},
                 ""});
  Result<Value> root = read_yaml(text, path);
  if (!root) return root;
  if (root->kind == Value::Kind::Mapping) return root;
  const char* found = root->kind == Value::Kind::Null       ? "the document is empty"
                      : root->kind == Value::Kind::Sequence ? "found a list"
                                                            : "found a single value";
  return fail({"config.top_level", fmt::format("the top level must be one mapping; {}", found),
               root->place, "start with 'engine:'"});
}

}  // namespace servecast::config
