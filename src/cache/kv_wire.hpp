// SPDX-License-Identifier: Apache-2.0
// KV cache events as vLLM publishes them, in msgpack (realdata.md 4.2): batches of events, each
// written as an array of fields in a fixed order (until mid-2026) or as a map from names to fields.
//
//   std::string bytes;
//   append_batch(bytes, {.ts = 1.5, .events = {BlockRemoved{{7}}}}, {.events = KvForm::Map});
//   KvWireDecoder decoder;
//   std::string_view rest = bytes;   // one batch after the other, nothing between them
//   Result<std::optional<KvBatch>> batch = decoder.next(rest);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/problem.hpp"

namespace servecast::cache {

// The hash of a prefix as an engine spells it: 64 bits or bytes. A negative integer on the wire is
// the same 64 bits read as signed.
using KvHash = std::variant<std::uint64_t, std::string>;
// "11", or "0x0b0c" for bytes.
std::string to_text(const KvHash& hash);

// Where the blocks of an event are that names no medium.
inline constexpr std::string_view kGpuMedium = "GPU";

// Blocks that follow each other became resident. Fields and their order are the wire's.
struct BlockStored {
  std::vector<KvHash> block_hashes;
  std::optional<KvHash> parent_block_hash = {};  // none: the first block is a prompt's first
  std::vector<std::uint32_t> token_ids = {};     // block_size for each hash
  std::uint32_t block_size = 0;                  // tokens
  std::optional<std::int64_t> lora_id = {};
  std::optional<std::string> medium = {};  // none: kGpuMedium
  std::optional<std::string> lora_name = {};
  std::optional<std::string> extra_keys = {};   // any one msgpack value, encoded
  std::optional<std::uint32_t> group_idx = {};  // none: group 0
  std::optional<std::string> kv_cache_spec_kind = {};
  std::optional<std::uint32_t> kv_cache_spec_sliding_window = {};  // tokens
  bool operator==(const BlockStored&) const = default;
};

// The last copies of these blocks left the medium.
struct BlockRemoved {
  std::vector<KvHash> block_hashes;
  std::optional<std::string> medium = {};
  std::optional<std::uint32_t> group_idx = {};
  bool operator==(const BlockRemoved&) const = default;
};

// Nothing of the rank is resident any more.
struct AllBlocksCleared {
  bool operator==(const AllBlocksCleared&) const = default;
};

using KvWireEvent = std::variant<BlockStored, BlockRemoved, AllBlocksCleared>;

struct KvBatch {
  double ts = 0;  // seconds, finite
  std::vector<KvWireEvent> events = {};
  std::optional<std::uint32_t> data_parallel_rank = {};
  bool operator==(const KvBatch&) const = default;
};

enum class KvForm : std::uint8_t { Array, Map };
// Of the batch and of the events in it, each by itself.
struct KvWireForm {
  KvForm batch = KvForm::Array, events = KvForm::Array;
};

// Appends the batch as one msgpack object. Optional fields after lora_id that are not set are left
// out, in arrays only at the end. requires: ts is finite, token_ids has the size stated above,
// extra_keys holds one msgpack value.
void append_batch(std::string& out, const KvBatch& batch, KvWireForm form);

// Limits of the reader. What is decoded needs at most some 64 bytes for a byte of the wire.
inline constexpr std::size_t kKvBatchBytesMax = std::size_t{32} << 20;
inline constexpr std::size_t kKvNestingMax = 32;  // arrays and maps within each other
inline constexpr std::size_t kKvUnknownNamesMax =
    256;  // told apart; later ones count as "(others)"

// What a decoder left out. Keys are shortened to printable text.
struct KvWireNotes {
  std::map<std::string, std::uint64_t> unknown_tags = {};
  // "BlockStored.colour", "BlockStored[11]" by position in an array, "batch.sequence"
  std::map<std::string, std::uint64_t> unknown_fields = {};
};

// Reads both forms at both levels. Unknown fields and tags are left out and counted, missing
// trailing fields are none. What breaks a rule is a Problem that names the byte, or the batch's
// byte with the event (from 0) and the field.
class KvWireDecoder {
 public:
  // Takes the first batch off a stream; nothing, and nothing taken, when `bytes` ends within it.
  Result<std::optional<KvBatch>> next(std::string_view& bytes);
  // The payload of one message: a batch and nothing else.
  Result<KvBatch> decode(std::string_view payload);

  std::uint64_t offset() const { return offset_; }  // bytes taken so far
  const KvWireNotes& notes() const { return notes_; }

 private:
  std::uint64_t offset_ = 0;
  KvWireNotes notes_;
};

}  // namespace servecast::cache
