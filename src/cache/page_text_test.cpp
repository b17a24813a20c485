// SPDX-License-Identifier: Apache-2.0
#include "cache/page_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.hpp"

namespace servecast::cache {
namespace {

// What a token is: where it comes from, and which it is there.
using Token = std::pair<char, std::uint64_t>;

Token token_at(const PageText& text, std::uint64_t at) {
  if (at >= text.shared_tokens) return {'o', text.owner};
  if (text.ids.empty()) return {'g', text.group};
  return {'i', text.ids[at / text.trace_block]};
}
std::vector<Token> spell(const PageText& text, std::uint64_t first, std::uint64_t count) {
  std::vector<Token> tokens;
  for (std::uint64_t at = first; at < first + count; ++at) tokens.push_back(token_at(text, at));
  return tokens;
}

// Small numbers, so that texts are often equal for a while.
class Texts {
 public:
  explicit Texts(std::uint64_t seed) : random_(seed, "page_text") {
    trace_block_ = static_cast<std::uint32_t>(1 + random_.below(5));
    ids_.resize(8);
    for (std::vector<std::uint32_t>& row : ids_) {
      row.resize(random_.below(2) * (1 + random_.below(6)));
      for (std::uint32_t& id : row) id = static_cast<std::uint32_t>(random_.below(2));
    }
  }
  PageText any() {
    const std::vector<std::uint32_t>& ids = ids_[random_.below(ids_.size())];
    const std::uint64_t most = ids.empty() ? 25 : ids.size() * trace_block_;
    PageText text;
    text.extra_key = random_.below(6) == 0 ? 1 : 0;
    text.owner = random_.below(2);
    text.ids = ids;
    text.trace_block = trace_block_;
    text.group = static_cast<std::uint32_t>(random_.below(2));
    text.shared_tokens = static_cast<std::uint32_t>(most - random_.below(std::min(most, 7UL) + 1));
    return text;
  }
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

 private:
  Random random_;
  std::uint32_t trace_block_ = 0;
  std::vector<std::vector<std::uint32_t>> ids_;
};

TEST(PageText, IsEqualAsFarAsItsSpelling) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Texts texts(seed);
    for (int i = 0; i < 50; ++i) {
      const PageText a = texts.any(), b = texts.any();
      std::uint64_t equal = 0;
      if (a.extra_key == b.extra_key) {
        while (equal < 40 && token_at(a, equal) == token_at(b, equal)) ++equal;
      }
      const std::uint64_t from = texts.below(equal + 1), end = from + texts.below(41 - from);
      ASSERT_EQ(a.equal_until(b, from, end), std::min(equal, end)) << seed << " " << i;
      ASSERT_EQ(b.equal_until(a, from, end), std::min(equal, end)) << seed << " " << i;
    }
  }
}

// Pages behind equal prefixes: equal names iff equal tokens. Names of what lies behind different
// prefixes may be equal, as those of an owner's pages are.
TEST(PageText, NamesPagesAlikeThatSpellAlikeBehindEqualPrefixes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Texts texts(seed);
    const auto page_tokens = static_cast<std::uint32_t>(1 + texts.below(6));
    std::vector<PageText> some;
    for (int i = 0; i < 30; ++i) some.push_back(texts.any());
    for (std::uint64_t page = 0; page < 8; ++page) {
      using Page = std::tuple<std::uint64_t, std::vector<Token>, std::vector<Token>>;
      std::map<Page, std::uint64_t> names;
      std::map<std::tuple<std::uint64_t, std::vector<Token>, std::uint64_t>, Page> pages;
      for (const PageText& text : some) {
        const auto before = spell(text, 0, page * page_tokens);
        const auto itself = spell(text, page * page_tokens, page_tokens);
        const std::uint64_t name = text.page_name(page, page_tokens);
        const Page spelled{text.extra_key, before, itself};
        ASSERT_EQ(names.emplace(spelled, name).first->second, name) << seed;
        ASSERT_EQ(pages.emplace(std::tuple(text.extra_key, before, name), spelled).first->second,
                  spelled)
            << seed;
      }
    }
  }
}

TEST(PageText, TellsFirstPagesWithDifferentExtraKeysApart) {
  const PageText a{.extra_key = 1, .ids = {}, .group = 4, .shared_tokens = 100};
  PageText b = a;
  EXPECT_EQ(a.page_name(0, 16), b.page_name(0, 16));
  b.extra_key = 2;
  EXPECT_NE(a.page_name(0, 16), b.page_name(0, 16));
  EXPECT_EQ(a.equal_until(b, 0, 16), 0U);
}

}  // namespace
}  // namespace servecast::cache
