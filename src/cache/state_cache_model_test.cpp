// SPDX-License-Identifier: Apache-2.0
// The state cache against a slow model of the rules (a_state_model.hpp): random operations are
// written into a log; after each the model is built anew from the whole log and every answer is
// compared.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "cache/a_state_model.hpp"

namespace servecast::cache {
namespace {

using Op = StateOp;
using Model = StateModel;

class Trial {
 public:
  Trial(const StateCacheConfig& config, std::uint64_t seed)
      : config_(config),
        unit_(config.align.match_unit > 0 ? config.align.match_unit : config.align.block_tokens),
        random_(seed),
        cache_(config),
        requests_(kRequests + 1) {
    cache_.keep_evicted_names();
  }

  void step() {
    const std::size_t request = random_.below(kRequests);
    const std::uint64_t dice = random_.below(20);
    if (dice < 6) {
      apply({.kind = Op::Kind::BeginStep});
    } else if (requests_[request].lease.empty()) {
      admit(request);
    } else if (dice == 6) {
      end(request, Op::Kind::Preempt);
    } else if (dice == 7) {
      end(request, Op::Kind::Release);
    } else {
      advance(request);
    }
  }
  // The order of the LRU list: an eater takes page after page, and all answers agree on the way.
  void drain() {
    for (std::size_t request = 0; request < kRequests; ++request) end(request, Op::Kind::Release);
    apply({.kind = Op::Kind::BeginStep});
    ASSERT_EQ(cache_.pool().active(), 0U);
    ASSERT_EQ(cache_.room(), config_.capacity);
    Op eat{.kind = Op::Kind::Admit, .request = kRequests, .tokens = text(99, 1), .target = 1};
    bool fits = apply(eat);
    eat.kind = Op::Kind::Allocate;
    while (fits && !testing::Test::HasFatalFailure()) {
      eat.target += config_.align.block_tokens;
      fits = apply(eat);
    }
    end(kRequests, Op::Kind::Release);
  }

  std::uint32_t hits = 0, failures = 0;

 private:
  static constexpr std::size_t kRequests = 4;
  struct Request {
    Tokens tokens;
    std::uint32_t prompt = 0;
    StateLease lease;
  };

  // Texts that share prefixes of many lengths.
  Tokens any_prompt() {
    const std::uint32_t longest = config_.align.block_tokens * 4 + 2;
    const auto shared = static_cast<std::uint32_t>(random_.below(longest)) + 1;
    const auto name = static_cast<std::uint32_t>(random_.below(3)) + 2;
    return fork(text(1, longest), shared, name, static_cast<std::uint32_t>(random_.below(4)));
  }
  std::uint32_t upto(std::uint32_t most) {
    return static_cast<std::uint32_t>(random_.below(most)) + 1;
  }

  void admit(std::size_t slot) {
    Request& request = requests_[slot];
    request.tokens = any_prompt();
    request.prompt = static_cast<std::uint32_t>(request.tokens.size());
    const bool generated = random_.below(4) == 0;  // as after a preemption
    if (generated) request.prompt = upto(request.prompt);
    Op op{.kind = Op::Kind::Admit, .request = slot, .tokens = request.tokens};
    op.prompt = request.prompt;
    op.needs_logits = random_.below(8) > 0;
    op.drafter = config_.align.match_unit == 0 && random_.below(4) == 0;
    const std::uint32_t known = static_cast<std::uint32_t>(request.tokens.size());
    const StateHit hit = look_up(op.tokens, op.needs_logits, op.drafter);
    op.target = chunk(request, hit.tokens, known);
    if (hit.tokens + op.target == 0) return;
    hits += hit.tokens > 0 ? 1 : 0;
    if (apply(op)) finalise(slot, hit.tokens + op.target);
  }
  // Mostly as the rule cuts it, sometimes as nobody should, which must leave no state behind.
  std::uint32_t chunk(const Request& request, std::uint32_t from, std::uint32_t known) {
    if (from == known) return 0;
    const Chunk wanted{from, request.prompt, known, upto(known - from)};
    return random_.below(4) == 0 ? wanted.tokens : cache_.split(wanted, 12);
  }
  void advance(std::size_t slot) {
    Request& request = requests_[slot];
    const auto known = static_cast<std::uint32_t>(request.tokens.size());
    if (request.lease.computed < known) {
      const std::uint32_t target =
          request.lease.computed + chunk(request, request.lease.computed, known);
      const Op op{.kind = Op::Kind::Allocate, .request = slot, .target = target};
      if (apply(op)) finalise(slot, target);
      return;
    }
    if (config_.align.match_unit == 0 && random_.below(4) == 0) {
      burst(slot);
      return;
    }
    request.tokens.push_back(static_cast<std::uint32_t>(random_.below(2)));
  }
  void burst(std::size_t slot) {
    Request& request = requests_[slot];
    const std::uint32_t tokens = upto(6), came = upto(tokens);
    if (!apply({.kind = Op::Kind::Burst, .request = slot, .target = tokens})) return;
    for (std::uint32_t i = 0; i < came; ++i) {
      request.tokens.push_back(static_cast<std::uint32_t>(random_.below(2)));
    }
    const auto known = static_cast<std::uint32_t>(request.tokens.size());
    finalise(slot, known - 1);
    apply({.kind = Op::Kind::Trim, .request = slot, .target = known});
  }
  void finalise(std::size_t slot, std::uint32_t target) {
    Op op{.kind = Op::Kind::Finalise, .request = slot, .tokens = requests_[slot].tokens};
    op.prompt = requests_[slot].prompt;
    op.target = target;
    apply(op);
  }
  void end(std::size_t slot, Op::Kind kind) { apply({.kind = kind, .request = slot}); }

  StateHit look_up(const Tokens& tokens, bool needs_logits, bool drafter) const {
    const std::vector<std::uint64_t> hashes = chain(tokens, unit_);
    return cache_.look_up({.hashes = hashes,
                           .known = static_cast<std::uint32_t>(tokens.size()),
                           .needs_logits = needs_logits,
                           .drafter = drafter});
  }

  bool apply_to_cache(const Op& op) {
    StateLease& lease = requests_[op.request].lease;
    visible_.clear();
    switch (op.kind) {
      case Op::Kind::BeginStep:
        cache_.begin_step();
        return true;
      case Op::Kind::Admit: {
        const StateHit hit = look_up(op.tokens, op.needs_logits, op.drafter);
        return cache_.admit(lease, hit, hit.tokens + op.target);
      }
      case Op::Kind::Allocate:
        return cache_.allocate(lease, op.target);
      case Op::Kind::Finalise: {
        const std::vector<std::uint64_t> hashes = chain(op.tokens, unit_);
        const auto known = static_cast<std::uint32_t>(op.tokens.size());
        const auto visible = cache_.finalise(
            lease, {.hashes = hashes, .after = op.target, .prompt = op.prompt, .known = known});
        visible_.assign(visible.begin(), visible.end());
        return true;
      }
      case Op::Kind::Burst: {
        const bool fits = cache_.burst_need(lease, op.target) <= cache_.room();
        const bool reserved = cache_.reserve_burst(lease, op.target);
        // The sources that the burst could free only add to what the need says.
        SERVECAST_CHECK(reserved || !fits);
        return reserved;
      }
      case Op::Kind::Trim:
        cache_.trim(lease, op.target);
        return true;
      case Op::Kind::Preempt:
        cache_.preempt(lease);
        return true;
      case Op::Kind::Release:
        cache_.release(lease);
        return true;
    }
    return false;
  }
  bool apply(const Op& op) {
    const bool done = apply_to_cache(op);
    failures += done ? 0 : 1;
    log_.push_back(op);
    compare(done);
    return done;
  }

  void compare(bool done) {
    Model model(config_, requests_.size());
    bool done_by_model = false;
    for (const Op& op : log_) done_by_model = model.apply(op);
    ASSERT_EQ(done, done_by_model);
    cache_.verify();
    ASSERT_EQ(cache_.pool().active(), model.count(true));
    ASSERT_EQ(cache_.pool().inactive(), model.count(false));
    if (log_.back().kind == Op::Kind::Finalise) {
      ASSERT_EQ(visible_, model.visible);
    }
    std::vector<std::uint64_t> evicted;
    for (const Tokens& prefix : model.evicted) evicted.push_back(chain(prefix, unit_).back());
    ASSERT_EQ(cache_.evicted_names(), evicted);
    for (std::size_t i = 0; i < requests_.size(); ++i) compare_lease(i, model);
    for (int i = 0; i < 3; ++i) compare_look_up(any_prompt(), model);
    compare_look_up(text(1, config_.align.block_tokens * 4 + 2), model);
  }
  void compare_lease(std::size_t slot, const Model& model) {
    const StateLease& lease = requests_[slot].lease;
    const Model::Lease& expected = model.leases[slot];
    cache_.verify(lease);
    ASSERT_EQ(!lease.empty(), expected.used);
    if (lease.empty()) return;
    ASSERT_EQ(lease.computed, expected.computed);
    ASSERT_EQ(lease.pages.size(), expected.pages.size());
    ASSERT_EQ(lease.previous.size(), expected.previous.size());
    const std::uint32_t target = lease.computed + upto(9);
    ASSERT_EQ(cache_.can_compute(lease, target), model.can_compute(slot, target));
  }
  void compare_look_up(const Tokens& tokens, const Model& model) {
    const bool needs_logits = random_.below(3) > 0, drafter = random_.below(3) == 0;
    const StateHit hit = look_up(tokens, needs_logits, drafter);
    const Model::Hit expected = model.look_up(tokens, needs_logits, drafter);
    ASSERT_EQ(hit.tokens, expected.tokens);
    const auto known = static_cast<std::uint32_t>(tokens.size());
    ASSERT_EQ(cache_.peak(known, hit), model.peak(known, expected));
    ASSERT_EQ(cache_.need(known, hit), model.peak(known, expected) - model.active_in(expected));
  }

  StateCacheConfig config_;
  std::uint32_t unit_;
  Random random_;
  StateCache cache_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> visible_;
  std::vector<Op> log_;
};

// Small pools evict, refuse and share often.
TEST(StateCache, AgreesWithTheModelThatReplaysTheWholeLog) {
  struct Case {
    std::uint32_t capacity, states, block, unit;
    AlignBoundary boundary = AlignBoundary::PromptMinusOne;
  };
  std::uint32_t hits = 0, failures = 0;
  for (const Case& c :
       {Case{7, 1, 4, 0}, Case{16, 1, 4, 0}, Case{18, 2, 3, 0}, Case{9, 1, 6, 2}, Case{14, 2, 6, 2},
        Case{20, 1, 4, 4}, Case{26, 3, 4, 1}, Case{16, 1, 4, 2, AlignBoundary::KnownFloor}}) {
    const StateCacheConfig config{
        .capacity = c.capacity,
        .state_blocks = c.states,
        .align = {.block_tokens = c.block, .match_unit = c.unit, .boundary = c.boundary}};
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Trial trial(config, seed);
      for (int i = 0; i < 90 && !testing::Test::HasFatalFailure(); ++i) trial.step();
      if (!testing::Test::HasFatalFailure()) trial.drain();
      if (testing::Test::HasFatalFailure()) {
        FAIL() << "capacity " << c.capacity << ", block " << c.block << ", unit " << c.unit
               << ", seed " << seed;
      }
      hits += trial.hits;
      failures += trial.failures;
    }
  }
  // The trials are worth something only if they reuse states and run out of room.
  EXPECT_GT(hits, 200U);
  EXPECT_GT(failures, 200U);
}

}  // namespace
}  // namespace servecast::cache
