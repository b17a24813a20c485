// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_residency.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cache/some_kv_batches.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

BlockStored stored(std::vector<KvHash> hashes, std::optional<KvHash> parent = {},
                   std::optional<std::uint32_t> group = {}) {
  BlockStored event{.block_hashes = std::move(hashes),
                    .parent_block_hash = std::move(parent),
                    .block_size = 1,
                    .group_idx = group};
  event.token_ids.resize(event.block_hashes.size());
  return event;
}

BlockRemoved removed(std::vector<KvHash> hashes, std::optional<std::uint32_t> group = {}) {
  return {.block_hashes = std::move(hashes), .group_idx = group};
}

KvResidency after(std::vector<KvWireEvent> events) {
  KvResidency index;
  index.apply({.events = std::move(events)});
  return index;
}

std::size_t prefix(const KvResidency& index, std::vector<KvHash> hashes,
                   std::vector<std::uint32_t> groups = {0}) {
  return index.prefix({}, groups, hashes);
}

const KvHash k5 = 5U, k7 = 7U, k8 = 8U, k99 = 99U;

TEST(KvResidency, RemovingTheUnknownChangesNothingAndTheRestIsRead) {  // A24, realdata.md case 28
  const KvResidency index = after({removed({k99}), stored({k5})});
  EXPECT_TRUE(index.holds({}, k5));
  EXPECT_EQ(index.counts().unknown_removals, 1U);
  EXPECT_EQ(index.counts().removed_blocks, 0U);
}

TEST(KvResidency, AnOrphanIsNoPrefixUntilItsParentIsStored) {  // bugs.md A25
  KvResidency index = after({stored({k8}, k7)});
  EXPECT_EQ(prefix(index, {k8}), 0U) << "not attached to the root";
  EXPECT_EQ(prefix(index, {k7, k8}), 0U);
  EXPECT_EQ(index.counts().orphan_stores, 1U);
  EXPECT_EQ(index.orphans(), 1U);
  index.apply({.events = {stored({k7})}});
  EXPECT_EQ(prefix(index, {k7, k8}), 2U);
  EXPECT_EQ(prefix(index, {k8}), 0U);
  EXPECT_EQ(index.orphans(), 0U);
}

TEST(KvResidency, ARemovalInOneGroupLeavesTheOtherAlone) {  // bugs.md A27
  KvResidency index = after({stored({k5}, {}, 0), stored({k5}, {}, 1)});
  EXPECT_EQ(prefix(index, {k5}, {0, 1}), 1U);
  index.apply({.events = {removed({k5}, 1)}});
  EXPECT_TRUE(index.holds({.group = 0}, k5));
  EXPECT_FALSE(index.holds({.group = 1}, k5));
  EXPECT_EQ(prefix(index, {k5}, {0, 1}), 0U) << "every needed group must have it";
  EXPECT_EQ(prefix(index, {k5}, {0}), 1U);
}

TEST(KvResidency, AMissingGroupIsGroupZeroAndAMissingMediumTheGpu) {
  KvResidency index = after({stored({k5}, {}, 0), stored({k5}, {}, 1), removed({k5})});
  EXPECT_FALSE(index.holds({.group = 0}, k5));
  EXPECT_TRUE(index.holds({.group = 1}, k5));
  BlockStored in_cpu = stored({k7});
  in_cpu.medium = "CPU";
  index.apply({.events = {in_cpu, removed({k7})}});
  EXPECT_TRUE(index.holds({.medium = "CPU"}, k7));
  EXPECT_EQ(index.counts().unknown_removals, 1U);
}

TEST(KvResidency, AParentInAnotherMediumOrGroupIsKnown) {
  BlockStored in_cpu = stored({k8}, k7);
  in_cpu.medium = "CPU";
  const KvResidency index = after({stored({k7}), in_cpu, stored({k8}, k7, 1)});
  EXPECT_EQ(index.counts().orphan_stores, 0U);
  EXPECT_EQ(index.orphans(), 0U);
}

TEST(KvResidency, RanksAreApart) {
  KvResidency index;
  index.apply({.events = {stored({k7})}, .data_parallel_rank = 1});
  index.apply({.events = {stored({k8}, k7)}, .data_parallel_rank = 0});
  EXPECT_EQ(index.counts().orphan_stores, 1U);
  index.apply({.events = {AllBlocksCleared{}}});
  EXPECT_THAT(index.places(), ElementsAre(KvPlace{.rank = 1}));
}

TEST(KvResidency, ListsBlocksInTheOrderInWhichTheyCame) {
  const KvResidency index =
      after({stored({k8, k5}), stored({k7}), removed({k8}), stored({k8}), stored({k7})});
  std::vector<KvHash> order;
  for (const auto& block : index.resident({})) order.push_back(block.hash);
  EXPECT_THAT(order, ElementsAre(k5, k7, k8));
  EXPECT_EQ(index.counts().stored_again, 1U);
  EXPECT_EQ(index.counts().stored_blocks, 4U);
}

TEST(KvResidency, AChainThatBitesItsOwnTailIsAside) {
  const KvResidency index = after({stored({k5}, k7), stored({k7}, k5)});
  EXPECT_EQ(index.orphans(), 2U);
}

// A list of everything resident, searched from end to end.
class SlowIndex {
 public:
  void apply(const KvBatch& batch) {
    rank_ = batch.data_parallel_rank.value_or(0);
    for (const KvWireEvent& event : batch.events) {
      if (const auto* s = std::get_if<BlockStored>(&event)) store(*s);
      if (const auto* r = std::get_if<BlockRemoved>(&event)) {
        for (const KvHash& hash : r->block_hashes)
          std::erase_if(rows, [&](const Row& row) {
            return row.hash == hash && row.at == place(r->medium, r->group_idx);
          });
      }
      if (std::holds_alternative<AllBlocksCleared>(event))
        std::erase_if(rows, [&](const Row& row) { return row.at.rank == rank_; });
    }
  }
  struct Row {
    KvPlace at;
    KvHash hash;
    std::optional<KvHash> parent;
  };
  std::vector<Row> rows;

  // Rows whose hash no chain of parents on its rank joins to the root.
  std::size_t orphans() const {
    std::vector<std::pair<std::uint32_t, KvHash>> joined;
    const auto is_joined = [&](std::uint32_t rank, const KvHash& hash) {
      return std::find(joined.begin(), joined.end(), std::pair(rank, hash)) != joined.end();
    };
    for (std::size_t before = 1; before != joined.size();) {
      before = joined.size();
      for (const Row& row : rows) {
        if (is_joined(row.at.rank, row.hash)) continue;
        if (!row.parent || is_joined(row.at.rank, *row.parent))
          joined.emplace_back(row.at.rank, row.hash);
      }
    }
    return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const Row& row) {
      return !is_joined(row.at.rank, row.hash);
    }));
  }

 private:
  KvPlace place(const std::optional<std::string>& medium, std::optional<std::uint32_t> group) {
    return {rank_, medium ? *medium : "GPU", group ? *group : 0};
  }
  void store(const BlockStored& s) {
    for (std::size_t i = 0; i < s.block_hashes.size(); ++i) {
      const KvPlace at = place(s.medium, s.group_idx);
      const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
        return row.at == at && row.hash == s.block_hashes[i];
      });
      if (!known)
        rows.push_back({at, s.block_hashes[i],
                        i == 0 ? s.parent_block_hash : std::optional(s.block_hashes[i - 1])});
    }
  }
  std::uint32_t rank_ = 0;
};

TEST(KvResidency, AgreesWithASlowIndexOnRandomEvents) {
  Random random(3);
  std::size_t aside = 0;
  for (int round = 0; round < 200; ++round) {
    KvResidency index;
    SlowIndex slow;
    for (int step = 0; step < 12; ++step) {
      const KvBatch batch = a_random_batch(random);
      index.apply(batch);
      slow.apply(batch);
      std::size_t seen = 0;
      for (const KvPlace& place : index.places()) {
        std::vector<SlowIndex::Row> want;
        std::copy_if(slow.rows.begin(), slow.rows.end(), std::back_inserter(want),
                     [&](const auto& row) { return row.at == place; });
        const auto got = index.resident(place);
        ASSERT_EQ(got.size(), want.size());
        ASSERT_EQ(got.size(), index.size(place));
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].hash, want[i].hash);
          EXPECT_EQ(got[i].parent, want[i].parent);
          EXPECT_TRUE(index.holds(place, want[i].hash));
        }
        seen += got.size();
      }
      EXPECT_EQ(seen, slow.rows.size());
      EXPECT_EQ(index.orphans(), slow.orphans());
      aside += slow.orphans();
    }
  }
  EXPECT_GT(aside, 0U);
}

}  // namespace
}  // namespace servecast::cache
