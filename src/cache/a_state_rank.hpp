// SPDX-License-Identifier: Apache-2.0
// A rank with recurrent state for tests: the smallest loop that calls a StateCache as a scheduler
// does (engine-vllm.md 5), with preemption of the last, and texts to run in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/hash.hpp"
#include "cache/state_cache.hpp"

namespace servecast::cache {

using Tokens = std::vector<std::uint32_t>;

// Tokens that no text of another name has.
inline Tokens text(std::uint32_t name, std::uint32_t count) {
  Tokens tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(name << 20 | i);
  return tokens;
}

// The first `shared` tokens of a text and `more` of another.
inline Tokens fork(const Tokens& from, std::uint32_t shared, std::uint32_t name,
                   std::uint32_t more) {
  Tokens tokens(from.begin(), from.begin() + shared);
  for (const std::uint32_t token : text(name, more)) tokens.push_back(token);
  return tokens;
}

// Hashes of the prefixes at every multiple of `unit`.
inline std::vector<std::uint64_t> chain(const Tokens& tokens, std::uint32_t unit) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    hash = fold(hash, tokens[i] + 1);
    if ((i + 1) % unit == 0) hashes.push_back(hash);
  }
  return hashes;
}

class StateRank {
 public:
  enum class State : std::uint8_t { Waiting, Running, Completed, Rejected };
  struct Sequence {
    Tokens tokens;
    std::uint32_t prompt = 0, outputs = 0;
    State state = State::Waiting;
    StateLease lease;
    std::uint32_t reused = 0;  // at the last admission
    std::uint32_t admissions = 0, preemptions = 0;
    std::vector<std::uint32_t> ends;  // computed tokens after each of its steps

    std::uint32_t known() const { return static_cast<std::uint32_t>(tokens.size()); }
    std::uint32_t generated() const { return known() - prompt; }
  };

  StateRank(const StateCacheConfig& config, std::uint32_t budget)
      : cache(config),
        unit_(config.align.match_unit > 0 ? config.align.match_unit : config.align.block_tokens),
        max_budget_(budget) {}

  Sequence& submit(const Tokens& prompt, std::uint32_t outputs) {
    Sequence& sequence = sequences_.emplace_back();
    sequence.tokens = prompt;
    sequence.prompt = static_cast<std::uint32_t>(prompt.size());
    sequence.outputs = outputs;
    waiting_.push_back(&sequence);
    return sequence;
  }

  void pass() {
    cache.begin_step();
    budget_ = max_budget_;
    preempted_ = false;
    for (std::size_t i = 0; i < running_.size() && budget_ > 0;) {
      Sequence& sequence = *running_[i];
      run(sequence);
      if (i < running_.size() && running_[i] == &sequence) ++i;
    }
    bool more = !preempted_;
    while (more && !waiting_.empty()) more = admit_first();
    end_pass();
    verify();
  }
  void run_to_end() {
    while (!running_.empty() || !waiting_.empty()) pass();
  }

  StateHit look_up(const Tokens& prompt) const { return look_up_in(cache, prompt, false); }
  // Tokens that a request with this prompt would reuse in the next pass.
  std::uint32_t reuse(const Tokens& prompt, bool drafter = false) const {
    StateCache later = cache;
    later.begin_step();
    return look_up_in(later, prompt, drafter).tokens;
  }
  std::uint32_t active() const { return cache.pool().active(); }
  std::uint32_t inactive() const { return cache.pool().inactive(); }
  std::uint32_t resident() const { return active() + inactive(); }
  std::size_t running() const { return running_.size(); }
  void verify() const {
    cache.verify();
    for (const Sequence& sequence : sequences_) cache.verify(sequence.lease);
  }

  StateCache cache;

 private:
  StateHit look_up_in(const StateCache& in, const Tokens& prompt, bool drafter) const {
    const std::vector<std::uint64_t> hashes = chain(prompt, unit_);
    return in.look_up(
        {.hashes = hashes, .known = static_cast<std::uint32_t>(prompt.size()), .drafter = drafter});
  }
  std::uint32_t chunk_of(const Sequence& sequence, std::uint32_t from) const {
    const std::uint32_t known = sequence.known();
    return cache.split({from, sequence.prompt, known, std::min(known - from, budget_)},
                       max_budget_);
  }
  void run(Sequence& sequence) {
    const std::uint32_t target =
        sequence.lease.computed + chunk_of(sequence, sequence.lease.computed);
    if (!cache.accepts(sequence.known()) || !cache.can_compute(sequence.lease, target)) {
      cache.release(sequence.lease);
      std::erase(running_, &sequence);
      sequence.state = State::Rejected;
      return;
    }
    while (!cache.allocate(sequence.lease, target)) {
      Sequence& victim = *running_.back();
      preempted_ = true;
      ++victim.preemptions;
      cache.preempt(victim.lease);
      running_.pop_back();
      victim.state = State::Waiting;
      waiting_.push_front(&victim);
      if (&victim == &sequence) return;
    }
    compute(sequence, target);
  }
  bool admit_first() {
    Sequence& sequence = *waiting_.front();
    const std::uint32_t known = sequence.known();
    const StateHit hit = look_up(sequence.tokens);
    if (!cache.accepts(known) || cache.peak(known, hit) > cache.pool().capacity()) {
      sequence.state = State::Rejected;
      waiting_.pop_front();
      return true;
    }
    const std::uint32_t chunk = chunk_of(sequence, hit.tokens);
    if (chunk == 0 || cache.need(known, hit) > cache.room()) return false;
    const bool admitted = cache.admit(sequence.lease, hit, hit.tokens + chunk);
    SERVECAST_CHECK(admitted);
    waiting_.pop_front();
    running_.push_back(&sequence);
    sequence.state = State::Running;
    sequence.reused = hit.tokens;
    ++sequence.admissions;
    compute(sequence, hit.tokens + chunk);
    return true;
  }
  void compute(Sequence& sequence, std::uint32_t target) {
    budget_ -= target - sequence.lease.computed;
    const std::vector<std::uint64_t> hashes = chain(sequence.tokens, unit_);
    cache.finalise(
        sequence.lease,
        {.hashes = hashes, .after = target, .prompt = sequence.prompt, .known = sequence.known()});
    sequence.ends.push_back(target);
  }
  void end_pass() {
    for (Sequence* sequence : running_) {
      if (sequence->lease.computed < sequence->known()) continue;
      sequence->tokens.push_back(0x80000000U + sequence->generated());
      if (sequence->generated() < sequence->outputs) continue;
      sequence->state = State::Completed;
      cache.release(sequence->lease);
    }
    std::erase_if(running_, [](const Sequence* s) { return s->state == State::Completed; });
  }

  std::uint32_t unit_, max_budget_;
  std::uint32_t budget_ = 0;
  bool preempted_ = false;
  std::deque<Sequence> sequences_;
  std::vector<Sequence*> running_;
  std::deque<Sequence*> waiting_;
};

}  // namespace servecast::cache
