// SPDX-License-Identifier: Apache-2.0
// A slow model of StateCache for tests (engine-vllm.md 6, 7, 9). It knows prefixes by their tokens,
// not by hashes, moves identities as the rules say it (the cache moves the writer instead), and
// finds the oldest block by searching.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cache/a_state_rank.hpp"

namespace servecast::cache {

// One call of a StateCache, for a log.
struct StateOp {
  enum class Kind : std::uint8_t {
    BeginStep,
    Admit,
    Allocate,
    Finalise,
    Burst,
    Trim,
    Release,
    Preempt
  };
  Kind kind = Kind::BeginStep;
  std::size_t request = 0;
  Tokens tokens = {};        // known
  std::uint32_t prompt = 0;  // of them
  std::uint32_t target = 0;  // Admit: tokens behind the hit
  bool needs_logits = true, drafter = false;
};

class StateModel {
 public:
  // A thing to find: a page or tail (slot -1) or one slot of a state.
  struct Key {
    Tokens prefix;
    int slot = -1;
    bool operator==(const Key&) const = default;
  };
  struct Copy {
    Key key;
    int order = 0;  // of its publication
    int step = 0;
  };
  struct Block {
    std::vector<Copy> copies;
    int holders = 0;
    int idle_since = -1;
  };
  struct Lease {
    bool used = false;
    std::uint32_t computed = 0, slot = 0;
    std::vector<int> pages, working, previous;
    int previous_step = 0;
    int latest = -1;  // order of the latest snapshot
  };
  struct Hit {
    std::uint32_t tokens = 0;
    std::vector<int> pages, state;
    int shared = -1;
  };

  StateModel(const StateCacheConfig& config, std::size_t requests)
      : leases(requests), config_(config) {}

  bool apply(const StateOp& op) {
    Lease& lease = leases[op.request];
    switch (op.kind) {
      case StateOp::Kind::BeginStep:
        for (const auto& [owner, block] : holds_) drop(block);
        holds_.clear();
        ++step_;
        return true;
      case StateOp::Kind::Admit:
        return admit(op, lease);
      case StateOp::Kind::Allocate:
        return op.target <= lease.computed ||
               extend(op.request, op.target, op.target, writes_elsewhere(lease, op.target));
      case StateOp::Kind::Burst:
        return extend(op.request, lease.computed + op.target, lease.computed,
                      op.target >= 2 && is_published(lease));
      case StateOp::Kind::Finalise:
        finalise(op, lease);
        return true;
      case StateOp::Kind::Trim:
        while (lease.pages.size() > pages_for(op.target)) {
          drop(lease.pages.back());
          lease.pages.pop_back();
        }
        return true;
      case StateOp::Kind::Preempt:
        for (const int block : owned(op.request)) {
          std::erase_if(at(block).copies,
                        [&](const Copy& c) { return c.key.slot >= 0 && c.step == step_; });
        }
        release(op.request);
        return true;
      case StateOp::Kind::Release:
        release(op.request);
        return true;
    }
    return false;
  }

  Hit look_up(const Tokens& known, bool needs_logits, bool drafter) const {
    const std::uint32_t size = length(known);
    std::uint32_t covered = 0;  // full pages from the first on
    Hit hit;
    while (covered + page() <= size && first(known, covered + page(), -1) >= 0) {
      covered += page();
      hit.pages.push_back(first(known, covered, -1));
    }
    std::uint32_t bound = covered;
    for (std::uint32_t end = covered; end <= std::min(size, covered + page() - 1); ++end) {
      if (end % unit() == 0 && end > covered && first(known, end, -1) >= 0) bound = end;
    }
    const int tail = bound > covered ? first(known, bound, -1) : -1;
    if (needs_logits) bound = std::min(bound, (size - 1) / unit() * unit());
    if (needs_logits && drafter && bound > 0) bound -= unit();
    for (std::uint32_t end = bound; end > 0; end -= unit()) {
      if (!restorable(known, end)) continue;
      hit.tokens = end;
      if (end % page() != 0) hit.shared = end < covered ? hit.pages[end / page()] : tail;
      hit.pages.resize(end / page());
      for (std::uint32_t slot = 0; slot < config_.state_blocks; ++slot)
        hit.state.push_back(first(known, end, static_cast<int>(slot)));
      return hit;
    }
    return {};
  }
  std::uint32_t peak(std::uint32_t known, const Hit& hit) const {
    return pages_for(known) + config_.state_blocks + (hit.tokens > 0 ? config_.state_blocks : 0) +
           (hit.tokens % page() != 0 ? 1 : 0);
  }
  std::uint32_t active_in(const Hit& hit) const {
    std::uint32_t count = 0;
    for (const int block : hit_blocks(hit)) count += at(block).holders > 0 ? 1 : 0;
    return count;
  }
  bool can_compute(std::size_t request, std::uint32_t target) const {
    const Lease& lease = leases[request];
    if (target <= lease.computed) return true;
    std::size_t blocks = std::max<std::size_t>(pages_for(target), lease.pages.size()) +
                         config_.state_blocks +
                         (writes_elsewhere(lease, target) ? config_.state_blocks : 0);
    if (lease.previous_step == step_) blocks += lease.previous.size();
    for (const auto& [owner, block] : holds_) blocks += owner == request ? 1 : 0;
    return blocks <= config_.capacity;
  }
  std::uint32_t count(bool active) const {
    return static_cast<std::uint32_t>(
        std::count_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
          return active ? block.holders > 0 : block.holders == 0 && !block.copies.empty();
        }));
  }

  std::vector<Lease> leases;           // by request
  std::vector<Tokens> evicted;         // full pages whose last copy went
  std::vector<std::uint32_t> visible;  // of the last Finalise

 private:
  static std::uint32_t length(const Tokens& tokens) {
    return static_cast<std::uint32_t>(tokens.size());
  }
  std::uint32_t page() const { return config_.align.block_tokens; }
  bool aligned() const { return config_.align.match_unit > 0; }
  std::uint32_t unit() const { return aligned() ? config_.align.match_unit : page(); }
  std::uint32_t pages_for(std::uint32_t tokens) const { return (tokens + page() - 1) / page(); }
  static Tokens head(const Tokens& tokens, std::uint32_t end) {
    return {tokens.begin(), tokens.begin() + end};
  }

  // The copy that was published first.
  int first(const Tokens& known, std::uint32_t end, int slot) const {
    int best = -1, order = 0;
    for (int i = 0; i < static_cast<int>(blocks_.size()); ++i) {
      for (const Copy& copy : at(i).copies) {
        if (copy.key.slot != slot || copy.key.prefix.size() != end ||
            !std::equal(copy.key.prefix.begin(), copy.key.prefix.end(), known.begin())) {
          continue;
        }
        if (best < 0 || copy.order < order) {
          best = i;
          order = copy.order;
        }
      }
    }
    return best;
  }
  bool restorable(const Tokens& known, std::uint32_t end) const {
    for (std::uint32_t slot = 0; slot < config_.state_blocks; ++slot) {
      bool old = false;
      for (const Block& block : blocks_) {
        for (const Copy& copy : block.copies) {
          old |= copy.step < step_ && copy.key == Key{head(known, end), static_cast<int>(slot)};
        }
      }
      if (!old) return false;
    }
    return true;
  }
  std::vector<int> hit_blocks(const Hit& hit) const {
    std::vector<int> blocks = hit.pages;
    blocks.insert(blocks.end(), hit.state.begin(), hit.state.end());
    if (hit.shared >= 0) blocks.push_back(hit.shared);
    return blocks;
  }

  Block& at(int block) { return blocks_[static_cast<std::size_t>(block)]; }
  const Block& at(int block) const { return blocks_[static_cast<std::size_t>(block)]; }

  void drop(int index) {
    if (--at(index).holders == 0) at(index).idle_since = clock_++;
  }
  int take() {
    const auto is_free = [](const Block& b) { return b.holders == 0 && b.copies.empty(); };
    auto found = std::find_if(blocks_.begin(), blocks_.end(), is_free);
    if (found == blocks_.end() && blocks_.size() < config_.capacity) {
      found = blocks_.insert(blocks_.end(), Block{});
    }
    if (found == blocks_.end()) {
      for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
        if (at->holders > 0) continue;
        if (found == blocks_.end() || at->idle_since < found->idle_since) found = at;
      }
      for (const Copy& copy : found->copies) {
        const bool full = copy.key.slot < 0 && length(copy.key.prefix) % page() == 0;
        if (!full) continue;
        int left = 0;
        for (const Block& block : blocks_) {
          for (const Copy& other : block.copies) left += other.key == copy.key ? 1 : 0;
        }
        if (left == 1) evicted.push_back(copy.key.prefix);
      }
      found->copies.clear();
    }
    found->holders = 1;
    return static_cast<int>(found - blocks_.begin());
  }
  std::uint32_t room() const { return config_.capacity - count(true); }

  bool admit(const StateOp& op, Lease& lease) {
    const Hit hit = look_up(op.tokens, op.needs_logits, op.drafter);
    const std::uint32_t target = hit.tokens + op.target;
    if (peak(target, hit) - active_in(hit) > room()) return false;
    for (const int block : hit_blocks(hit)) ++at(block).holders;
    lease.used = true;
    lease.computed = hit.tokens;
    lease.pages = hit.pages;
    if (hit.shared >= 0) {
      for (auto block = hit.state.rbegin(); block != hit.state.rend(); ++block)
        holds_.emplace_back(op.request, *block);
      holds_.emplace_back(op.request, hit.shared);
    } else {
      lease.previous = hit.state;
      lease.previous_step = step_;
    }
    while (lease.pages.size() < pages_for(target)) lease.pages.push_back(take());
    for (std::uint32_t slot = 0; slot < config_.state_blocks; ++slot)
      lease.working.push_back(take());
    lease.slot = (target - 1) / page();
    return true;
  }

  bool is_published(const Lease& lease) const { return !at(lease.working.front()).copies.empty(); }
  bool writes_elsewhere(const Lease& lease, std::uint32_t target) const {
    return is_published(lease) || (aligned() && (target - 1) / page() != lease.slot);
  }
  bool extend(std::size_t request, std::uint32_t tokens, std::uint32_t written, bool new_state) {
    Lease& lease = leases[request];
    const std::size_t wanted = std::max<std::size_t>(pages_for(tokens), lease.pages.size());
    const std::size_t fresh = wanted - lease.pages.size() + (new_state ? config_.state_blocks : 0);
    const bool dead = lease.previous_step != step_;
    std::uint32_t available = room();
    for (const int block : lease.previous) available += dead && at(block).holders == 1 ? 1 : 0;
    if (fresh > available) return false;
    if (dead) {
      for (auto block = lease.previous.rbegin(); block != lease.previous.rend(); ++block)
        drop(*block);
      lease.previous.clear();
    }
    while (lease.pages.size() < wanted) lease.pages.push_back(take());
    const bool other_page = aligned() && (written - 1) / page() != lease.slot;
    if (aligned()) lease.slot = (written - 1) / page();
    if (!new_state) return true;
    std::vector<int> more;
    for (std::uint32_t slot = 0; slot < config_.state_blocks; ++slot) more.push_back(take());
    if (other_page) {
      lease.previous.insert(lease.previous.end(), lease.working.begin(), lease.working.end());
      lease.previous_step = step_;
      lease.working = more;
      return true;
    }
    // Copy on write: the copy takes the identity and everybody who reads it over.
    for (std::size_t slot = more.size(); slot-- > 0;) {
      Block& copy = at(more[slot]);
      Block& original = at(lease.working[slot]);
      std::swap(copy.copies, original.copies);
      copy.holders = original.holders;
      original.holders = 1;
      redirect(request, lease.working[slot], more[slot]);
      holds_.emplace_back(request, more[slot]);
    }
    return true;
  }
  // Other readers of a snapshot that moves: sources and holds, never a page.
  void redirect(std::size_t writer, int from, int to) {
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if (i != writer) std::replace(leases[i].previous.begin(), leases[i].previous.end(), from, to);
    }
    for (auto& [owner, block] : holds_) {
      if (block == from) block = to;
    }
  }

  void publish(int block, const Key& key) {
    at(block).copies.push_back({key, publication_, step_});
  }
  void finalise(const StateOp& op, Lease& lease) {
    const std::uint32_t before = lease.computed;
    visible.clear();
    lease.computed = op.target;
    if (op.target == before) return;
    ++publication_;
    for (std::uint32_t end = page(); end <= op.target; end += page()) {
      if (end <= before) continue;
      if (first(op.tokens, end, -1) < 0) visible.push_back(end / page() - 1);
      publish(lease.pages[end / page() - 1], {head(op.tokens, end)});
    }
    if (!is_kept(op, before)) return;
    for (std::uint32_t slot = 0; slot < config_.state_blocks; ++slot)
      publish(lease.working[slot], {head(op.tokens, op.target), static_cast<int>(slot)});
    if (op.target % page() != 0) {
      publish(lease.pages[op.target / page()], {head(op.tokens, op.target)});
    }
    if (!aligned()) replace_latest(lease);
  }
  bool is_kept(const StateOp& op, std::uint32_t before) const {
    if (!aligned()) return op.target % page() == 0;
    const std::uint32_t known = length(op.tokens);
    if (before >= op.prompt && before + 1 >= known) return false;  // a decode step
    const std::uint32_t tail = op.prompt / unit() * unit();
    if (config_.align.boundary == AlignBoundary::PromptMinusOne) {
      return op.target == (op.prompt - 1) / page() * page() ||
             (op.target == tail && tail < op.prompt && tail % page() != 0);
    }
    const std::uint32_t full = known / page() * page();
    return op.target == full || (op.target == tail && full < tail && tail < op.prompt);
  }
  void replace_latest(Lease& lease) {
    std::vector<int> old;
    bool active = false;
    for (int i = 0; i < static_cast<int>(blocks_.size()); ++i) {
      for (const Copy& copy : at(i).copies) {
        if (copy.key.slot < 0 || copy.order != lease.latest) continue;
        old.push_back(i);
        active |= at(i).holders > 0;
      }
    }
    if (!active) {
      for (const int block : old) at(block).copies.clear();
    }
    lease.latest = publication_;
  }

  // In the order in which they are released.
  std::vector<int> owned(std::size_t request) const {
    const Lease& lease = leases[request];
    std::vector<int> blocks(lease.working.rbegin(), lease.working.rend());
    blocks.insert(blocks.end(), lease.previous.rbegin(), lease.previous.rend());
    for (const auto& [owner, block] : holds_) {
      if (owner == request) blocks.push_back(block);
    }
    blocks.insert(blocks.end(), lease.pages.rbegin(), lease.pages.rend());
    return blocks;
  }
  void release(std::size_t request) {
    if (!leases[request].used) return;
    for (const int block : owned(request)) drop(block);
    std::erase_if(holds_, [&](const auto& hold) { return hold.first == request; });
    leases[request] = {};
  }

  StateCacheConfig config_;
  std::vector<Block> blocks_;
  std::vector<std::pair<std::size_t, int>> holds_;
  int step_ = 0, publication_ = 0, clock_ = 0;
};

}  // namespace servecast::cache
