// SPDX-License-Identifier: Apache-2.0
// Random requests on a grouped pool, with a shadow that knows what every block holds: each prefix
// that is reused, read or found must be there, in the right block, and nothing that others need may
// be written over.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "cache/grouped_blocks.hpp"
#include "cache/grouped_gate.hpp"
#include "cache/grouped_oracle.hpp"
#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

struct Request {
  std::vector<std::uint32_t> tokens;
  std::uint32_t prompt = 0;
  std::vector<std::uint64_t> prefixes = {};  // by count of tokens
  std::vector<std::uint64_t> hashes = {};    // by unit
  GroupedLease lease = {};
  bool scheduled = false;  // in this step

  KnownTokens known() const {
    return {.hashes = hashes, .prompt = prompt, .known = static_cast<std::uint32_t>(tokens.size())};
  }
};

// What a block holds: of attention the prefix that each of its tokens ends (0: not written), of a
// state the prefix that it follows.
using Content = std::vector<std::uint64_t>;

class World {
 public:
  World(const GroupedSettings& settings, std::uint64_t seed)
      : random_(seed), blocks_(grouped_rules(settings)), budget_(settings.max_num_batched_tokens) {}

  void step() {
    blocks_.begin_step();
    for (Request& request : requests_) request.scheduled = false;
    run();
    admit();
    check_all();
    if (random_.below(3) == 0) blocks_.end_step();
    finish();
    check_all();
    submit();
    seen_.evictions = blocks_.pool().evictions();
  }

  // How often what is tested happened.
  struct Seen {
    std::uint64_t hits = 0, hits_inside = 0, outputs_reused = 0, tails_copied = 0, checkpoints = 0;
    std::uint64_t refused = 0, quiet = 0, preempted = 0, evictions = 0, hits_too_large = 0;
  };
  const Seen& seen() const { return seen_; }

 private:
  const GroupedRules& rules() const { return blocks_.rules(); }
  std::uint32_t groups() const { return static_cast<std::uint32_t>(rules().groups.size()); }

  void submit() {
    if (requests_.size() >= 8) return;
    Request request;
    // A tree of few prompts, and now and then what another request knows by now.
    if (!requests_.empty() && random_.below(3) == 0) {
      request.tokens = requests_[random_.below(requests_.size())].tokens;
      request.tokens.resize(1 + random_.below(request.tokens.size()));
    }
    const std::size_t more = request.tokens.size() < 40 ? 1 + random_.below(20) : 1;
    request.tokens = continued(request.tokens, more, static_cast<std::uint32_t>(random_.below(2)));
    request.prompt = static_cast<std::uint32_t>(request.tokens.size());
    spell(request);
    requests_.push_back(std::move(request));
  }
  void spell(Request& request) {
    request.prefixes = prefix_hashes(request.tokens);
    request.hashes = unit_hashes(request.tokens, rules().unit);
    for (std::size_t i = rules().unit; i < request.prefixes.size(); i += rules().unit) {
      lengths_[request.prefixes[i]] = i;
    }
  }

  // Running requests in some order; one without room preempts some other or itself.
  void run() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (!requests_[i].lease.admitted || random_.below(8) == 0) continue;
      const auto budget = static_cast<std::uint32_t>(1 + random_.below(budget_));
      const std::uint32_t count =
          blocks_.next_tokens(requests_[i].lease, requests_[i].known(), budget);
      while (count > 0 && requests_[i].lease.admitted && !allocate(requests_[i], count)) {
        preempt(requests_[random_.below(requests_.size())]);
      }
    }
  }
  void preempt(Request& victim) {
    if (!victim.lease.admitted) return;
    // What it was to compute in this step it does not.
    if (victim.scheduled) forget_step(victim);
    blocks_.preempt(victim.lease);
    ++seen_.preempted;
    check_all();
  }
  void forget_step(const Request& victim) {
    for (const GroupedLease::Table& table : victim.lease.tables) {
      for (const BlockIndex block : table.blocks) {
        if (block == kNoBlock || written_.count(block) == 0) continue;
        content_[block] = before_[block];
      }
    }
  }

  bool allocate(Request& request, std::uint32_t count) {
    GroupedLease& lease = request.lease;
    const GroupedPool& pool = blocks_.pool();
    const std::uint32_t from = lease.computed, free = pool.free(), cached = pool.cached();
    const std::uint64_t mutations = pool.mutations();
    const GroupedLease before = lease;
    const std::size_t held = blocks_.held_for_step().size();
    GroupedLease quiet = lease;
    const bool is_quiet = count == 1 && from >= request.prompt && blocks_.take_quietly(quiet);
    if (!blocks_.allocate(lease, request.known(), count)) {
      ++seen_.refused;
      EXPECT_FALSE(is_quiet);
      EXPECT_EQ(pool.free(), free);
      EXPECT_EQ(pool.cached(), cached);
      EXPECT_EQ(pool.mutations(), mutations);
      EXPECT_EQ(lease.computed, from);
      return false;
    }
    if (is_quiet) {  // then this was all that happened
      ++seen_.quiet;
      EXPECT_EQ(pool.free(), free);
      EXPECT_EQ(pool.cached(), cached);
      EXPECT_EQ(pool.mutations(), mutations);
      EXPECT_EQ(blocks_.held_for_step().size(), held);
      EXPECT_EQ(lease.computed, quiet.computed);
      for (std::uint32_t g = 0; g < groups(); ++g) {
        EXPECT_EQ(lease.tables[g].blocks, quiet.tables[g].blocks);
        EXPECT_EQ(lease.tables[g].keyed, quiet.tables[g].keyed);
      }
    }
    // Others find the states that this request left in copies now.
    for (const BlockIndex copy : blocks_.held_for_step().subspan(held)) {
      content_[copy] = Content{request.prefixes[from]};
      ++seen_.tails_copied;
    }
    for (std::uint32_t g = 0; g < groups(); ++g) {
      if (rules().groups[g].kind == RuleKind::State) {
        // The state is read where it was, which nobody takes meanwhile.
        const BlockIndex read = before.tables[g].blocks.back();
        EXPECT_TRUE(pool.is_held(read));
        EXPECT_EQ(content_[read], Content{request.prefixes[from]});
      }
    }
    compute(request, before, from);
    return true;
  }

  void admit() {
    for (Request& request : requests_) {
      if (request.lease.admitted || random_.below(4) == 0) continue;
      const KnownTokens tokens = request.known();
      GroupedLease& lease = request.lease;
      if (blocks_.look_up(lease, tokens)) {
        EXPECT_EQ(lease.hit.tokens, Oracle(rules(), blocks_.pool(), tokens).longest());
      }
      if (random_.below(20) == 0) blocks_.drop_hit(lease);
      seen_.hits_too_large += blocks_.full_need(lease, tokens) > blocks_.capacity() ? 1 : 0;
      if (blocks_.full_need(lease, tokens) > blocks_.available()) continue;
      const auto budget = static_cast<std::uint32_t>(1 + random_.below(budget_));
      const std::uint32_t count = blocks_.next_tokens(lease, tokens, budget);
      const std::uint64_t need = count > 0 ? blocks_.need(lease, tokens, count) : UINT64_MAX;
      if (need > blocks_.available()) continue;
      start(request, count, need);
    }
  }
  void start(Request& request, std::uint32_t count, std::uint64_t need) {
    const GroupedHit hit = request.lease.hit;
    const std::uint32_t available = blocks_.available();
    blocks_.admit(request.lease, request.known(), count);
    EXPECT_LE(available - blocks_.available(), need);
    seen_.hits += hit.tokens > 0 ? 1 : 0;
    seen_.hits_inside += hit.tokens % rules().groups[0].block != 0 ? 1 : 0;
    seen_.outputs_reused += hit.tokens > request.prompt ? 1 : 0;
    GroupedLease before;
    before.tables.resize(groups());
    for (std::uint32_t g = 0; g < groups() && hit.tokens > 0; ++g)
      take_hit(request, hit, before, g);
    compute(request, before, hit.tokens);
  }
  // The blocks that were hit hold what the request reads, and a copy gets it.
  void take_hit(const Request& request, const GroupedHit& hit, GroupedLease& before,
                std::uint32_t g) {
    const GroupRule& rule = rules().groups[g];
    if (!rule.is_cacheable()) return;
    const GroupedHit::Part& part = hit.parts[g];
    std::vector<BlockIndex>& table = before.tables[g].blocks;
    table.assign(part.positions, kNoBlock);
    std::copy(part.blocks.begin(), part.blocks.end(),
              table.end() - std::ptrdiff_t(part.blocks.size()));
    if (rule.kind == RuleKind::State) {
      EXPECT_EQ(content_[table.back()], Content{request.prefixes[hit.tokens]});
      EXPECT_TRUE(blocks_.pool().is_held(table.back()));  // it is read in this step
      return;
    }
    if (hit.tokens % rule.block == 0) return;
    Content copy = content_[table.back()];
    EXPECT_TRUE(blocks_.pool().is_held(table.back()));
    for (std::uint32_t i = hit.tokens % rule.block; i < rule.block; ++i) copy[i] = 0;
    table.back() = request.lease.tables[g].blocks[part.positions - 1];
    note_write(table.back());
    content_[table.back()] = copy;
  }

  // Tokens from `from` on are computed: reads and writes of the step.
  void compute(Request& request, const GroupedLease& before, std::uint32_t from) {
    request.scheduled = true;
    const GroupedStep step{.start = from,
                           .end = request.lease.computed,
                           .prompt = request.prompt,
                           .known = request.known().known};
    for (std::uint32_t g = 0; g < groups(); ++g) {
      const GroupRule& rule = rules().groups[g];
      const std::vector<BlockIndex>& table = request.lease.tables[g].blocks;
      const std::vector<BlockIndex>& old = before.tables[g].blocks;
      if (rule.kind == RuleKind::Ring) {
        EXPECT_EQ(table.size(), 1U);
      } else if (rule.kind == RuleKind::State) {
        compute_state(request, step, g);
      } else {
        for (std::size_t i = old.size(); i < table.size(); ++i) {
          note_write(table[i]);
          content_[table[i]] = Content(rule.block, 0);
        }
        compute_attention(request, step, g);
      }
    }
  }
  void compute_state(const Request& request, const GroupedStep& step, std::uint32_t g) {
    const std::vector<BlockIndex>& table = request.lease.tables[g].blocks;
    EXPECT_EQ(blocks_.pool().references(table.back()), 1U);
    note_write(table.back());
    content_[table.back()] = Content{request.prefixes[step.end]};
    const auto checkpoint = prefill_checkpoint(rules(), step);
    std::size_t held = 0;
    for (const BlockIndex block : table) held += block == kNoBlock ? 0 : 1;
    EXPECT_LE(held, checkpoint ? 3U : 2U);
    // The stops of the rank's junction may end the step before the checkpoint.
    if (!checkpoint) return;
    const BlockIndex reserved = table[table.size() - 2];
    SERVECAST_CHECK(reserved != kNoBlock);
    note_write(reserved);
    ++seen_.checkpoints;
    content_[reserved] = Content{request.prefixes[*checkpoint]};
  }
  void compute_attention(const Request& request, const GroupedStep& step, std::uint32_t g) {
    const GroupRule& rule = rules().groups[g];
    const std::vector<BlockIndex>& table = request.lease.tables[g].blocks;
    std::uint64_t first = 0;
    if (rule.kind == RuleKind::Window && step.start + 1 > rule.span)
      first = step.start + 1 - rule.span;
    if (rule.kind == RuleKind::ChunkedLocal) first = step.start / rule.span * rule.span;
    for (std::uint64_t token = first; token < step.start; ++token) {
      const BlockIndex block = table[token / rule.block];
      SERVECAST_CHECK(block != kNoBlock);
      EXPECT_EQ(content_[block][token % rule.block], request.prefixes[token + 1]);
    }
    for (std::uint64_t token = step.start; token < step.end; ++token) {
      const BlockIndex block = table[token / rule.block];
      SERVECAST_CHECK(block != kNoBlock);
      note_write(block);
      std::uint64_t& slot = content_[block][token % rule.block];
      EXPECT_EQ(slot, 0U);  // nobody's token is written over
      slot = request.prefixes[token + 1];
    }
  }
  void note_write(BlockIndex block) {
    if (written_.insert(block).second) before_[block] = content_[block];
  }

  // The pass has run: who has computed all gets a token or ends; some are canceled.
  void finish() {
    written_.clear();
    before_.clear();
    for (std::size_t i = 0; i < requests_.size();) {
      Request& request = requests_[i];
      if (request.lease.admitted && request.lease.computed == request.tokens.size() &&
          request.tokens.size() < 60 && random_.below(6) != 0) {
        request.tokens =
            continued(request.tokens, 1, static_cast<std::uint32_t>(2 + random_.below(2)));
        spell(request);
      } else if (random_.below(request.lease.admitted ? 12 : 30) == 0 ||
                 request.tokens.size() >= 60) {
        if (request.lease.admitted) blocks_.release(request.lease);
        requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      ++i;
    }
  }

  void check_all() {
    const GroupedPool& pool = blocks_.pool();
    std::vector<const GroupedLease*> leases;
    for (const Request& request : requests_) {
      if (request.lease.admitted) leases.push_back(&request.lease);
    }
    blocks_.verify(leases);
    EXPECT_EQ(pool.held() + pool.cached() + pool.free(), pool.capacity());
    // Whatever is found holds the prefix it is found by.
    for (const auto& [hash, length] : lengths_) {
      for (std::uint32_t g = 0; g < groups(); ++g) {
        const BlockIndex block = pool.find({.hash = hash, .group = g});
        if (block == kNoBlock) continue;
        const GroupRule& rule = rules().groups[g];
        const std::size_t slot = rule.kind == RuleKind::State ? 0 : (length - 1) % rule.block;
        SERVECAST_CHECK(slot < content_[block].size());
        EXPECT_EQ(content_[block][slot], hash) << "group " << g << ", prefix of " << length;
      }
    }
  }

  Random random_;
  Seen seen_;
  GroupedBlocks blocks_;
  std::uint32_t budget_;
  std::deque<Request> requests_;
  std::map<BlockIndex, Content> content_, before_;  // before: at the begin of the step
  std::set<BlockIndex> written_;                    // in this step
  std::map<std::uint64_t, std::size_t> lengths_;    // of all prefixes by their hash
};

struct Shape {
  std::vector<KvGroup> groups;
  std::uint32_t budget;
  bool key_outputs = true;
};

TEST(GroupedBlocks, KeepWhatTheyPromiseOverRandomRequests) {
  const std::vector<Shape> shapes{
      {{full(4)}, 16},
      {{full(16), state(16)}, 24},
      {{full(16), state(16, 1), state(16, 1, "b")}, 40},
      {{full(8), state(8), ring(8)}, 16},
      {{full(8), state(8, 1), ring(8)}, 64},
      {{full(16), state(16), ring(4)}, 8},  // a block is wider than a pass
      {{full(4), window(4, 10)}, 12},
      {{full(8), window(4, 6), state(8)}, 20},
      {{window(4, 9), chunked(4, 8)}, 12},
      {{full(4), chunked(4, 12), state(4)}, 16},
      {{full(8), window(4, 6)}, 20, false},
      {{full(16), state(16)}, 24, false},
  };
  World::Seen all;
  for (const Shape& shape : shapes) {
    GroupedSettings s = a_setting(shape.groups, 4, 1);
    s.max_num_batched_tokens = shape.budget;
    s.key_output_blocks = shape.key_outputs;
    std::vector<GroupRule> rules;
    for (const KvGroup& group : shape.groups) rules.push_back(group_rule(group, 64, shape.budget));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      s.capacity_bytes = (startup_blocks(rules) + seed * 5) * kPage;
      ASSERT_TRUE(grouped_gate(s).prefix_caching);
      World world(s, seed);
      for (int i = 0; i < 150; ++i) {
        world.step();
        if (testing::Test::HasFailure())
          FAIL() << shape.groups[0].name << " seed " << seed << " " << i;
      }
      const World::Seen& seen = world.seen();
      all.hits += seen.hits;
      all.hits_inside += seen.hits_inside;
      all.tails_copied += seen.tails_copied;
      all.checkpoints += seen.checkpoints;
      all.refused += seen.refused;
      all.quiet += seen.quiet;
      all.preempted += seen.preempted;
      all.evictions += seen.evictions;
      all.hits_too_large += seen.hits_too_large;
      // Only keys of generated tokens make a hit longer than the prompt.
      EXPECT_TRUE(shape.key_outputs || seen.outputs_reused == 0);
      all.outputs_reused += seen.outputs_reused;
    }
  }
  for (const std::uint64_t count :
       {all.hits, all.hits_inside, all.outputs_reused, all.tails_copied, all.checkpoints,
        all.refused, all.quiet, all.preempted, all.evictions, all.hits_too_large}) {
    EXPECT_GT(count, 20U);
  }
}

}  // namespace
}  // namespace servecast::cache
