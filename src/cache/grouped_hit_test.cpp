// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_hit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.hpp"
#include "cache/grouped_oracle.hpp"
#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A pool in which prefixes of one sequence of tokens are cached.
class Cached {
 public:
  Cached(const std::vector<KvGroup>& groups, std::uint32_t unit, std::uint32_t known)
      : rules_(grouped_rules(a_setting(groups, unit, 1000))),
        pool_(1000),
        hashes_(unit_hashes(a_prompt(known, 1), unit)),
        known_(known) {}

  // The group has a block for each of these prefixes.
  Cached& with(std::uint32_t group, const std::vector<std::uint32_t>& boundaries) {
    for (const std::uint32_t at : boundaries) {
      const BlockIndex block = pool_.take();
      pool_.add_key(block, {.hash = hashes_[at / rules_.unit - 1], .group = group});
      pool_.release(block);
      blocks_[group][at] = block;
    }
    return *this;
  }
  GroupedHit hit() const { return find_hit(rules_, pool_, tokens()); }
  KnownTokens tokens() const { return {.hashes = hashes_, .prompt = known_, .known = known_}; }
  BlockIndex block(std::uint32_t group, std::uint32_t at) { return blocks_[group][at]; }
  const GroupedRules& rules() const { return rules_; }
  const GroupedPool& pool() const { return pool_; }

 private:
  GroupedRules rules_;
  GroupedPool pool_;
  std::vector<std::uint64_t> hashes_;
  std::uint32_t known_;
  std::map<std::uint32_t, std::map<std::uint32_t, BlockIndex>> blocks_;
};

TEST(GroupedHit, IsNothingInAnEmptyPool) {
  const GroupedHit hit = Cached({full(4), window(4, 8), state(4)}, 4, 40).hit();
  EXPECT_EQ(hit.tokens, 0U);
  EXPECT_EQ(hit.junction, std::nullopt);
  EXPECT_THAT(hit.parts, IsEmpty());
}

TEST(GroupedHit, OfFullAttentionEndsAtTheFirstBlockThatIsMissing) {
  EXPECT_EQ(Cached({full(4)}, 4, 40).with(0, {4, 8, 16, 20}).hit().tokens, 8U);
}

TEST(GroupedHit, NeverIsTheWholePrompt) {
  EXPECT_EQ(Cached({full(4)}, 4, 8).with(0, {4, 8}).hit().tokens, 4U);
  EXPECT_EQ(Cached({full(4)}, 4, 9).with(0, {4, 8}).hit().tokens, 8U);
}

TEST(GroupedHit, EndsInsideABlockWhereAllGroupsAllowIt) {
  Cached cached({full(16), state(16)}, 4, 40);
  cached.with(0, {16, 28, 24}).with(1, {16, 24});
  const GroupedHit hit = cached.hit();
  EXPECT_EQ(hit.tokens, 24U);  // the page with 28 tokens serves 24 of them
  EXPECT_EQ(hit.junction, 28U);
  EXPECT_EQ(hit.parts[0].positions, 2U);
  EXPECT_THAT(hit.parts[0].blocks, ElementsAre(cached.block(0, 16), cached.block(0, 28)));
  EXPECT_EQ(hit.parts[1].positions, 2U);
  EXPECT_THAT(hit.parts[1].blocks, ElementsAre(cached.block(1, 24)));
}

TEST(GroupedHit, OfAWindowNeedsWhatTheNextTokenSees) {
  // A window of 8 tokens reads 7 before the next one: two blocks.
  Cached cached({full(4), window(4, 8)}, 4, 40);
  cached.with(0, {4, 8, 12, 16, 20, 24}).with(1, {12, 16, 24});
  const GroupedHit hit = cached.hit();
  EXPECT_EQ(hit.tokens, 16U);
  EXPECT_EQ(hit.junction, 24U);
  EXPECT_EQ(hit.parts[1].positions, 4U);
  EXPECT_THAT(hit.parts[1].blocks, ElementsAre(cached.block(1, 12), cached.block(1, 16)));
}

TEST(GroupedHit, OfAWindowMayBeShorterAtTheFirstToken) {
  Cached cached({full(4), window(4, 30)}, 4, 40);
  cached.with(0, {4, 8, 12, 16}).with(1, {4, 8, 16});
  const GroupedHit hit = cached.hit();
  EXPECT_EQ(hit.tokens, 8U);
  EXPECT_THAT(hit.parts[1].blocks, ElementsAre(cached.block(1, 4), cached.block(1, 8)));
}

TEST(GroupedHit, OfAWindowEndsAtTheCommonAlignment) {
  Cached cached({full(8), window(4, 5)}, 4, 40);  // hits are multiples of 8; one block of 4 is read
  cached.with(0, {8, 16, 24}).with(1, {12, 16, 20});
  EXPECT_EQ(cached.hit().tokens, 16U);
}

TEST(GroupedHit, ASharedPrefixLongerThanTheWindowIsNotLost) {
  // 1,000 tokens shared of 1,200: the last 128 before 992 are still there.
  std::vector<std::uint32_t> all, last;
  for (std::uint32_t at = 16; at <= 992; at += 16) {
    all.push_back(at);
    if (at > 992 - 128) last.push_back(at);
  }
  const std::vector<KvGroup> groups{full(16), window(16, 128)};
  EXPECT_EQ(Cached(groups, 16, 1200).with(0, all).with(1, last).hit().tokens, 992U);
}

TEST(GroupedHit, OfChunkedAttentionReadsTheLastChunkOnly) {
  Cached cached({full(4), chunked(4, 8)}, 4, 24);  // up to 23 tokens, the last chunk begins at 16
  cached.with(0, {4, 8, 12, 16, 20}).with(1, {20});
  const GroupedHit hit = cached.hit();
  EXPECT_EQ(hit.tokens, 20U);
  EXPECT_EQ(hit.parts[1].positions, 5U);
  EXPECT_THAT(hit.parts[1].blocks, ElementsAre(cached.block(1, 20)));
  EXPECT_EQ(Cached({full(4), chunked(4, 8)}, 4, 24).with(0, {4, 8, 12, 16, 20}).hit().tokens, 16U);
}

TEST(GroupedHit, NeedsSomethingToReuse) {
  EXPECT_EQ(Cached({chunked(4, 8)}, 4, 20).hit().tokens, 0U);  // no chunk before is read
}

TEST(GroupedHit, OfAStateIsOneBlock) {
  Cached cached({state(4)}, 4, 40);
  cached.with(0, {8, 20});
  const GroupedHit hit = cached.hit();
  EXPECT_EQ(hit.tokens, 20U);
  EXPECT_EQ(hit.parts[0].positions, 5U);
  EXPECT_THAT(hit.parts[0].blocks, ElementsAre(cached.block(0, 20)));
}

TEST(GroupedHit, AStateServesNoEarlierFork) {
  Cached cached({full(4), state(4)}, 4, 9);
  cached.with(0, {4, 8});
  Cached later({full(4), state(4)}, 4, 40);
  later.with(0, {4, 8, 12}).with(1, {12});
  EXPECT_EQ(cached.hit().tokens, 0U);
  EXPECT_EQ(later.hit().tokens, 12U);
}

TEST(GroupedHit, GroupsOfOneShapeAreFoundTogether) {
  const std::vector<KvGroup> groups{full(4), state(4, 0, "a"), state(4, 0, "b")};
  Cached cached(groups, 4, 40);
  cached.with(0, {4, 8, 12}).with(1, {8, 12}).with(2, {8});
  EXPECT_EQ(cached.hit().tokens, 8U);
}

TEST(GroupedHit, ARingTakesNoPart) {
  Cached cached({full(4), ring(3)}, 4, 40);
  const GroupedHit hit = cached.with(0, {4, 8}).hit();
  EXPECT_EQ(hit.tokens, 8U);
  EXPECT_EQ(hit.parts[1].positions, 0U);
}

TEST(GroupedHit, ShortensUntilAllGroupsAgree) {
  // The window offers 20, then 12; the state 16, then 8.
  Cached cached({full(4), window(4, 5), state(4)}, 4, 40);
  cached.with(0, {4, 8, 12, 16, 20}).with(1, {8, 12, 20}).with(2, {8, 16});
  EXPECT_EQ(cached.hit().tokens, 8U);
}

// Does the part hold what a request that resumes at `at` reads, and nothing that it does not know?
void expect_part(const Cached& cached, std::uint32_t group, const GroupedHit& hit) {
  const GroupRule& rule = cached.rules().groups[group];
  const GroupedHit::Part& part = hit.parts[group];
  if (!rule.is_cacheable()) {
    EXPECT_EQ(part.positions, 0U);
    return;
  }
  EXPECT_EQ(part.positions, div_ceil(hit.tokens, rule.block));
  const std::uint64_t read = rule.skipped_tokens(hit.tokens) / rule.block;
  EXPECT_LE(part.positions - part.blocks.size(), read);
}

std::vector<std::vector<KvGroup>> many_shapes() {
  return {{full(4)},
          {full(8), state(8), ring(2)},
          {full(16), state(16)},
          {full(4), state(16), state(16, 0, "b")},
          {full(8), full(8, "b"), state(16)},
          {window(4, 10), full(8)},
          {window(4, 1), window(8, 9)},
          {full(4), window(4, 6), window(4, 13)},
          {window(4, 6), state(12)},
          {full(4), window(4, 7), state(4)},
          {full(4), chunked(4, 8)},
          {chunked(4, 6), full(4)},
          {chunked(4, 10), window(4, 9), state(4)},
          {full(4), window(8, 9)},
          {full(4), full(12)},
          {full(8), state(12)}};
}

// Every set of resident prefixes is possible: evictions leave any holes.
TEST(GroupedHit, IsTheLongestOfAllBoundaries) {
  Random random(17);
  std::uint32_t hits = 0, junctions = 0;
  for (const std::vector<KvGroup>& groups : many_shapes()) {
    for (int i = 0; i < 400; ++i) {
      const auto known = static_cast<std::uint32_t>(1 + random.below(60));
      Cached cached(groups, 4, known);
      const std::uint64_t density = random.below(11);
      for (std::uint32_t group = 0; group < groups.size(); ++group) {
        for (std::uint32_t at = 4; at <= known; at += 4) {
          if (random.below(10) < density) cached.with(group, {at});
        }
      }
      const KnownTokens tokens = cached.tokens();
      const Oracle oracle(cached.rules(), cached.pool(), tokens);
      const GroupedHit hit = cached.hit();
      ASSERT_EQ(hit.tokens, oracle.longest()) << groups[0].name << " " << groups.size() << " " << i;
      ASSERT_EQ(std::max(hit.junction.value_or(0), hit.tokens), oracle.longest_of_first());
      EXPECT_GT(hit.junction.value_or(hit.tokens + 1), hit.tokens);
      for (std::uint32_t g = 0; g < hit.parts.size(); ++g) expect_part(cached, g, hit);
      hits += hit.tokens > 0 ? 1 : 0;
      junctions += hit.junction ? 1 : 0;
    }
  }
  EXPECT_GT(hits, 1000U);
  EXPECT_GT(junctions, 1000U);
}

// Full groups with different blocks: each is asked within what the one before found, as in vLLM, so
// a page that reaches further may be passed over. What is found can be resumed from all the same.
TEST(GroupedHit, OfSeveralFullShapesCanBeResumed) {
  Random random(18);
  const std::vector<KvGroup> groups{full(4), full(16, "wide"), state(16)};
  std::uint32_t hits = 0;
  for (int i = 0; i < 1000; ++i) {
    Cached cached(groups, 4, 60);
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      for (std::uint32_t at = 4; at <= 60; at += 4) {
        if (random.below(10) < 8) cached.with(group, {at});
      }
    }
    const KnownTokens tokens = cached.tokens();
    const GroupedHit hit = cached.hit();
    if (hit.tokens == 0) continue;
    ++hits;
    ASSERT_TRUE(Oracle(cached.rules(), cached.pool(), tokens).all_resume(hit.tokens)) << i;
  }
  EXPECT_GT(hits, 200U);
}

}  // namespace
}  // namespace servecast::cache
