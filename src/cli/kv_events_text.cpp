// SPDX-License-Identifier: Apache-2.0
#include "cli/kv_events_text.hpp"

#include <fmt/core.h>

#include "base/text.hpp"
#include "report/value.hpp"

namespace servecast::cli {
namespace {

using report::Array;
using report::Object;
using report::Value;

constexpr std::size_t kBlocksShownMax = 20;  // in a table

Value value_of(const cache::KvHash& hash) {
  if (const auto* number = std::get_if<std::uint64_t>(&hash)) return *number;
  return cache::to_text(hash);
}

Value value_of(const std::optional<cache::KvHash>& hash) {
  return hash ? value_of(*hash) : Value();
}

Array array_of(const std::vector<cache::KvHash>& hashes) {
  Array list;
  for (const cache::KvHash& hash : hashes) list.push_back(value_of(hash));
  return list;
}

template <class T>
void add_if_set(Object& object, const char* key, const std::optional<T>& value) {
  if (value) object.push_back({key, *value});
}

Object fields_of(const cache::BlockStored& event) {
  Object object{{"type", "BlockStored"},
                {"block_hashes", array_of(event.block_hashes)},
                {"block_size", event.block_size},
                {"parent_block_hash", value_of(event.parent_block_hash)},
                {"token_ids", Array(event.token_ids.begin(), event.token_ids.end())}};
  add_if_set(object, "lora_id", event.lora_id);
  add_if_set(object, "medium", event.medium);
  add_if_set(object, "lora_name", event.lora_name);
  if (event.extra_keys)
    object.push_back({"extra_keys", cache::to_text(cache::KvHash(*event.extra_keys))});
  add_if_set(object, "group_idx", event.group_idx);
  add_if_set(object, "kv_cache_spec_kind", event.kv_cache_spec_kind);
  add_if_set(object, "kv_cache_spec_sliding_window", event.kv_cache_spec_sliding_window);
  return object;
}

Object fields_of(const cache::BlockRemoved& event) {
  Object object{{"type", "BlockRemoved"}, {"block_hashes", array_of(event.block_hashes)}};
  add_if_set(object, "medium", event.medium);
  add_if_set(object, "group_idx", event.group_idx);
  return object;
}

Object fields_of(const cache::AllBlocksCleared&) {
  return {{"type", "AllBlocksCleared"}};
}

Object object_of(const std::map<std::string, std::uint64_t>& counts) {
  Object object;
  for (const auto& [name, count] : counts) object.push_back({name, count});
  return object;
}

std::string text_of(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text.empty() ? "none" : text;
}

std::string seconds(double value) {
  std::string text;
  append_double(text, value);
  return text;
}

Object resident_at(const cache::KvResidency& index, const cache::KvPlace& place) {
  Array blocks;
  for (const auto& block : index.resident(place)) {
    blocks.push_back(Object{{"block_hash", value_of(block.hash)},
                            {"parent_block_hash", value_of(block.parent)}});
  }
  return {{"data_parallel_rank", place.rank},
          {"medium", place.medium},
          {"group_idx", place.group},
          {"block_count", index.size(place)},
          {"blocks", std::move(blocks)}};
}

void append_blocks(std::string& out, const cache::KvResidency& index) {
  std::size_t room = kBlocksShownMax, all = 0;
  for (const cache::KvPlace& place : index.places()) {
    all += index.size(place);
    if (room == 0) continue;
    for (const auto& block : index.resident(place)) {
      if (room == 0) break;
      --room;
      out += fmt::format("{:>4}  {:<8}  {:>5}  {:>20}  {:>20}\n", place.rank,
                         printable(place.medium, 40), place.group, cache::to_text(block.hash),
                         block.parent ? cache::to_text(*block.parent) : "none");
    }
  }
  const std::size_t shown = kBlocksShownMax - room;
  if (all > shown) out += fmt::format("... {} more: --format json lists all\n", all - shown);
}

}  // namespace

void append_event_lines(std::string& out, const cache::KvBatch& batch) {
  for (const cache::KvWireEvent& event : batch.events) {
    Object object = std::visit([](const auto& one) { return fields_of(one); }, event);
    object.push_back({"ts", batch.ts});
    add_if_set(object, "data_parallel_rank", batch.data_parallel_rank);
    report::append_json(out, object, report::Layout::Compact);
    out += '\n';
  }
}

std::string json_of(const KvStreamFacts& facts) {
  const cache::KvResidency::Counts& counts = facts.index.counts();
  Array resident;
  for (const cache::KvPlace& place : facts.index.places())
    resident.push_back(resident_at(facts.index, place));
  const Object document{{"batches", facts.batches},
                        {"bytes", facts.bytes},
                        {"first_ts", facts.batches > 0 ? Value(facts.first_ts) : Value()},
                        {"last_ts", facts.batches > 0 ? Value(facts.last_ts) : Value()},
                        {"events", Object{{"BlockStored", counts.stored_events},
                                          {"BlockRemoved", counts.removed_events},
                                          {"AllBlocksCleared", counts.cleared_events}}},
                        {"unknown_tags", object_of(facts.notes.unknown_tags)},
                        {"unknown_fields", object_of(facts.notes.unknown_fields)},
                        {"stored_blocks", counts.stored_blocks},
                        {"stored_again_blocks", counts.stored_again},
                        {"removed_blocks", counts.removed_blocks},
                        {"unknown_removed_blocks", counts.unknown_removals},
                        {"orphan_events", counts.orphan_stores},
                        {"orphan_blocks", facts.index.orphans()},
                        {"resident", std::move(resident)}};
  return report::to_json(document, report::Layout::Indented) + '\n';
}

std::string table_of(const KvStreamFacts& facts) {
  const cache::KvResidency::Counts& counts = facts.index.counts();
  std::string out = fmt::format("{}: {} {}, {} bytes", printable(facts.file), facts.batches,
                                facts.batches == 1 ? "batch" : "batches", facts.bytes);
  if (facts.batches > 0)
    out += fmt::format(", ts {} s to {} s", seconds(facts.first_ts), seconds(facts.last_ts));
  out += fmt::format("\n\nEvents           BlockStored {}, BlockRemoved {}, AllBlocksCleared {}\n",
                     counts.stored_events, counts.removed_events, counts.cleared_events);
  out += fmt::format(
      "Blocks           stored {}, stored again {}, removed {}, removed unknown {}\n",
      counts.stored_blocks, counts.stored_again, counts.removed_blocks, counts.unknown_removals);
  out += fmt::format(
      "Unknown parents  {} events; {} resident blocks hang on none that leads to the "
      "root\n",
      counts.orphan_stores, facts.index.orphans());
  out += fmt::format("Unknown tags     {}\n", text_of(facts.notes.unknown_tags));
  out += fmt::format("Unknown fields   {}\n", text_of(facts.notes.unknown_fields));
  if (facts.index.places().empty()) return out + "\nNothing is resident at the end.\n";
  out +=
      fmt::format("\n{:>4}  {:<8}  {:>5}  {:>20}\n", "rank", "medium", "group", "resident blocks");
  for (const cache::KvPlace& place : facts.index.places())
    out += fmt::format("{:>4}  {:<8}  {:>5}  {:>20}\n", place.rank, printable(place.medium, 40),
                       place.group, facts.index.size(place));
  out += fmt::format("\n{:>4}  {:<8}  {:>5}  {:>20}  {:>20}\n", "rank", "medium", "group", "block",
                     "parent");
  append_blocks(out, facts.index);
  return out;
}

}  // namespace servecast::cli
