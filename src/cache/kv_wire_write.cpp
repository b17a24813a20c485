// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/check.hpp"
#include "cache/kv_wire.hpp"
#include "cache/kv_wire_fields.hpp"

#define MSGPACK_NO_BOOST
#include <msgpack.hpp>

namespace servecast::cache {
namespace {

struct Appender {
  std::string& out;
  void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
};
using Packer = msgpack::packer<Appender>;

std::uint32_t count_of(std::size_t size) {
  SERVECAST_CHECK(size <= UINT32_MAX);
  return static_cast<std::uint32_t>(size);
}

class Writer {
 public:
  Writer(std::string& out, KvWireForm form)
      : out_(out), appender_{out}, pack_(appender_), form_(form) {}

  void batch(const KvBatch& batch) {
    SERVECAST_CHECK(std::isfinite(batch.ts));
    const std::array set{true, true, batch.data_parallel_rank.has_value()};
    object({form_.batch, {}, wire::kBatchFields, set}, [&](std::size_t field) {
      if (field == wire::kTs) number(batch.ts);
      if (field == wire::kRank) pack_.pack_uint32(*batch.data_parallel_rank);
      if (field != wire::kEvents) return;
      pack_.pack_array(count_of(batch.events.size()));
      for (const KvWireEvent& event : batch.events)
        std::visit([&](const auto& e) { this->event(e); }, event);
    });
  }

 private:
  // One object: which of its fields stand in it, and the tag of an event.
  struct Shape {
    KvForm form;
    std::string_view tag;  // empty: none
    std::span<const std::string_view> names;
    std::span<const bool> set;
  };

  template <class WriteField>
  void object(const Shape& shape, WriteField write) {
    const bool is_map = shape.form == KvForm::Map, tagged = !shape.tag.empty();
    const auto last = std::find(shape.set.rbegin(), shape.set.rend(), true);
    const auto end = static_cast<std::size_t>(shape.set.rend() - last);  // behind the last one set
    const auto present =
        static_cast<std::size_t>(std::count(shape.set.begin(), shape.set.end(), true));
    if (is_map) {
      pack_.pack_map(count_of(present + (tagged ? 1 : 0)));
      if (tagged) text(wire::kTypeKey);
    } else {
      pack_.pack_array(count_of(end + (tagged ? 1 : 0)));
    }
    if (tagged) text(shape.tag);
    for (std::size_t field = 0; field < end; ++field) {
      if (is_map && !shape.set[field]) continue;
      if (is_map) text(shape.names[field]);
      shape.set[field] ? write(field) : void(pack_.pack_nil());
    }
  }

  void event(const BlockStored& e) {
    SERVECAST_CHECK(e.token_ids.size() == e.block_hashes.size() * e.block_size);
    const std::array set{true,
                         true,
                         true,
                         true,
                         true,
                         e.medium.has_value(),
                         e.lora_name.has_value(),
                         e.extra_keys.has_value(),
                         e.group_idx.has_value(),
                         e.kv_cache_spec_kind.has_value(),
                         e.kv_cache_spec_sliding_window.has_value()};
    object({form_.events, wire::kStoredTag, wire::kStoredFields, set},
           [&](std::size_t field) { stored_field(e, wire::StoredField(field)); });
  }

  void stored_field(const BlockStored& e, wire::StoredField field) {
    switch (field) {
      case wire::kBlockHashes:
        return hashes(e.block_hashes);
      case wire::kParent:
        return e.parent_block_hash ? hash(*e.parent_block_hash) : void(pack_.pack_nil());
      case wire::kTokenIds:
        pack_.pack_array(count_of(e.token_ids.size()));
        for (const std::uint32_t token : e.token_ids) pack_.pack_uint32(token);
        return;
      case wire::kBlockSize:
        return void(pack_.pack_uint32(e.block_size));
      case wire::kLoraId:
        return void(e.lora_id ? pack_.pack_int64(*e.lora_id) : pack_.pack_nil());
      case wire::kMedium:
        return text(*e.medium);
      case wire::kLoraName:
        return text(*e.lora_name);
      case wire::kExtraKeys:
        out_ += *e.extra_keys;
        return;
      case wire::kGroupIdx:
        return void(pack_.pack_uint32(*e.group_idx));
      case wire::kSpecKind:
        return text(*e.kv_cache_spec_kind);
      case wire::kSlidingWindow:
        return void(pack_.pack_uint32(*e.kv_cache_spec_sliding_window));
    }
  }

  void event(const BlockRemoved& e) {
    const std::array set{true, e.medium.has_value(), e.group_idx.has_value()};
    object({form_.events, wire::kRemovedTag, wire::kRemovedFields, set}, [&](std::size_t field) {
      if (field == wire::kRemovedHashes) hashes(e.block_hashes);
      if (field == wire::kRemovedMedium) text(*e.medium);
      if (field == wire::kRemovedGroup) pack_.pack_uint32(*e.group_idx);
    });
  }

  void event(const AllBlocksCleared&) {
    object({form_.events, wire::kClearedTag, {}, {}}, [](std::size_t) {});
  }

  // A float even when it is whole, which pack_double would turn into an integer.
  void number(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    out_ += '\xcb';
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }

  void text(std::string_view value) {
    pack_.pack_str(count_of(value.size()));
    pack_.pack_str_body(value.data(), count_of(value.size()));
  }

  void hash(const KvHash& hash) {
    if (const auto* number = std::get_if<std::uint64_t>(&hash)) {
      pack_.pack_uint64(*number);
      return;
    }
    const std::string& bytes = std::get<std::string>(hash);
    pack_.pack_bin(count_of(bytes.size()));
    pack_.pack_bin_body(bytes.data(), count_of(bytes.size()));
  }

  void hashes(const std::vector<KvHash>& list) {
    pack_.pack_array(count_of(list.size()));
    for (const KvHash& one : list) hash(one);
  }

  std::string& out_;
  Appender appender_;
  Packer pack_;
  KvWireForm form_;
};

}  // namespace

std::string to_text(const KvHash& hash) {
  if (const auto* number = std::get_if<std::uint64_t>(&hash)) return fmt::format("{}", *number);
  std::string text = "0x";
  for (const char byte : std::get<std::string>(hash))
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void append_batch(std::string& out, const KvBatch& batch, KvWireForm form) {
  Writer(out, form).batch(batch);
}

}  // namespace servecast::cache
