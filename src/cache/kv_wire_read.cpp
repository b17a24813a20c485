// SPDX-License-Identifier: Apache-2.0
// Reads untrusted bytes in two steps: first the structure alone, without keeping anything; then,
// since everything that an array or a map announces is there, the objects and their fields.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.hpp"
#include "cache/kv_wire.hpp"
#include "cache/kv_wire_fields.hpp"
#include "cache/kv_wire_structure.hpp"

#define MSGPACK_NO_BOOST
#include <msgpack.hpp>

namespace servecast::cache {
namespace {

using Object = msgpack::object;
using Kind = msgpack::type::object_type;

constexpr std::size_t kShownBytesMax = 60;  // of a user's text in a message

std::string found(const Object& object) {
  switch (object.type) {
    case Kind::NIL:
      return "null";
    case Kind::BOOLEAN:
      return object.via.boolean ? "true" : "false";
    case Kind::POSITIVE_INTEGER:
      return fmt::format("the integer {}", object.via.u64);
    case Kind::NEGATIVE_INTEGER:
      return fmt::format("the integer {}", object.via.i64);
    case Kind::FLOAT32:
    case Kind::FLOAT64:
      return fmt::format("the number {}", object.via.f64);
    case Kind::STR:
      return fmt::format("the string \"{}\"",
                         printable({object.via.str.ptr, object.via.str.size}, kShownBytesMax));
    case Kind::BIN:
      return fmt::format("{} bytes", object.via.bin.size);
    case Kind::ARRAY:
      return fmt::format("an array of {}", object.via.array.size);
    case Kind::MAP:
      return fmt::format("a map of {}", object.via.map.size);
    case Kind::EXT:
      break;
  }
  return "an extension type";
}

std::optional<std::string_view> text_of(const Object& object) {
  if (object.type != Kind::STR) return std::nullopt;
  return std::string_view(object.via.str.ptr, object.via.str.size);
}

std::span<const Object> items_of(const Object& object) {
  if (object.type != Kind::ARRAY) return {};
  return {object.via.array.ptr, object.via.array.size};
}

std::span<const msgpack::object_kv> entries_of(const Object& object) {
  if (object.type != Kind::MAP) return {};
  return {object.via.map.ptr, object.via.map.size};
}

void count(std::map<std::string, std::uint64_t>& names, const std::string& name) {
  const auto known = names.find(name);
  if (known != names.end()) {
    ++known->second;
  } else {
    ++names[names.size() < kKvUnknownNamesMax ? name : "(others)"];
  }
}

// Where a value stands, for messages, and what is wrong with the first that breaks a rule.
class Reader {
 public:
  Reader(std::uint64_t batch_at, KvWireNotes& notes) : batch_at_(batch_at), notes_(notes) {}

  bool batch(const Object& from, KvBatch& out) {
    if (from.type != Kind::ARRAY && from.type != Kind::MAP)
      return refuse_batch("must be an array or a map, not " + found(from));
    std::array<const Object*, wire::kBatchFields.size()> fields{};
    if (!gather(from, {"batch", wire::kBatchFields, false}, fields)) return false;
    if (!seconds(fields[wire::kTs], out.ts)) return false;
    const Object* rank = fields[wire::kRank];
    if (!optional(rank, "data_parallel_rank", out.data_parallel_rank)) return false;
    const Object* events = fields[wire::kEvents];
    if (events == nullptr || events->type != Kind::ARRAY)
      return refuse("events", "an array", events);
    for (const Object& one : items_of(*events)) {
      if (!event(one, out.events)) return false;
      ++event_;
    }
    return true;
  }

  Problem take_problem() { return std::move(problem_); }

 private:
  struct Names {
    std::string_view owner;
    std::span<const std::string_view> names;
    bool tagged;  // an event: its tag stands before the fields, in a map under kTypeKey
  };

  // The fields of a batch or an event by their places in `names`; null where there is none.
  bool gather(const Object& from, const Names& names, std::span<const Object*> fields) {
    const std::size_t first = names.tagged ? 1 : 0;
    const std::span<const Object> items = items_of(from);
    for (std::size_t i = first; i < items.size(); ++i) {
      if (i - first < fields.size()) {
        fields[i - first] = &items[i];
      } else {
        count(notes_.unknown_fields, fmt::format("{}[{}]", names.owner, i));
      }
    }
    for (const auto& [key, value] : entries_of(from)) {
      const auto name = text_of(key);
      if (names.tagged && name == wire::kTypeKey) continue;
      const auto at =
          name ? std::find(names.names.begin(), names.names.end(), *name) : names.names.end();
      if (at == names.names.end()) {
        count(notes_.unknown_fields,
              fmt::format("{}.{}", names.owner,
                          name ? printable(*name, kShownBytesMax) : "(" + found(key) + ")"));
        continue;
      }
      const Object*& field = fields[static_cast<std::size_t>(at - names.names.begin())];
      if (field != nullptr) return refuse_field(*at, "is given twice");
      field = &value;
    }
    return true;
  }

  const Object* tag_of(const Object& from) {
    if (const auto items = items_of(from); !items.empty()) return &items[0];
    for (const auto& [key, value] : entries_of(from)) {
      if (text_of(key) == wire::kTypeKey) return &value;
    }
    return nullptr;
  }

  bool event(const Object& from, std::vector<KvWireEvent>& out) {
    tag_ = {};
    in_event_ = true;
    if (from.type != Kind::ARRAY && from.type != Kind::MAP)
      return refuse_batch("must be an array or a map, not " + found(from));
    const Object* tag = tag_of(from);
    const auto name = tag != nullptr ? text_of(*tag) : std::nullopt;
    if (!name) return refuse("its tag", "a string", tag);
    tag_ = printable(*name, kShownBytesMax);
    bool good = true;
    if (name == wire::kStoredTag) {
      good = stored(from, std::get<BlockStored>(out.emplace_back(BlockStored{})));
    } else if (name == wire::kRemovedTag) {
      good = removed(from, std::get<BlockRemoved>(out.emplace_back(BlockRemoved{})));
    } else if (name == wire::kClearedTag) {
      good = gather(from, {wire::kClearedTag, {}, true}, {});
      out.emplace_back(AllBlocksCleared{});
    } else {
      count(notes_.unknown_tags, tag_);
    }
    in_event_ = false;
    return good;
  }

  bool stored(const Object& from, BlockStored& out) {
    using namespace wire;
    std::array<const Object*, kStoredFields.size()> f{};
    if (!gather(from, {kStoredTag, kStoredFields, true}, f)) return false;
    const bool good = list(f[kBlockHashes], "block_hashes", out.block_hashes) &&
                      optional(f[kParent], "parent_block_hash", out.parent_block_hash) &&
                      list(f[kTokenIds], "token_ids", out.token_ids) &&
                      read(f[kBlockSize], "block_size", out.block_size) &&
                      optional(f[kLoraId], "lora_id", out.lora_id) &&
                      optional(f[kMedium], "medium", out.medium) &&
                      optional(f[kLoraName], "lora_name", out.lora_name) &&
                      optional(f[kGroupIdx], "group_idx", out.group_idx) &&
                      optional(f[kSpecKind], "kv_cache_spec_kind", out.kv_cache_spec_kind) &&
                      optional(f[kSlidingWindow], "kv_cache_spec_sliding_window",
                               out.kv_cache_spec_sliding_window);
    if (!good) return false;
    if (is_set(f[kExtraKeys])) {
      msgpack::sbuffer encoded;
      msgpack::pack(encoded, *f[kExtraKeys]);
      out.extra_keys.emplace(encoded.data(), encoded.size());
    }
    if (out.block_size == 0) return refuse("block_size", "at least 1", f[kBlockSize]);
    const std::uint64_t tokens = out.block_hashes.size() * std::uint64_t{out.block_size};
    if (out.token_ids.size() == tokens) return true;
    return refuse_field("token_ids", fmt::format("has {} tokens; {} block_hashes of block_size {} "
                                                 "have {}",
                                                 out.token_ids.size(), out.block_hashes.size(),
                                                 out.block_size, tokens));
  }

  bool removed(const Object& from, BlockRemoved& out) {
    using namespace wire;
    std::array<const Object*, kRemovedFields.size()> f{};
    return gather(from, {kRemovedTag, kRemovedFields, true}, f) &&
           list(f[kRemovedHashes], "block_hashes", out.block_hashes) &&
           optional(f[kRemovedMedium], "medium", out.medium) &&
           optional(f[kRemovedGroup], "group_idx", out.group_idx);
  }

  static bool is_set(const Object* value) { return value != nullptr && value->type != Kind::NIL; }

  template <class T>
  bool optional(const Object* value, std::string_view field, std::optional<T>& out) {
    return !is_set(value) || read(value, field, out.emplace());
  }

  template <class T>
  bool list(const Object* value, std::string_view field, std::vector<T>& out) {
    if (value == nullptr || value->type != Kind::ARRAY) return refuse(field, "an array", value);
    out.reserve(value->via.array.size);
    for (const Object& item : items_of(*value)) {
      if (read(&item, field, out.emplace_back())) continue;
      problem_.message += fmt::format(" (element {})", out.size() - 1);
      return false;
    }
    return true;
  }

  bool read(const Object* value, std::string_view field, std::uint32_t& out) {
    if (value == nullptr || value->type != Kind::POSITIVE_INTEGER || value->via.u64 > UINT32_MAX)
      return refuse(field, fmt::format("an integer from 0 to {}", UINT32_MAX), value);
    out = static_cast<std::uint32_t>(value->via.u64);
    return true;
  }

  bool read(const Object* value, std::string_view field, std::int64_t& out) {
    const bool fits = value->type == Kind::NEGATIVE_INTEGER ||
                      (value->type == Kind::POSITIVE_INTEGER && value->via.u64 <= INT64_MAX);
    if (!fits) return refuse(field, "a signed 64-bit integer", value);
    out = value->via.i64;
    return true;
  }

  bool read(const Object* value, std::string_view field, std::string& out) {
    const auto text = text_of(*value);
    if (!text) return refuse(field, "a string", value);
    out = *text;
    return true;
  }

  bool read(const Object* value, std::string_view field, KvHash& out) {
    if (value->type == Kind::POSITIVE_INTEGER || value->type == Kind::NEGATIVE_INTEGER) {
      out = value->via.u64;  // the same bits either way
      return true;
    }
    if (value->type != Kind::BIN) return refuse(field, "hashes: 64-bit integers or bytes", value);
    out.emplace<std::string>(value->via.bin.ptr, value->via.bin.size);
    return true;
  }

  bool seconds(const Object* value, double& out) {
    const Kind kind = value == nullptr ? Kind::NIL : value->type;
    if (kind == Kind::POSITIVE_INTEGER) {
      out = static_cast<double>(value->via.u64);
    } else if (kind == Kind::NEGATIVE_INTEGER) {
      out = static_cast<double>(value->via.i64);
    } else if (kind == Kind::FLOAT32 || kind == Kind::FLOAT64) {
      out = value->via.f64;
    } else {
      return refuse("ts", "a number of seconds", value);
    }
    return std::isfinite(out) || refuse("ts", "a finite number of seconds", value);
  }

  bool refuse(std::string_view field, std::string_view rule, const Object* value) {
    return refuse_field(field, value == nullptr
                                   ? fmt::format("is missing: it must be {}", rule)
                                   : fmt::format("must be {}, not {}", rule, found(*value)));
  }
  bool refuse_field(std::string_view field, std::string_view what) {
    return refuse_batch(fmt::format("{} {}", field, what));
  }
  bool refuse_batch(std::string_view what) {
    std::string where = fmt::format("batch at byte {}: ", batch_at_);
    if (in_event_) where += fmt::format("event {}", event_);
    if (!tag_.empty()) where += fmt::format(" ({})", tag_);
    if (in_event_) where += ": ";
    problem_ = {"kv_wire.field", where + std::string(what), {}, ""};
    return false;
  }

  std::uint64_t batch_at_;
  KvWireNotes& notes_;
  bool in_event_ = false;
  std::size_t event_ = 0;
  std::string tag_;
  Problem problem_;
};

// What text looks like when it is read as msgpack: its first byte is a small integer.
std::string hint_for(std::string_view bytes) {
  return bytes.starts_with('{') ? "this looks like JSON; expected is msgpack" : "";
}

Result<KvBatch> decode_whole(std::string_view bytes, std::uint64_t at, KvWireNotes& notes) {
  KvBatch batch;
  Reader reader(at, notes);
  try {
    // Strings and bytes stay where they are.
    const auto refer = [](Kind, std::size_t, void*) { return true; };
    const msgpack::object_handle object = msgpack::unpack(bytes.data(), bytes.size(), refer);
    if (reader.batch(object.get(), batch)) return batch;
  } catch (const msgpack::unpack_error& error) {
    return fail(
        {"kv_wire.malformed", fmt::format("batch at byte {}: {}", at, error.what()), {}, ""});
  }
  Problem problem = reader.take_problem();
  problem.hint = hint_for(bytes);
  return fail(std::move(problem));
}

}  // namespace

Result<std::optional<KvBatch>> KvWireDecoder::next(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::string_view window = bytes.substr(0, kKvBatchBytesMax);
  const wire::Structure structure = wire::structure_of(window);
  const auto refused = [&](const char* code, const std::string& what) {
    return fail({code, fmt::format("batch at byte {}: {}", offset_, what), {}, hint_for(bytes)});
  };
  if (structure.end == wire::Structure::End::Incomplete) {
    if (window.size() < kKvBatchBytesMax) return std::nullopt;
    return refused("kv_wire.too_large", fmt::format("larger than {} MiB", kKvBatchBytesMax >> 20));
  }
  if (structure.end == wire::Structure::End::Fault)
    return refused("kv_wire.malformed",
                   fmt::format("{} at byte {}", structure.fault, offset_ + structure.bytes));
  Result<KvBatch> batch = decode_whole(window.substr(0, structure.bytes), offset_, notes_);
  if (!batch) return tl::unexpected(std::move(batch.error()));
  offset_ += structure.bytes;
  bytes.remove_prefix(structure.bytes);
  return std::optional<KvBatch>(*std::move(batch));
}

Result<KvBatch> KvWireDecoder::decode(std::string_view payload) {
  const std::uint64_t start = offset_, end = start + payload.size();
  Result<std::optional<KvBatch>> batch = next(payload);
  if (!batch) return tl::unexpected(std::move(batch.error()));
  if (!*batch) {
    return fail({"kv_wire.truncated",
                 fmt::format("batch at byte {}: the data ends within it, at byte {}", start, end),
                 {},
                 ""});
  }
  if (payload.empty()) return **std::move(batch);
  return fail(
      {"kv_wire.trailing",
       fmt::format("batch at byte {}: {} bytes follow it in its message", start, payload.size()),
       {},
       ""});
}

}  // namespace servecast::cache
