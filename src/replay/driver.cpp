// SPDX-License-Identifier: Apache-2.0
#include "replay/driver.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"

namespace servecast::replay {
namespace {

// Owners of single requests and of sessions must not meet.
constexpr std::uint64_t kSessionOwner = std::uint64_t{1} << 63;

}  // namespace

Driver::Driver(const workload::Workload& workload, bool spell)
    : workload_(workload),
      spell_(spell),
      closed_(workload.closed_loop()),
      cursor_(workload.cursor(spell)) {
  fetch();
  if (closed_) {
    while (has_session_ && open_count_ < workload_.concurrency()) open_session(Time{});
  }
}

void Driver::fetch() {
  if (free_open_.empty()) {
    upcoming_ = static_cast<std::uint32_t>(open_.size());
    open_.emplace_back();
  } else {
    upcoming_ = free_open_.back();
    free_open_.pop_back();
  }
  has_session_ = cursor_.next(open_[upcoming_].session);
}

void Driver::open_session(Time ready) {
  Open& open = open_[upcoming_];
  open.next_turn = 0;
  open.history_tokens = 0;
  open.plan_offset = open.session.plan_offset;
  open.history.clear();
  ++open_count_;
  ready_.push_back({ready, open.session.index, upcoming_});
  std::push_heap(ready_.begin(), ready_.end(), Later{});
  fetch();
}

Time Driver::next_ready() const {
  Time next = ready_.empty() ? kNever : ready_.front().time;
  if (!closed_ && has_session_ && upcoming().arrival < next) next = upcoming().arrival;
  return next;
}

bool Driver::release(Time now, scheduler::Request& request) {
  while (!closed_ && has_session_ && upcoming().arrival <= now) open_session(upcoming().arrival);
  if (ready_.empty() || ready_.front().time > now) return false;
  const Ready ready = ready_.front();
  std::pop_heap(ready_.begin(), ready_.end(), Later{});
  ready_.pop_back();
  request.driver = ready.open;
  fill(open_[ready.open], ready.time, request);
  ++in_flight_;
  return true;
}

void Driver::fill(Open& open, Time ready, scheduler::Request& request) {
  const workload::Session& session = open.session;
  const workload::Turn& turn = session.turns[open.next_turn];
  const bool last = open.next_turn + 1 == session.turns.size();
  const bool accumulating = workload_.accumulating();
  request.ordinal = session.first_request + open.next_turn;
  request.session = session.index;
  request.turn = open.next_turn;
  request.row = turn.row;
  request.in_session = session.turns.size() > 1;
  request.priority = turn.priority;
  request.arrival = ready;
  const Duration patience =
      turn.cancel_after != workload::kForever ? turn.cancel_after : workload_.cancel_after();
  cancel_at_ = patience < kNever - ready ? ready + patience : kNever;
  request.prompt_tokens = open.history_tokens + turn.input_tokens;
  request.output_tokens = turn.output_tokens;
  request.images = workload_.images(turn.row);

  scheduler::Content& content = request.content;
  content.prompt_first = static_cast<std::uint32_t>(request.ordinal) * std::uint64_t{1000003};
  content.plan_offset = open.plan_offset;
  if (turn.authored) content.authored = workload_.authored_tokens().data() + turn.authored_first;
  content.extra_key = turn.extra_key;
  content.group = session.group;
  if (accumulating) {
    content.owner = session.index | kSessionOwner;
    content.shared_tokens = session.shared_tokens;
    content.outlives = !last;
    // In the last turn nobody will ask for what it adds.
    content.shareable_tokens =
        last ? std::max(open.history_tokens, session.shared_tokens) : request.prompt_tokens;
  } else {
    content.owner = request.ordinal;
    content.trace_block = workload_.trace_block_size();
    if (turn.ids_count > 0 && session.ids.empty()) {
      content.ids = workload_.ids().subspan(turn.ids_first, turn.ids_count);
      content.shared_tokens = request.prompt_tokens;
    } else {
      content.shared_tokens = session.shared_tokens;
    }
    content.shareable_tokens = content.shared_tokens;
  }
  if (spell_ && !session.ids.empty()) {
    const std::uint32_t block = workload_.trace_block_size();
    for (std::uint32_t i = 0; i < turn.input_tokens; ++i) {
      open.history.push_back(session.ids[turn.ids_first + i / block]);
    }
    content.history = open.history.data();
  }
  if (!turn.authored) open.plan_offset += turn.output_tokens;
  if (accumulating) open.history_tokens = request.prompt_tokens;
}

bool Driver::ended(const scheduler::Request& request, Time now) {
  SERVECAST_CHECK(in_flight_ > 0);
  --in_flight_;
  const std::uint32_t at = request.driver;
  Open& open = open_[at];
  ++open.next_turn;
  const bool goes_on = request.ending == scheduler::Ending::Completed ||
                       request.ending == scheduler::Ending::Rejected;
  if (!goes_on || open.next_turn == open.session.turns.size()) {
    end_session(at, now);
    return true;
  }
  if (workload_.accumulating()) {
    open.history_tokens += request.generated;
    if (spell_) {
      Random plan(workload::kOutputPlanSeed);
      plan.seek(request.content.plan_offset);
      for (std::uint32_t i = 0; i < request.generated; ++i) open.history.push_back(plan.word());
    }
  }
  const Time ready = now + open.session.turns[open.next_turn].delay;
  ready_.push_back({ready, open.session.index, at});
  std::push_heap(ready_.begin(), ready_.end(), Later{});
  return ready < kNever;
}

void Driver::end_session(std::uint32_t open, Time now) {
  free_open_.push_back(open);
  --open_count_;
  if (closed_ && has_session_) open_session(now);
}

}  // namespace servecast::replay
