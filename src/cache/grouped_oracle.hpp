// SPDX-License-Identifier: Apache-2.0
// For tests: which prefixes can be resumed from, by asking of every boundary and every token that
// is read after it. Shares nothing with the search but the rules' data.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/grouped_hit.hpp"

namespace servecast::cache {

class Oracle {
 public:
  Oracle(const GroupedRules& rules, const GroupedPool& pool, const KnownTokens& tokens)
      : rules_(rules), pool_(pool), tokens_(tokens), limit_(tokens.known - 1) {}

  // The longest boundary that all groups can resume from and for which some block is reused.
  std::uint32_t longest() const {
    std::uint32_t found = 0;
    for (std::uint32_t at = 1; at <= limit_; ++at) {
      if (is_boundary(at) && all_resume(at)) found = at;
    }
    return found > 0 && reuses_a_block(found) ? found : 0;
  }
  // The same for the groups that are looked up first, blocks or not.
  std::uint32_t longest_of_first() const {
    std::uint32_t found = 0;
    const std::uint32_t first = rules_.lookups.front().front();
    for (std::uint32_t at = 1; at <= limit_; ++at) {
      if (is_boundary(at) && resumes(first, at)) found = at;
    }
    return found;
  }
  bool all_resume(std::uint32_t at) const {
    for (std::uint32_t g = 0; g < rules_.groups.size(); ++g) {
      if (rules_.groups[g].is_cacheable() && !resumes(g, at)) return false;
    }
    return true;
  }

 private:
  bool is_boundary(std::uint32_t at) const { return at % rules_.alignment.tokens == 0; }

  // Is there a block of this group, and of those of the same shape, for the prefix of `at` tokens?
  // A request looks for prefixes shorter than itself only.
  bool has(std::uint32_t group, std::uint64_t at) const {
    if (at == 0 || at > limit_ || at % rules_.unit != 0) return false;
    if (at / rules_.unit > tokens_.hashes.size()) return false;
    for (std::uint32_t g = 0; g < rules_.groups.size(); ++g) {
      if (!rules_.groups[g].looks_like(rules_.groups[group])) continue;
      const GroupKey key{.hash = tokens_.hashes[at / rules_.unit - 1], .group = g};
      if (pool_.find(key) == kNoBlock) return false;
    }
    return true;
  }

  // The first token that is read by those computed after `at` tokens.
  std::uint64_t first_read(const GroupRule& rule, std::uint32_t at) const {
    if (rule.kind == RuleKind::Window) return at + 1 > rule.span ? at + 1 - rule.span : 0;
    if (rule.kind == RuleKind::ChunkedLocal) return at / rule.span * rule.span;
    return 0;
  }

  bool resumes(std::uint32_t group, std::uint32_t at) const {
    const GroupRule& rule = rules_.groups[group];
    if (rule.kind == RuleKind::State) return has(group, at);
    for (std::uint64_t token = first_read(rule, at); token < at; ++token) {
      if (!is_covered(group, token, at)) return false;
    }
    return true;
  }
  // Does some block hold this token and those of its block up to `at`?
  bool is_covered(std::uint32_t group, std::uint64_t token, std::uint32_t at) const {
    const GroupRule& rule = rules_.groups[group];
    const std::uint64_t begin = token / rule.block * rule.block, end = begin + rule.block;
    if (end <= at) return has(group, end);
    if (rule.kind != RuleKind::Full) return false;
    for (std::uint64_t inside = at; inside <= end; ++inside) {
      if (has(group, inside)) return true;
    }
    return false;
  }

  bool reuses_a_block(std::uint32_t at) const {
    for (const GroupRule& rule : rules_.groups) {
      if (rule.kind == RuleKind::State) return true;
      if (rule.is_cacheable() && first_read(rule, at) < at) return true;
    }
    return false;
  }

  const GroupedRules& rules_;
  const GroupedPool& pool_;
  const KnownTokens& tokens_;
  std::uint32_t limit_;
};

}  // namespace servecast::cache
