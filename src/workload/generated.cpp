// SPDX-License-Identifier: Apache-2.0
#include "workload/generated.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.hpp"

namespace servecast::workload {
namespace {

constexpr std::uint64_t kTokensMax = UINT32_MAX;
constexpr std::uint64_t kDistinctIdsMax = std::uint64_t{1} << 32;

std::uint32_t div_ceil(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} + b - 1) / b);
}

// How many of a turn's `blocks` are those of its group (replay.md 10.4).
std::uint32_t shared_blocks(const Generated& plan, std::uint32_t blocks) {
  if (plan.prefix_tokens > 0) return 1;
  if (plan.groups == 0) return 0;
  const double wanted = std::round(static_cast<double>(blocks) * plan.shared_ratio);
  return std::min(static_cast<std::uint32_t>(wanted), blocks);
}

struct Extent {
  std::uint64_t input_min = kTokensMax, input_max = 0, total_max = 0;
  std::uint64_t blocks = 0;  // of all turns, an upper bound of the distinct ones
};

// One pass over the draws; one session where they never change.
Extent measure(const Generated& plan) {
  Extent extent;
  const bool constant = plan.input.is_constant() && plan.output.is_constant();
  Generated sample = plan;
  if (constant) sample.sessions = std::min(plan.sessions, 1U);
  GeneratedWalk walk(sample, false);
  for (Session session; walk.next(session);) {
    std::uint64_t context = 0;
    for (const Turn& turn : session.turns) {
      const std::uint64_t prompt = context + turn.input_tokens;
      context = prompt + turn.output_tokens;
      extent.input_min = std::min<std::uint64_t>(extent.input_min, turn.input_tokens);
      extent.input_max = std::max(extent.input_max, prompt);
      extent.total_max = std::max(extent.total_max, context);
      extent.blocks += turn.ids_count;
    }
  }
  // Below 2^64: measured() has refused sessions of more than 2^32 tokens before it reads this.
  if (constant) extent.blocks *= plan.sessions;
  return extent;
}

Result<Generated> measured(Generated plan) {
  const Extent extent = measure(plan);
  if (extent.total_max > kTokensMax) {
    return fail(
        {"workload.prompt_too_long",
         fmt::format("traffic.source: the longest prompt and its output together have {} tokens: "
                     "must be at most {}",
                     extent.total_max, kTokensMax),
         {},
         plan.turns > 1 ? "prompts of a session accumulate; use fewer turns or shorter ones" : ""});
  }
  Problems problems;
  if (plan.prefix_tokens > 0 && extent.input_min <= plan.prefix_tokens) {
    problems.push_back(
        {"workload.prefix_too_long",
         fmt::format(
             "traffic.source.cached_prefix_tokens is {}: must be below the shortest prompt, "
             "which has {} tokens",
             plan.prefix_tokens, extent.input_min),
         {},
         fmt::format("at most {}", extent.input_min - 1)});
  }
  if (extent.blocks > kDistinctIdsMax) {
    problems.push_back(
        {"workload.too_many_blocks",
         fmt::format("traffic.source: the prompts have {} content blocks of {} tokens: "
                     "must be at most {}",
                     extent.blocks, plan.block_size, kDistinctIdsMax),
         {},
         plan.prefix_tokens > 0 ? "a longer cached prefix or fewer requests"
                                : "larger blocks or fewer sessions"});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  plan.input_tokens_max = static_cast<std::uint32_t>(extent.input_max);
  plan.total_tokens_max = static_cast<std::uint32_t>(extent.total_max);
  return plan;
}

}  // namespace

Result<Generated> make_generated(const SyntheticSource& source, std::uint32_t requests) {
  return measured({.input = LengthDraw(source.input),
                   .output = LengthDraw(source.output),
                   .seed = source.seed,
                   .sessions = requests,
                   .block_size = source.cached_prefix_tokens,
                   .prefix_tokens = source.cached_prefix_tokens});
}

Result<Generated> make_generated(const SessionSource& source, std::uint32_t sessions) {
  const auto delay_ns = ns_from_ms(source.inter_turn_delay_ms);
  SERVECAST_CHECK(delay_ns.has_value());
  const bool shares = source.shared_prefix_ratio > 0 && source.prefix_groups > 0;
  return measured({.input = LengthDraw(source.new_input),
                   .output = LengthDraw(source.output),
                   .seed = source.seed,
                   .sessions = sessions,
                   .turns = source.turns,
                   .delay = {*delay_ns},
                   .block_size = source.block_size,
                   .groups = shares ? source.prefix_groups : 0,
                   .shared_ratio = source.shared_prefix_ratio});
}

GeneratedWalk::GeneratedWalk(const Generated& plan, bool spell)
    : plan_(&plan), random_(plan.seed), spell_(spell && plan.block_size > 0) {}

bool GeneratedWalk::next(Session& session) {
  const Generated& plan = *plan_;
  if (index_ == plan.sessions) return false;
  session.index = index_;
  session.first_request = std::uint64_t{index_} * plan.turns;
  session.plan_offset = plan_offset_;
  session.arrival = {};
  session.group = plan.groups > 0 ? static_cast<std::uint32_t>(random_.below(plan.groups)) : 0;
  session.shared_tokens = 0;
  session.turns.resize(plan.turns);
  session.ids.clear();
  std::uint64_t ids_first = 0;
  for (std::uint32_t t = 0; t < plan.turns; ++t) {
    Turn turn;
    turn.input_tokens = plan.input.draw(random_);
    turn.output_tokens = plan.output.draw(random_);
    if (t > 0) turn.delay = plan.delay;
    if (plan.block_size > 0) {
      turn.ids_first = ids_first;
      turn.ids_count = div_ceil(turn.input_tokens, plan.block_size);
      ids_first += turn.ids_count;
      const std::uint32_t shared = shared_blocks(plan, turn.ids_count);
      if (t == 0) {
        session.shared_tokens = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(std::uint64_t{shared} * plan.block_size, turn.input_tokens));
      }
      if (spell_) this->spell(session.group, shared, turn.ids_count, session.ids);
    }
    plan_offset_ += turn.output_tokens;
    session.turns[t] = turn;
  }
  ++index_;
  return true;
}

void GeneratedWalk::spell(std::uint32_t group, std::uint32_t shared, std::uint32_t blocks,
                          std::vector<std::uint32_t>& ids) {
  if (shared > 0) {
    std::vector<std::uint32_t>& known = group_ids_[group];
    while (known.size() < shared) known.push_back(next_id_++);
    ids.insert(ids.end(), known.begin(), known.begin() + shared);
  }
  for (std::uint32_t b = shared; b < blocks; ++b) ids.push_back(next_id_++);
}

}  // namespace servecast::workload
