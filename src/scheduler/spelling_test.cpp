// SPDX-License-Identifier: Apache-2.0
#include "scheduler/spelling.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/hash.hpp"

namespace servecast::scheduler {
namespace {

using Tokens = std::vector<std::uint32_t>;

// The hash of a block whose tokens are written out.
std::uint64_t hash_of(const Tokens& tokens) {
  return local_block_hash(tokens);
}

Content from_ids(const Tokens& ids, std::uint32_t trace_block) {
  Content content;
  content.ids = ids;
  content.trace_block = trace_block;
  return content;
}

TEST(Spelling, GivesThePublishedHashes) {  // replay.md 32 case 1
  const Tokens counted{1, 2, 3, 4, 5, 6, 7, 8}, sevens{7}, zeros{0, 0, 1};
  Spelling spelling(4);
  Content history;
  history.history = counted.data();
  const Spelling::Hashes first = spelling.hash(history, 8, 0, 999);  // no parent: not read
  EXPECT_EQ(first.local, 14643705804678351452ULL);
  EXPECT_EQ(first.prefix, first.local);
  const Spelling::Hashes second = spelling.hash(history, 8, 1, first.prefix);
  EXPECT_EQ(second.local, 16777012769546811212ULL);
  EXPECT_EQ(second.prefix, 4945711292740353085ULL);

  const Spelling::Hashes seven = spelling.hash(from_ids(sevens, 8), 8, 0, 0);
  EXPECT_EQ(seven.prefix, 16259602842512645169ULL);
  EXPECT_EQ(spelling.hash(from_ids(sevens, 8), 8, 1, seven.prefix).prefix, 9812067070305159075ULL);

  std::uint64_t parent = 0;
  const std::array<std::uint64_t, 3> expected{13277122834585657784ULL, 5437929509326533641ULL,
                                              8356413304355882789ULL};
  for (std::uint32_t block = 0; block < 3; ++block) {
    parent = spelling.hash(from_ids(zeros, 4), 12, block, parent).prefix;
    EXPECT_EQ(parent, expected[block]);
  }
}

TEST(Spelling, ATraceIdStandsForEqualTokensWhereverABlockCutsIt) {
  const Tokens ids{5, 6, 7};
  Spelling spelling(4);
  const Content content = from_ids(ids, 3);  // 5 5 5 6 | 6 6 7 7 | 7
  EXPECT_EQ(spelling.hash(content, 9, 0, 0).local, hash_of({5, 5, 5, 6}));
  EXPECT_EQ(spelling.hash(content, 9, 1, 0).local, hash_of({6, 6, 7, 7}));
}

TEST(Spelling, APrivatePromptCountsUpFromItsFirstToken) {  // replay.md 32 case 34
  Spelling spelling(2);
  Content second;
  second.prompt_first = 1000003;
  EXPECT_EQ(spelling.hash(second, 4, 1, 0).local, hash_of({1000005, 1000006}));
  Content late;
  late.prompt_first = (std::uint64_t{5} << 32) + UINT32_MAX;
  EXPECT_EQ(spelling.hash(late, 4, 1, 0).local, hash_of({1, 2}));
}

TEST(Spelling, APrivatePromptSharesNothingWhateverItsTokensSpell) {  // replay.md 32 case 34
  Spelling spelling(4);
  Content first;  // tokens 0 1 2 3, as the first ids of a trace with blocks of one token
  Content second = first;
  second.owner = 1;
  const Tokens ids{0, 1, 2, 3};
  const Spelling::Hashes a = spelling.hash(first, 4, 0, 0), b = spelling.hash(second, 4, 0, 0);
  EXPECT_NE(a.prefix, spelling.hash(from_ids(ids, 1), 4, 0, 0).prefix);
  EXPECT_NE(a.prefix, b.prefix);
  EXPECT_EQ(a.prefix, a.local);  // as for every first block
}

TEST(Spelling, AnExtraKeySeparatesEqualTokens) {  // bugs.md A11
  Spelling spelling(4);
  const Tokens ids{5, 6};
  Content plain = from_ids(ids, 4), one = plain, other = plain;
  one.extra_key = 1;
  other.extra_key = 2;
  const Spelling::Hashes first = spelling.hash(one, 8, 0, 0);
  EXPECT_EQ(first.prefix, first.local);  // as for every first block
  EXPECT_EQ(first.prefix, chained_block_hash(1, hash_of({5, 5, 5, 5})));
  EXPECT_NE(first.prefix, spelling.hash(other, 8, 0, 0).prefix);
  EXPECT_EQ(spelling.hash(plain, 8, 0, 0).prefix, hash_of({5, 5, 5, 5}));
  EXPECT_EQ(spelling.hash(one, 8, 1, first.prefix).local, hash_of({6, 6, 6, 6}));
  Content alone;
  alone.owner = 3;
  Content keyed = alone;
  keyed.extra_key = 1;
  EXPECT_NE(spelling.hash(alone, 8, 0, 0).prefix, spelling.hash(keyed, 8, 0, 0).prefix);
}

Content planned_from(std::uint64_t offset) {
  Content content;
  content.plan_offset = offset;
  return content;
}

// Output-plan seed of replay.md 32 case 5.
constexpr std::array<std::uint32_t, 6> kPlan{952584220,  694593853,  2967053780,
                                             2932165014, 2184908278, 3971079078};

TEST(Spelling, OutputTokensAreTheWordsOfThePlanFromTheRequestsOffset) {
  Spelling spelling(2);
  const Content first = planned_from(0), second = planned_from(3);
  EXPECT_EQ(spelling.hash(first, 2, 1, 0).local, hash_of({kPlan[0], kPlan[1]}));
  EXPECT_EQ(spelling.hash(first, 2, 2, 0).local, hash_of({kPlan[2], kPlan[3]}));
  EXPECT_EQ(spelling.hash(second, 2, 1, 0).local, hash_of({kPlan[3], kPlan[4]}));
  EXPECT_EQ(spelling.hash(first, 2, 1, 0).local, hash_of({kPlan[0], kPlan[1]}))
      << "asking for another request in between changes nothing";
}

TEST(Spelling, ABlockMayHoldTheEndOfThePromptAndTheFirstOutputs) {
  Spelling spelling(4);
  const Tokens ids{8, 9}, spoken{41, 42, 43};
  const Content planned = from_ids(ids, 3);
  EXPECT_EQ(spelling.hash(planned, 5, 1, 0).local, hash_of({9, kPlan[0], kPlan[1], kPlan[2]}));
  Content authored = from_ids(ids, 3);
  authored.authored = spoken.data();
  EXPECT_EQ(spelling.hash(authored, 5, 1, 0).local, hash_of({9, 41, 42, 43}));
}

TEST(Spelling, AHistoryIsTakenBeforeIds) {
  Spelling spelling(2);
  const Tokens ids{8}, history{1, 2, 3};
  Content content = from_ids(ids, 3);
  content.history = history.data();
  EXPECT_EQ(spelling.hash(content, 3, 0, 0).local, hash_of({1, 2}));
  EXPECT_EQ(spelling.hash(content, 3, 1, 0).local, hash_of({3, kPlan[0]}));
}

TEST(Spelling, EqualBlocksAfterDifferentParentsHaveDifferentPrefixes) {
  const Tokens a{1, 3}, b{2, 3};
  Spelling spelling(4);
  const auto second = [&](const Tokens& ids) {
    const std::uint64_t parent = spelling.hash(from_ids(ids, 4), 8, 0, 0).prefix;
    return spelling.hash(from_ids(ids, 4), 8, 1, parent);
  };
  EXPECT_EQ(second(a).local, second(b).local);
  EXPECT_NE(second(a).prefix, second(b).prefix);
}

}  // namespace
}  // namespace servecast::scheduler
