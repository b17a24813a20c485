// SPDX-License-Identifier: Apache-2.0
// For tests of grouped caches: a small rank that schedules as engine-vllm.md 23 says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "cache/grouped_blocks.hpp"
#include "cache/some_groups.hpp"

namespace servecast::cache {

class TinyRank {
 public:
  struct Request {
    std::vector<std::uint32_t> tokens;
    std::uint32_t prompt = 0, outputs = 0;
    std::vector<std::uint64_t> hashes = {};
    GroupedLease lease = {};
    std::optional<std::uint32_t> reused = {};  // at the first admission
    std::optional<std::uint32_t> junction = {};
    std::vector<std::uint32_t> ends = {};  // computed tokens after each of its passes
    bool rejected = false, finished = false, dropped_hit = false;
  };

  TinyRank(const GroupedSettings& settings, bool chunked_prefill = true)
      : blocks_(grouped_rules(settings)),
        budget_(settings.max_num_batched_tokens),
        chunked_prefill_(chunked_prefill) {}

  // Index of the request.
  std::size_t submit(std::vector<std::uint32_t> prompt, std::uint32_t outputs) {
    const auto count = static_cast<std::uint32_t>(prompt.size());
    requests_.push_back({.tokens = std::move(prompt), .prompt = count, .outputs = outputs});
    waiting_.push_back(requests_.size() - 1);
    return waiting_.back();
  }
  const Request& operator[](std::size_t request) const { return requests_[request]; }
  GroupedBlocks& blocks() { return blocks_; }
  std::uint32_t held() const { return blocks_.pool().held(); }
  std::uint32_t cached() const { return blocks_.pool().cached(); }
  bool is_running(std::size_t request) const {
    return std::find(running_.begin(), running_.end(), request) != running_.end();
  }

  // A pass up to its end: tokens that it computes are decided and its blocks are taken.
  void begin_pass() {
    blocks_.begin_step();
    left_ = budget_;
    bool preempted = false;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Request& request = requests_[running_[i]];
      const std::uint32_t count = blocks_.next_tokens(request.lease, known(request), left_);
      if (count == 0) continue;
      bool fits = blocks_.allocate(request.lease, known(request), count);
      while (!fits && running_.size() > i) {
        preempted = true;
        blocks_.preempt(requests_[running_.back()].lease);
        waiting_.push_front(running_.back());
        running_.pop_back();
        fits = running_.size() > i && blocks_.allocate(request.lease, known(request), count);
      }
      if (fits) note(request, count);
    }
    while (!preempted && !waiting_.empty() && treat(waiting_.front())) waiting_.pop_front();
  }
  // Its end: who has computed all gets a token.
  void end_pass() {
    blocks_.end_step();
    std::erase_if(running_, [&](std::size_t index) {
      Request& request = requests_[index];
      if (request.lease.computed < request.tokens.size()) return false;
      request.tokens = continued(request.tokens, 1, static_cast<std::uint32_t>(1000 + index));
      if (--request.outputs > 0) return false;
      blocks_.release(request.lease);
      request.finished = true;
      return true;
    });
    verify();
  }
  void pass() {
    begin_pass();
    end_pass();
  }
  // Until nobody runs or waits. requires: that comes.
  void drain() {
    for (int i = 0; i < 1000 && !(running_.empty() && waiting_.empty()); ++i) pass();
    SERVECAST_CHECK(running_.empty() && waiting_.empty());
  }

 private:
  KnownTokens known(Request& request) {
    request.hashes = unit_hashes(request.tokens, blocks_.rules().unit);
    return {.hashes = request.hashes,
            .prompt = request.prompt,
            .known = static_cast<std::uint32_t>(request.tokens.size())};
  }
  void note(Request& request, std::uint32_t count) {
    left_ -= count;
    request.ends.push_back(request.lease.computed);
  }

  // Admits or rejects the head of the queue; false: it waits.
  bool treat(std::size_t index) {
    Request& request = requests_[index];
    GroupedLease& lease = request.lease;
    const KnownTokens tokens = known(request);
    blocks_.look_up(lease, tokens);
    if (blocks_.cold_need(tokens) > blocks_.capacity()) {
      request.rejected = true;
      return true;
    }
    std::optional<std::uint32_t> count = fitting(request, tokens);
    if (!count && running_.empty() && lease.hit.tokens > 0) {
      blocks_.drop_hit(lease);
      request.dropped_hit = true;
      count = fitting(request, tokens);
    }
    if (count.value_or(0) == 0) return false;
    if (!request.reused) {
      request.reused = lease.hit.tokens;
      request.junction = lease.hit.junction;
    }
    blocks_.admit(lease, tokens, *count);
    note(request, *count);
    running_.push_back(index);
    return true;
  }

  // Tokens that a waiting request may compute now; nothing when its blocks do not fit.
  std::optional<std::uint32_t> fitting(const Request& request, const KnownTokens& tokens) const {
    const GroupedLease& lease = request.lease;
    if (left_ == 0 || (!chunked_prefill_ && tokens.known - lease.hit.tokens > left_)) return 0;
    if (blocks_.full_need(lease, tokens) > blocks_.available()) return std::nullopt;
    const std::uint32_t count = blocks_.next_tokens(lease, tokens, left_);
    if (count > 0 && blocks_.need(lease, tokens, count) > blocks_.available()) return std::nullopt;
    return count;
  }

  void verify() const {
    std::vector<const GroupedLease*> leases;
    for (const std::size_t index : running_) leases.push_back(&requests_[index].lease);
    blocks_.verify(leases);
  }

  GroupedBlocks blocks_;
  std::uint32_t budget_, left_ = 0;
  bool chunked_prefill_;
  std::deque<Request> requests_;
  std::vector<std::size_t> running_;
  std::deque<std::size_t> waiting_;
};

}  // namespace servecast::cache
