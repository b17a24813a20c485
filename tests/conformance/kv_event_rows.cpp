// SPDX-License-Identifier: Apache-2.0
#include "conformance/kv_event_rows.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cache/kv_residency.hpp"

namespace servecast::test {
namespace {

using namespace cache;

std::string bytes_of(const Value& notation) {
  std::string out, digits;
  bool quoted = false;
  for (const char c : notation.scalar) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (quoted) {
      out += c;
    } else if (c != ' ') {
      digits += c;
      if (digits.size() < 2) continue;
      out += static_cast<char>(std::stoi(digits, nullptr, 16));
      digits.clear();
    }
  }
  if (quoted || !digits.empty()) notation.refuse("half a byte or text without its end");
  return out;
}

std::string joined(const std::vector<KvHash>& hashes) {
  std::string text;
  for (const KvHash& hash : hashes) text += " " + to_text(hash);
  return text;
}

std::string place(const std::optional<std::string>& medium, std::optional<std::uint32_t> group) {
  return fmt::format("medium {} group {}", medium.value_or("none"),
                     group ? std::to_string(*group) : "none");
}

std::string told(const BlockStored& e) {
  return fmt::format(
      "stored{} after {}, {} tokens from {}, block_size {}, {}", joined(e.block_hashes),
      e.parent_block_hash ? to_text(*e.parent_block_hash) : "root", e.token_ids.size(),
      e.token_ids.empty() ? 0 : e.token_ids.front(), e.block_size, place(e.medium, e.group_idx));
}
std::string told(const BlockRemoved& e) {
  return fmt::format("removed{}, {}", joined(e.block_hashes), place(e.medium, e.group_idx));
}
std::string told(const AllBlocksCleared&) {
  return "cleared";
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.list) out.push_back(item.scalar);
  return out;
}

std::vector<std::string> residents(const KvResidency& index) {
  std::vector<std::string> out;
  for (const KvPlace& at : index.places()) {
    std::vector<KvHash> hashes;
    for (const auto& block : index.resident(at)) hashes.push_back(block.hash);
    out.push_back(
        fmt::format("rank {} {} group {}:{}", at.rank, at.medium, at.group, joined(hashes)));
  }
  return out;
}

void check_prefix(const KvResidency& index, const Value& want) {
  want.only({"groups", "hashes", "blocks"});
  std::vector<std::uint32_t> groups;
  for (const Value& group : want.at("groups").list)
    groups.push_back(static_cast<std::uint32_t>(group.count()));
  std::vector<KvHash> hashes;
  for (const Value& hash : want.at("hashes").list) hashes.emplace_back(hash.count());
  EXPECT_EQ(index.prefix({}, groups, hashes), want.at("blocks").count());
}

void check_every_form(const KvBatch& batch) {
  for (const KvForm outer : {KvForm::Array, KvForm::Map}) {
    for (const KvForm inner : {KvForm::Array, KvForm::Map}) {
      std::string bytes;
      append_batch(bytes, batch, {outer, inner});
      const auto again = KvWireDecoder().decode(bytes);
      EXPECT_TRUE(again && *again == batch) << "written and read again";
    }
  }
}

std::uint64_t sum(const std::map<std::string, std::uint64_t>& counts) {
  std::uint64_t all = 0;
  for (const auto& [name, count] : counts) all += count;
  return all;
}

}  // namespace

void check_kv_events(const Value& row) {
  row.only({"payloads", "ts", "events", "resident", "prefix", "unknown_tags", "unknown_fields",
            "unknown_removals", "orphan_events", "orphan_blocks", "refused"});
  KvWireDecoder decoder;
  KvResidency index;
  std::vector<std::string> events;
  double ts = 0;
  std::string refused;
  for (const Value& payload : row.at("payloads").list) {
    const auto batch = decoder.decode(bytes_of(payload));
    if (!batch) {
      refused = batch.error().front().message;
      break;
    }
    ts = batch->ts;
    for (const KvWireEvent& event : batch->events)
      events.push_back(std::visit([](const auto& e) { return told(e); }, event));
    index.apply(*batch);
    check_every_form(*batch);
  }
  const Value* want = row.find("refused");
  EXPECT_EQ(refused, want != nullptr ? want->scalar : "");
  if (const Value* w = row.find("ts")) {
    EXPECT_EQ(ts, w->number());
  }
  if (const Value* w = row.find("events")) {
    EXPECT_EQ(events, texts(*w));
  }
  if (const Value* w = row.find("resident")) {
    EXPECT_EQ(residents(index), texts(*w));
  }
  if (const Value* w = row.find("prefix")) check_prefix(index, *w);
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"unknown_tags", sum(decoder.notes().unknown_tags)},
      {"unknown_fields", sum(decoder.notes().unknown_fields)},
      {"unknown_removals", index.counts().unknown_removals},
      {"orphan_events", index.counts().orphan_stores},
      {"orphan_blocks", index.orphans()}};
  for (const auto& [name, count] : counts) {
    want = row.find(name);
    EXPECT_EQ(count, want != nullptr ? want->count() : 0) << name;
  }
}

}  // namespace servecast::test
