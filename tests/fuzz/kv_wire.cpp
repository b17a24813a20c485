// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a stream of KV events holds, the reader answers with Problems or with batches that
// keep their rules, say the same after being written in every form, and can be followed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "cache/kv_residency.hpp"
#include "cache/kv_wire.hpp"

namespace {

using namespace servecast;
using namespace servecast::cache;

void check_batch(const KvBatch& batch) {
  for (const KvWireEvent& event : batch.events) {
    if (const auto* stored = std::get_if<BlockStored>(&event)) {
      SERVECAST_CHECK(stored->token_ids.size() == stored->block_hashes.size() * stored->block_size);
    }
  }
  for (const KvForm outer : {KvForm::Array, KvForm::Map}) {
    for (const KvForm inner : {KvForm::Array, KvForm::Map}) {
      std::string bytes;
      append_batch(bytes, batch, {outer, inner});
      KvWireDecoder decoder;
      const Result<KvBatch> again = decoder.decode(bytes);
      SERVECAST_CHECK(again.has_value() && *again == batch);
      SERVECAST_CHECK(decoder.notes().unknown_fields.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  KvWireDecoder decoder;
  KvResidency index;
  for (;;) {
    const Result<std::optional<KvBatch>> batch = decoder.next(rest);
    if (!batch) {
      SERVECAST_CHECK(batch.error().size() == 1 && !batch.error()[0].message.empty());
      break;
    }
    if (!*batch) break;
    check_batch(**batch);
    index.apply(**batch);
  }
  SERVECAST_CHECK(decoder.offset() + rest.size() == size);
  std::size_t resident = 0;
  for (const KvPlace& place : index.places()) resident += index.resident(place).size();
  SERVECAST_CHECK(index.orphans() <= resident);
  SERVECAST_CHECK(resident <= index.counts().stored_blocks);
  return 0;
}
