// SPDX-License-Identifier: Apache-2.0
#include "property/kv_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/hash.hpp"
#include "cache/kv_residency.hpp"
#include "report/kv_batches.hpp"

namespace servecast::test {
namespace {

using replay::KvEventRecord;

std::uint32_t rank_of(const KvEventRecord& record) {
  return record.worker * record.ranks + record.rank;
}

bool same_hashes(const std::vector<cache::KvHash>& hashes, const KvEventRecord& record) {
  if (hashes.size() != record.blocks.size()) return false;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i] != cache::KvHash(record.blocks[i].hash)) return false;
  }
  return true;
}

// The hash of a prompt's first block may tell whose it is beside what it says.
bool tokens_fit(const cache::BlockStored& stored, const KvEventRecord& record) {
  const std::span<const std::uint32_t> tokens = stored.token_ids;
  for (std::size_t i = record.has_parent ? 0 : 1; i < record.blocks.size(); ++i) {
    const auto block = tokens.subspan(i * stored.block_size, stored.block_size);
    if (local_block_hash(block) != record.blocks[i].tokens_hash) return false;
  }
  return true;
}

std::optional<std::string> event_fault(const cache::KvWireEvent& event,
                                       const KvEventRecord& record) {
  if (const auto* stored = std::get_if<cache::BlockStored>(&event); stored && record.stored) {
    if (!same_hashes(stored->block_hashes, record)) return "other blocks";
    if (stored->group_idx != record.group) return "another group";
    if (stored->parent_block_hash.has_value() != record.has_parent ||
        (record.has_parent && *stored->parent_block_hash != cache::KvHash(record.parent)))
      return "another parent";
    if (!tokens_fit(*stored, record)) return "tokens that do not give the blocks' hashes";
    return std::nullopt;
  }
  const auto* removed = std::get_if<cache::BlockRemoved>(&event);
  if (removed == nullptr || record.stored) return "another type";
  if (!same_hashes(removed->block_hashes, record)) return "other blocks";
  if (removed->group_idx != record.group) return "another group";
  return std::nullopt;
}

using Resident = std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint64_t>>;

Resident resident_after(const std::vector<KvEventRecord>& events) {
  Resident resident;
  for (const KvEventRecord& record : events) {
    for (const auto& block : record.blocks) {
      std::set<std::uint64_t>& place = resident[{rank_of(record), record.group.value_or(0)}];
      if (record.stored) {
        place.insert(block.hash);
      } else {
        place.erase(block.hash);
      }
    }
  }
  std::erase_if(resident, [](const auto& rank) { return rank.second.empty(); });
  return resident;
}

Resident resident_of(const cache::KvResidency& index) {
  Resident resident;
  for (const cache::KvPlace& place : index.places()) {
    for (const auto& block : index.resident(place))
      resident[{place.rank, place.group}].insert(std::get<std::uint64_t>(block.hash));
  }
  return resident;
}

std::optional<std::string> index_fault(const cache::KvResidency& index,
                                       const std::vector<KvEventRecord>& events) {
  const cache::KvResidency::Counts& counts = index.counts();
  // Of a window only the end of a prompt is kept, whose parent may never have been.
  const bool groups = std::any_of(events.begin(), events.end(),
                                  [](const KvEventRecord& record) { return record.group; });
  const std::uint64_t orphans = groups ? 0 : counts.orphan_stores;
  if (counts.stored_again + counts.unknown_removals + orphans > 0)
    return fmt::format("{} blocks stored again, {} unknown ones removed, {} unknown parents",
                       counts.stored_again, counts.unknown_removals, counts.orphan_stores);
  if (resident_of(index) != resident_after(events)) return "other blocks are resident at the end";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> kv_stream_fault(const Recording& recording, cache::KvWireForm form) {
  report::KvBatches batches(form);
  std::string bytes;
  for (const KvEventRecord& record : recording.events) batches.add(record, bytes);
  batches.finish(bytes);

  cache::KvWireDecoder decoder;
  cache::KvResidency index;
  std::size_t next = 0;
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto batch = decoder.next(rest);
    if (!batch) return to_text(batch.error().front());
    if (!*batch || (*batch)->events.empty()) return "a batch that is not whole or empty";
    index.apply(**batch);
    for (const cache::KvWireEvent& event : (*batch)->events) {
      if (next == recording.events.size()) return "more events than the run told";
      const KvEventRecord& record = recording.events[next++];
      auto fault = event_fault(event, record);
      if ((*batch)->data_parallel_rank != rank_of(record)) fault = "another rank";
      if ((*batch)->ts != static_cast<double>(record.at.ns) / 1e9) fault = "another time";
      if (fault)
        return fmt::format("KV event {} of rank {}: the stream tells {}", record.event,
                           rank_of(record), *fault);
    }
  }
  if (next != recording.events.size()) return "fewer events than the run told";
  if (!decoder.notes().unknown_fields.empty()) return "fields that its own reader does not know";
  return index_fault(index, recording.events);
}

}  // namespace servecast::test
