// SPDX-License-Identifier: Apache-2.0
// Random KV event batches for tests.
#pragma once

#include <string>

#include "base/random.hpp"
#include "cache/kv_wire.hpp"

namespace servecast::cache {

inline std::uint64_t below(Random& random, std::uint64_t end) {
  return random.next() % end;
}

// Few of them, so that they meet again.
inline KvHash a_random_hash(Random& random) {
  const std::uint64_t small = below(random, 12);
  switch (below(random, 3)) {
    case 0:
      return small;
    case 1:
      return UINT64_MAX - small;
    default:
      return std::string(small, static_cast<char>(small));
  }
}

template <class T>
std::optional<T> perhaps(Random& random, T value) {
  return below(random, 2) == 0 ? std::optional<T>(std::move(value)) : std::nullopt;
}

inline std::vector<KvHash> some_random_hashes(Random& random) {
  std::vector<KvHash> hashes(below(random, 4));
  for (KvHash& hash : hashes) hash = a_random_hash(random);
  return hashes;
}

inline KvWireEvent a_random_event(Random& random) {
  const std::string medium = below(random, 2) == 0 ? "CPU" : "GPU";
  const auto group = static_cast<std::uint32_t>(below(random, 3));
  const std::uint64_t kind = below(random, 9);
  if (kind == 8) return AllBlocksCleared{};
  if (kind >= 4)
    return BlockRemoved{some_random_hashes(random), perhaps(random, medium),
                        perhaps(random, group)};
  BlockStored stored{.block_hashes = some_random_hashes(random),
                     .parent_block_hash = perhaps(random, a_random_hash(random)),
                     .block_size = 1 + group};
  stored.token_ids.resize(stored.block_hashes.size() * stored.block_size);
  for (std::uint32_t& token : stored.token_ids) token = random.word();
  stored.lora_id = perhaps(random, static_cast<std::int64_t>(random.next()));
  stored.medium = perhaps(random, medium);
  stored.lora_name = perhaps(random, std::string("tenant é"));
  stored.extra_keys = perhaps(random, std::string("\x92\xa1x\xc4\x01\x00", 6));
  stored.group_idx = perhaps(random, group);
  stored.kv_cache_spec_kind = perhaps(random, std::string("sliding_window"));
  stored.kv_cache_spec_sliding_window = perhaps(random, random.word());
  return stored;
}

inline KvBatch a_random_batch(Random& random) {
  KvBatch batch{.ts = static_cast<double>(random.next()) * 1e-9};
  for (std::uint64_t n = below(random, 5); n > 0; --n)
    batch.events.push_back(a_random_event(random));
  batch.data_parallel_rank = perhaps(random, static_cast<std::uint32_t>(below(random, 3)));
  return batch;
}

}  // namespace servecast::cache
