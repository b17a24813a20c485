// SPDX-License-Identifier: Apache-2.0
// KV events for people and for tools; names as on the wire (docs/reference/kv-events.md).
#pragma once

#include <cstdint>
#include <string>

#include "cache/kv_residency.hpp"
#include "cache/kv_wire.hpp"

namespace servecast::cli {

// What was read of a whole stream.
struct KvStreamFacts {
  std::string file;
  std::uint64_t batches = 0, bytes = 0;
  double first_ts = 0, last_ts = 0;  // seconds; of no batch: 0
  cache::KvWireNotes notes = {};
  cache::KvResidency index = {};  // after the last event
};

std::string table_of(const KvStreamFacts& facts);
std::string json_of(const KvStreamFacts& facts);  // one document with its newline

// One JSON object a line for every event of the batch. Fields that are not set are left out, bytes
// are hexadecimal text that starts with 0x.
void append_event_lines(std::string& out, const cache::KvBatch& batch);

}  // namespace servecast::cli
