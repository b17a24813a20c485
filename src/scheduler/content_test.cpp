// SPDX-License-Identifier: Apache-2.0
#include "scheduler/content.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace servecast::scheduler {
namespace {

// Names of prefixes against the prefixes themselves: each name must stand for one prefix, and each
// prefix must have one name.
class Book {
 public:
  using Prefix = std::vector<std::uint64_t>;

  void enter(const Prefix& prefix, std::uint64_t name) {
    const auto by_prefix = names_.emplace(prefix, name).first;
    EXPECT_EQ(by_prefix->second, name) << "two names for one prefix of " << prefix.size();
    const auto by_name = prefixes_.emplace(name, prefix).first;
    EXPECT_EQ(by_name->second, prefix) << "one name for two prefixes";
  }
  // Enters every full block. A token is known by a number: equal numbers are equal tokens.
  void enter_blocks(const Content& content, const Prefix& tokens, std::uint32_t block_tokens) {
    std::uint64_t parent = 0;
    const auto blocks = static_cast<std::uint32_t>(tokens.size() / block_tokens);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      parent = provenance_name(content, block, block_tokens, parent);
      enter({tokens.begin(), tokens.begin() + std::ptrdiff_t{block + 1} * block_tokens}, parent);
      if (testing::Test::HasFailure()) return;
    }
  }
  std::size_t size() const { return names_.size(); }

 private:
  std::map<Prefix, std::uint64_t> names_;
  std::map<std::uint64_t, Prefix> prefixes_;
};

// Numbers for tokens that come from an owner or a group rather than from a trace id.
std::uint64_t owned(std::uint64_t owner, std::uint64_t position) {
  return (std::uint64_t{1} << 62) + (owner << 32) + position;
}
std::uint64_t grouped(std::uint64_t group, std::uint64_t position) {
  return (std::uint64_t{1} << 61) + (group << 32) + position;
}

// Two ids and short prompts, so that equal prefixes are frequent, also across different cuts. An id
// that stands next to itself is the same text in more than one trace block.
TEST(ProvenanceName, IsEqualExactlyForEqualPrefixesOfTraceRows) {
  for (const std::uint32_t block_tokens : {2U, 3U, 4U, 6U, 8U, 16U}) {
    for (const std::uint32_t trace_block : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 12U, 32U}) {
      Random random(1000 * block_tokens + trace_block);
      Book book;
      for (std::uint64_t owner = 0; owner < 300; ++owner) {
        const auto prompt = static_cast<std::uint32_t>(1 + random.below(5 * block_tokens));
        std::vector<std::uint32_t> ids((prompt + trace_block - 1) / trace_block);
        for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(random.below(2));
        Content content;
        content.owner = owner;
        content.ids = ids;
        content.trace_block = trace_block;
        content.shared_tokens = prompt;
        Book::Prefix tokens;
        for (std::uint32_t at = 0; at < prompt; ++at) tokens.push_back(ids[at / trace_block]);
        for (std::uint32_t at = prompt; at < prompt + 2 * block_tokens; ++at)
          tokens.push_back(owned(owner, at));  // generated
        book.enter_blocks(content, tokens, block_tokens);
        ASSERT_FALSE(HasFailure()) << "block " << block_tokens << ", trace block " << trace_block;
      }
      EXPECT_LT(book.size(), 300U * 6) << "nothing was shared, so nothing was tested";
    }
  }
}

// Turns of a session share all that came before; sessions of a group share its prefix as far as
// both have it.
TEST(ProvenanceName, IsEqualExactlyForEqualPrefixesOfSessions) {
  for (const std::uint32_t block_tokens : {2U, 3U, 4U, 16U}) {
    Random random(block_tokens);
    Book book;
    std::size_t blocks = 0;
    for (std::uint64_t session = 0; session < 60; ++session) {
      Content content;
      content.owner = session;
      content.group = static_cast<std::uint32_t>(random.below(3));
      content.shared_tokens = static_cast<std::uint32_t>(random.below(4 * block_tokens));
      std::uint64_t length = content.shared_tokens;
      for (int turn = 0; turn < 3; ++turn) {
        length += 1 + random.below(2 * block_tokens);
        Book::Prefix tokens;
        for (std::uint64_t at = 0; at < length; ++at) {
          tokens.push_back(at < content.shared_tokens ? grouped(content.group, at)
                                                      : owned(session, at));
        }
        book.enter_blocks(content, tokens, block_tokens);
        blocks += tokens.size() / block_tokens;
        ASSERT_FALSE(HasFailure()) << "block " << block_tokens << ", session " << session;
      }
    }
    EXPECT_LT(book.size(), blocks);
  }
}

TEST(ProvenanceName, TellsIdsApartThatDifferInHighBits) {  // bugs.md A28
  Book book;
  for (const std::uint32_t id : {1U, 0x80000001U, 0x00010001U, UINT32_MAX}) {
    const std::vector<std::uint32_t> ids{id};
    Content content;
    content.ids = ids;
    content.trace_block = 4;
    content.shared_tokens = 4;
    book.enter({id, id, id, id}, provenance_name(content, 0, 4, 0));
  }
  EXPECT_EQ(book.size(), 4U);
}

TEST(ProvenanceName, DiffersInEveryBlockWhereTheExtraKeyDiffers) {  // bugs.md A11
  const std::vector<std::uint32_t> ids{1, 2, 3, 4};
  Content of_ids;
  of_ids.ids = ids;
  of_ids.trace_block = 4;
  of_ids.shared_tokens = 12;  // the fourth block is generated
  Content of_group = of_ids;
  of_group.ids = {};
  for (const Content& content : {of_ids, of_group}) {
    std::set<std::uint64_t> names;
    for (const std::uint64_t key : {0, 1, 2, 77}) {
      Content keyed = content;
      keyed.extra_key = key;
      std::uint64_t parent = 0;
      for (std::uint32_t block = 0; block < 4; ++block) {
        parent = provenance_name(keyed, block, 4, parent);
        names.insert(parent);
      }
    }
    EXPECT_EQ(names.size(), 16U);
  }
}

TEST(ProvenanceName, ABlockThatIsSharedOnlyInPartBelongsToItsOwner) {
  const std::vector<std::uint32_t> ids{1, 2};
  Content a;
  a.owner = 1;
  a.ids = ids;
  a.trace_block = 4;
  a.shared_tokens = 6;  // two tokens of the second block are its own, generated
  Content b = a;
  b.owner = 2;
  const std::uint64_t first = provenance_name(a, 0, 4, 0);
  EXPECT_EQ(first, provenance_name(b, 0, 4, 0));
  EXPECT_NE(provenance_name(a, 1, 4, first), provenance_name(b, 1, 4, first));
}

}  // namespace
}  // namespace servecast::scheduler
