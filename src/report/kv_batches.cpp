// SPDX-License-Identifier: Apache-2.0
#include "report/kv_batches.hpp"

#include "base/check.hpp"

namespace servecast::report {
namespace {

constexpr double kNsPerSecond = 1e9;

cache::KvWireEvent event_of(const replay::KvEventRecord& record) {
  std::vector<cache::KvHash> hashes;
  hashes.reserve(record.blocks.size());
  for (const auto& block : record.blocks) hashes.emplace_back(block.hash);
  const std::string medium(cache::kGpuMedium);
  if (!record.stored)
    return cache::BlockRemoved{
        .block_hashes = std::move(hashes), .medium = medium, .group_idx = record.group};
  SERVECAST_CHECK(!hashes.empty() && record.tokens.size() % hashes.size() == 0);
  cache::BlockStored stored;
  stored.block_size = static_cast<std::uint32_t>(record.tokens.size() / hashes.size());
  stored.block_hashes = std::move(hashes);
  if (record.has_parent) stored.parent_block_hash = record.parent;
  stored.token_ids = record.tokens;
  stored.medium = medium;
  stored.group_idx = record.group;
  return stored;
}

}  // namespace

std::uint32_t kv_rank(std::uint32_t worker, std::uint32_t rank, std::uint32_t ranks_per_worker) {
  return worker * ranks_per_worker + rank;
}

void KvBatches::add(const replay::KvEventRecord& record, std::string& out) {
  const std::uint32_t rank = kv_rank(record.worker, record.rank, record.ranks);
  const bool continues =
      at_ == record.at && open_.data_parallel_rank == rank && tokens_ < kKvBatchTokensMax;
  if (!continues) finish(out);
  if (open_.events.empty()) {
    at_ = record.at;
    open_.ts = static_cast<double>(record.at.ns) / kNsPerSecond;
    open_.data_parallel_rank = rank;
  }
  open_.events.push_back(event_of(record));
  tokens_ += record.tokens.size();
}

void KvBatches::finish(std::string& out) {
  if (open_.events.empty()) return;
  cache::append_batch(out, open_, form_);
  open_.events.clear();
  tokens_ = 0;
}

}  // namespace servecast::report
