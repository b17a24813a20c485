// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_hit.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::cache {
namespace {

// Every find_ function below returns the longest prefix of at most `limit` tokens that the groups
// of one lookup can resume from, a multiple of the hit alignment, and leaves their blocks in the
// parts.
class Search {
 public:
  Search(const GroupedRules& rules, const GroupedPool& pool, const KnownTokens& tokens)
      : rules_(rules), pool_(pool), tokens_(tokens), align_(rules.alignment.tokens) {}

  // Each group accepts a length or shortens it; a shorter one is offered to all again. The length
  // only falls, so this ends.
  GroupedHit run() {
    SERVECAST_CHECK(tokens_.known > 0);
    hit_.parts.resize(rules_.groups.size());
    std::vector<std::optional<std::uint64_t>> full_length(rules_.lookups.size());
    std::uint64_t hit = tokens_.known - 1, longest = 0;
    const bool one_round = rules_.lookups.size() == 2 && rule_of(0).kind == RuleKind::Full;
    for (bool again = true; again;) {
      std::uint64_t length = hit;
      for (std::size_t i = 0; i < rules_.lookups.size(); ++i) {
        if (full_length[i]) {  // whatever is shorter than its prefix is fine too
          length = std::min(length, *full_length[i]);
          continue;
        }
        members_ = rules_.lookups[i];
        length = find(rule_of(i), length);
        longest = std::max(longest, length);
        if (rule_of(i).kind == RuleKind::Full) full_length[i] = length;
      }
      again = length < hit && !one_round;
      hit = length;
    }
    finish(hit, longest);
    return std::move(hit_);
  }

 private:
  const GroupRule& rule_of(std::size_t lookup) const {
    return rules_.groups[rules_.lookups[lookup].front()];
  }

  void finish(std::uint64_t hit, std::uint64_t longest) {
    bool some = false;
    for (std::size_t group = 0; group < hit_.parts.size(); ++group) {
      GroupedHit::Part& part = hit_.parts[group];
      if (rules_.groups[group].kind == RuleKind::Full) {
        part.positions = static_cast<std::uint32_t>(div_ceil(hit, rules_.groups[group].block));
        part.blocks.resize(part.positions);
      }
      some |= !part.blocks.empty();
    }
    // Windows and chunks can resume without a block at some lengths; that nothing was computed
    // before is no hit for the user.
    if (!some) hit = 0;
    if (hit == 0) hit_.parts.clear();
    hit_.tokens = static_cast<std::uint32_t>(hit);
    if (longest > hit) hit_.junction = static_cast<std::uint32_t>(longest);
  }

  std::uint64_t find(const GroupRule& rule, std::uint64_t limit) {
    for (const std::uint32_t group : members_) hit_.parts[group] = {};
    switch (rule.kind) {
      case RuleKind::Full:
        return find_full(rule.block, limit);
      case RuleKind::Window:
        return find_window(rule, limit);
      case RuleKind::ChunkedLocal:
        return find_chunked(rule, limit);
      case RuleKind::State:
        return find_state(rule.block, limit);
      case RuleKind::Ring:
        break;
    }
    return 0;
  }

  // Do all groups of the lookup have a block for the prefix of so many tokens? Then adds them to
  // the parts.
  bool take_blocks(std::uint64_t boundary) {
    SERVECAST_DCHECK(boundary > 0 && boundary % rules_.unit == 0);
    const std::uint64_t at = boundary / rules_.unit - 1;
    if (at >= tokens_.hashes.size()) return false;
    row_.clear();
    for (const std::uint32_t group : members_) {
      const BlockIndex block = pool_.find({.hash = tokens_.hashes[at], .group = group});
      if (block == kNoBlock) return false;
      row_.push_back(block);
    }
    for (std::size_t i = 0; i < row_.size(); ++i) parts(i).blocks.push_back(row_[i]);
    return true;
  }
  GroupedHit::Part& parts(std::size_t member) { return hit_.parts[members_[member]]; }

  void drop_blocks() {
    for (const std::uint32_t group : members_) hit_.parts[group].blocks.clear();
  }
  std::uint64_t with_positions(std::uint64_t length, std::uint32_t block) {
    for (const std::uint32_t group : members_) {
      hit_.parts[group].positions = static_cast<std::uint32_t>(div_ceil(length, block));
    }
    return length;
  }

  std::uint64_t find_full(std::uint32_t block, std::uint64_t limit) {
    std::uint64_t length = 0;
    while (length + block <= limit && take_blocks(length + block)) length += block;
    if (align_ < block) {  // the highest prefix known inside the first block that is missing
      std::uint64_t inside = std::min(length + block - align_, floor_to(limit, align_));
      while (inside > length && !take_blocks(inside)) inside -= align_;
      length = std::max(length, inside);
    }
    return floor_to(length, align_);
  }

  // From the right: so many blocks in a row that the next token sees nothing else. Fewer do where
  // they reach the first token.
  std::uint64_t find_window(const GroupRule& rule, std::uint64_t limit) {
    const std::uint64_t needed = div_ceil(rule.span - 1, rule.block);
    if (needed == 0) return with_positions(floor_to(limit, align_), rule.block);
    std::uint64_t end = 0, run = 0;
    for (std::uint64_t i = limit / rule.block; i > 0 && run < needed; --i) {
      const std::uint64_t boundary = i * rule.block;
      if (run == 0) {
        if (boundary % align_ != 0) continue;
        end = boundary;
      }
      if (take_blocks(boundary)) {
        ++run;
      } else {
        run = 0;
        drop_blocks();
      }
    }
    for (const std::uint32_t group : members_) {
      std::vector<BlockIndex>& blocks = hit_.parts[group].blocks;
      std::reverse(blocks.begin(), blocks.end());
    }
    return with_positions(run > 0 ? end : 0, rule.block);
  }

  // Blocks of finished chunks are not read again, so only those of the last one are looked up.
  std::uint64_t find_chunked(const GroupRule& rule, std::uint64_t limit) {
    for (;;) {
      const std::uint64_t chunk = floor_to(limit, rule.span);
      std::uint64_t length = floor_to(chunk, rule.block);
      while (length + rule.block <= limit && take_blocks(length + rule.block)) length += rule.block;
      if (length >= chunk) return with_positions(length, rule.block);
      // The chunk begins inside a block that is missing, so this length lies in the chunk before.
      drop_blocks();
      limit = length;
    }
  }

  std::uint64_t find_state(std::uint32_t block, std::uint64_t limit) {
    for (std::uint64_t at = floor_to(limit, align_); at > 0; at -= align_) {
      if (take_blocks(at)) return with_positions(at, block);
    }
    return 0;
  }

  const GroupedRules& rules_;
  const GroupedPool& pool_;
  const KnownTokens& tokens_;
  const std::uint64_t align_;
  std::span<const std::uint32_t> members_;  // groups of the lookup that runs
  std::vector<BlockIndex> row_;
  GroupedHit hit_;
};

}  // namespace

GroupedHit find_hit(const GroupedRules& rules, const GroupedPool& pool, const KnownTokens& tokens) {
  return Search(rules, pool, tokens).run();
}

}  // namespace servecast::cache
