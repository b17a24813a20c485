// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/frontend_pools.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace servecast::scheduler {
namespace {

// Less than this of a service is none (engine-sglang.md S9).
constexpr double kNothingRemains = 1e-12;

}  // namespace

FrontendPools::FrontendPools(const std::vector<FrontendStage>& stages) {
  SERVECAST_CHECK(!stages.empty());
  for (const FrontendStage& pool : stages) {
    SERVECAST_CHECK(pool.workers > 0 && pool.service_ms >= 0);
    SERVECAST_CHECK(pool.concurrency_scale.empty() ||
                    pool.concurrency_scale.size() == pool.workers);
    stages_.push_back({.pool = pool});
  }
}

// requires: somebody is served.
double FrontendPools::Stage::latency_ms() const {
  if (pool.concurrency_scale.empty()) return pool.service_ms;
  return pool.service_ms * pool.concurrency_scale[active.size() - 1];
}

double FrontendPools::due_ms(const Stage& stage, const Job& job) const {
  return clock_ms_ + std::max(0.0, job.remaining) * stage.latency_ms();
}

double FrontendPools::next_end_ms() const {
  double next = std::numeric_limits<double>::infinity();
  for (const Stage& stage : stages_) {
    for (const Job& job : stage.active) next = std::min(next, due_ms(stage, job));
  }
  return next;
}

Time FrontendPools::time_of(double at_ms) const {
  const std::optional<std::int64_t> ns = ns_from_ms(at_ms);
  if (!ns || *ns >= kNever.ns - origin_.ns) return kNever;
  return origin_ + Duration{*ns};
}

bool FrontendPools::serves_nobody() const {
  return std::ranges::all_of(stages_, [](const Stage& stage) { return stage.active.empty(); });
}

void FrontendPools::settle(Time now) {
  SERVECAST_CHECK(now < kNever);
  for (double next = next_end_ms(); time_of(next) <= now; next = next_end_ms()) end_due(next);
  // An end that was rounded down is a little later than `now`.
  progress(std::max(clock_ms_, to_ms(now - origin_)));
}

void FrontendPools::progress(double at_ms) {
  const double elapsed = at_ms - clock_ms_;
  for (Stage& stage : stages_) {
    if (stage.active.empty()) continue;
    const double latency = stage.latency_ms();
    for (Job& job : stage.active)
      job.remaining = latency > 0 ? job.remaining - elapsed / latency : 0;
  }
  clock_ms_ = at_ms;
}

// Who is due is decided before anybody progresses, lest what remains after a subtraction decides
// it.
void FrontendPools::end_due(double at_ms) {
  for (Stage& stage : stages_) {
    for (Job& job : stage.active) {
      if (due_ms(stage, job) <= at_ms) job.remaining = 0;
    }
  }
  progress(at_ms);
  bool any = false;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto has_ended = [](const Job& job) { return job.remaining <= kNothingRemains; };
    for (const Job& job : stages_[s].active) {
      if (!has_ended(job)) continue;
      any = true;
      if (s + 1 < stages_.size()) {
        stages_[s + 1].queue.push_back(job.slot);
      } else {
        exits_.push_back({job.slot, time_of(at_ms)});
      }
    }
    std::erase_if(stages_[s].active, has_ended);
  }
  SERVECAST_CHECK(any);
  refill();
}

void FrontendPools::refill() {
  for (Stage& stage : stages_) {
    while (!stage.queue.empty() && stage.active.size() < stage.pool.workers) {
      stage.active.push_back({stage.queue.front()});
      stage.queue.pop_front();
    }
  }
}

void FrontendPools::submit(Slot slot, Time now) {
  settle(now);
  if (serves_nobody()) {
    origin_ = now;
    clock_ms_ = 0;
  }
  stages_.front().queue.push_back(slot);
  refill();
}

bool FrontendPools::cancel(Slot slot, Time now) {
  settle(now);
  std::size_t found = 0;
  for (Stage& stage : stages_) {
    found += std::erase_if(stage.active, [&](const Job& job) { return job.slot == slot; });
    found += std::erase(stage.queue, slot);
  }
  found += std::erase_if(exits_, [&](const Exit& exit) { return exit.slot == slot; });
  SERVECAST_CHECK(found <= 1);
  refill();
  return found == 1;
}

void FrontendPools::take_exits(Time now, std::vector<Slot>& out) {
  settle(now);
  for (; !exits_.empty() && exits_.front().at <= now; exits_.pop_front())
    out.push_back(exits_.front().slot);
}

std::optional<Time> FrontendPools::next_deadline() const {
  if (!exits_.empty()) return exits_.front().at;
  if (serves_nobody()) return std::nullopt;
  return time_of(next_end_ms());
}

std::vector<Slot> FrontendPools::slots() const {
  std::vector<Slot> slots;
  for (const Exit& exit : exits_) slots.push_back(exit.slot);
  for (const Stage& stage : stages_) {
    for (const Job& job : stage.active) slots.push_back(job.slot);
    slots.insert(slots.end(), stage.queue.begin(), stage.queue.end());
  }
  return slots;
}

void FrontendPools::verify() const {
  for (const Stage& stage : stages_) {
    SERVECAST_CHECK(stage.active.size() <= stage.pool.workers);
    SERVECAST_CHECK(stage.queue.empty() || stage.active.size() == stage.pool.workers);
    for (const Job& job : stage.active) SERVECAST_CHECK(job.remaining <= 1);
  }
  SERVECAST_CHECK(std::ranges::is_sorted(exits_, {}, &Exit::at));
}

}  // namespace servecast::scheduler
