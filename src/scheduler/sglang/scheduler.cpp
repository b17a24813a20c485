// SPDX-License-Identifier: Apache-2.0
// Composing a pass (engine-sglang.md S7.1), and what is known of passes to come.
#include "scheduler/sglang/scheduler.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::scheduler {

SglangScheduler::SglangScheduler(const RankConfig& config, const Options& options,
                                 RequestSlab& requests)
    : config_(config),
      settings_(*config.sglang),
      page_(config.block_tokens),
      options_(options),
      requests_(requests),
      kv_(config, {.real_hashes = options.stepping, .events = options.events}, requests),
      each_by_itself_(options.stepping || config.speculation || settings_.host_loop ||
                      settings_.mixed_chunk),
      ahead_(settings_.fidelity == Fidelity::Compat ? 1 : 0),
      cohort_(config.block_tokens, ahead_),
      reserved_(settings_.clip_max_new_tokens),
      cohort_formed_(!each_by_itself_),
      init_ratio_(std::min(1.0, 0.7 * settings_.schedule_conservativeness)),
      min_ratio_(std::min(1.0, init_ratio_ * 0.14)),
      ratio_decay_((init_ratio_ - min_ratio_) / 600),
      ratio_(init_ratio_),
      shuffle_(settings_.policy_seed + options.rank, "sglang.schedule_policy") {
  SERVECAST_CHECK(options.demands == nullptr);
  if (config.speculation) sampler_.emplace(*config.speculation, options.rank);
  if (!settings_.frontend.empty()) frontend_.emplace(settings_.frontend);
  if (settings_.vision) vision_.emplace(settings_.vision->cache_bytes);
  shape_.capacity_tokens = std::uint64_t{config.blocks} * config.block_tokens;
}

// Pages with which a rank could admit the request: more than its prompt and what admission reserves
// for its output (decisions.md 23).
std::uint64_t SglangScheduler::pages_to_admit(const Request& request) const {
  const std::uint64_t output = std::min(request.remaining(), settings_.clip_max_new_tokens);
  return page_.ceiling(request.prompt_tokens) + output / page_.divisor() + 1;
}

// A request that can never run ends with the next pass (S7.1-2, S7.10).
Reason SglangScheduler::unfit_reason(const Request& request) const {
  if (config_.max_model_len && request.prompt_tokens >= *config_.max_model_len)
    return Reason::ModelLength;
  return pages_to_admit(request) > kv_.capacity() ? Reason::PoolTooSmall : Reason::None;
}

bool SglangScheduler::submit(Slot slot, Time now) {
  if (!frontend_) return receive(slot);
  frontend_->submit(slot, now);
  return true;
}

std::optional<Time> SglangScheduler::next_internal_deadline() const {
  return frontend_ ? frontend_->next_deadline() : std::nullopt;
}

void SglangScheduler::process_internal(Time now) {
  if (!frontend_) return;
  rows_.clear();
  frontend_->take_exits(now, rows_);
  for (const Slot slot : rows_) receive(slot);
}

// The request is the scheduler's own from now on. True as submit() says.
bool SglangScheduler::receive(Slot slot) {
  Request& request = requests_[slot];
  std::uint64_t limit = std::uint64_t{request.prompt_tokens} + request.output_tokens;
  if (config_.max_model_len) limit = std::min<std::uint64_t>(limit, *config_.max_model_len);
  request.final_tokens = std::max(request.prompt_tokens, static_cast<std::uint32_t>(limit));
  request.reason = unfit_reason(request);
  if (request.reason != Reason::None) {
    unfit_.push_back(slot);
    return true;
  }
  waiting_.push_back(requests_, slot);
  if (has_moving_order()) return true;
  if (running_.size() >= config_.max_sequences) return false;
  return waiting_.first() == slot || settings_.policy != SglangPolicy::Fcfs;
}

bool SglangScheduler::has_work() const {
  return !running_.empty() || !waiting_.empty() || chunked_ != kNoSlot || !unfit_.empty() ||
         !before_.empty() || !canceled_.empty();
}

const perf::StepShape& SglangScheduler::schedule(Time now, Admit admit) {
  shape_ = {.capacity_tokens = shape_.capacity_tokens};
  flight_.clear();
  cohort_decodes_ = false;
  rejected_.clear();
  failed_.clear();
  progress_ = !before_.empty() || !canceled_.empty();
  // Here, because what ended in the pass before has been shown by now and its gaps will stay.
  if (options_.take_back && !each_by_itself_) trim(log_, requests_);

  const bool may_prefill = admit == Admit::Yes && countdown_ == 0;
  if (settings_.host_loop) commit_chunk();
  if (admit == Admit::Yes) {
    reject_unfit();
    order_waiting();
  }
  if (may_prefill && settings_.mixed_chunk && !running_.empty()) {
    build_mixed(now);
    progress_ |= !rejected_.empty() || !failed_.empty();
    return shape_;
  }
  if (may_prefill) build_prefill(now);
  if (!flight_.prefill.empty()) {
    progress_ = true;
    if (vision_) encode_images();
    if (settings_.host_loop) launch_prefill();
    return shape_;
  }
  if (!running_.empty() || lingering() > 0) {
    build_decode();
  } else if (countdown_ == 0 && has_work()) {
    decay_ratio();
  }
  progress_ |= !rejected_.empty() || !failed_.empty();
  return shape_;
}

void SglangScheduler::reject_unfit() {
  for (const Slot slot : unfit_) {
    Request& request = requests_[slot];
    request.kv_needed = pages_to_admit(request);
    rejected_.push_back(slot);
    if (options_.trace) trace_.rejected.push_back(request.ordinal);
  }
  progress_ |= !unfit_.empty();
  unfit_.clear();
}

// The host loop puts a chunk into the tree when it chooses the next pass, before it has looked at
// the result of the chunk's own (S8.2).
void SglangScheduler::commit_chunk() {
  for (const Row& row : before_.prefill) {
    if (is_current(row) && row.slot == chunked_) kv_.commit(row.slot, row.to);
  }
}

void SglangScheduler::decay_ratio() {
  ratio_ = std::max(min_ratio_, ratio_ - ratio_decay_);
}

void SglangScheduler::end_rounds(bool prefilled, std::uint64_t passes) {
  if (prefilled) {
    countdown_ = settings_.prefill_decode_interval;
  } else {
    countdown_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(countdown_, passes));
  }
}

// The rounds that are still without prefills take no time then (S12.3).
void SglangScheduler::group_is_idle() {
  if (countdown_ == 0) return;
  countdown_ = 0;
  ratio_ = init_ratio_;
}

// How many of the next `passes` decode passes leave the head of the queue where it is. The tree
// must not change meanwhile.
std::uint32_t SglangScheduler::passes_blocked(std::uint32_t passes) const {
  Budget now = budget();
  const std::optional<Candidate> head = fit(waiting_.first(), now, true);
  if (!head) return passes;
  std::uint64_t room = kv_.room();
  std::uint64_t reserved = reserved_.tokens();
  const std::uint64_t shrinking = reserved_.shrinking(cohort_.size());
  double ratio = ratio_;
  for (std::uint32_t i = 0; i < passes; ++i) {
    now.total = total_budget(room, reserved, ratio);
    if (passes_gates(*head, now, false)) return i;
    room -= cohort_.crossings(i);
    reserved -= shrinking;
    ratio = std::max(min_ratio_, ratio - ratio_decay_);
  }
  return passes;
}

Quiet SglangScheduler::quiet(std::uint32_t passes_max) const {
  // After a prefill the members' gaps are longer than the pass: those passes go one by one.
  if (!cohort_formed_ || cohort_.size() == 0 || last_decode_ != pass_) return {};
  if (!cohort_.newcomers.empty() || chunked_ != kNoSlot || !unfit_.empty()) return {};
  const std::uint64_t due = cohort_.passes_to_due();
  auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(due, passes_max));
  bool completes = due < passes_max;
  std::uint32_t passes = wanted + (completes ? 1 : 0);
  const bool full = running_.size() >= config_.max_sequences;
  std::uint64_t room = kv_.room();
  if (!waiting_.empty()) {
    if (has_moving_order()) return {};
    if (!full && settings_.policy != SglangPolicy::Fcfs) return {};  // who is the head?
    if (countdown_ > 0) {
      passes = std::min(passes, countdown_);
    } else if (!full) {
      room = kv_.free();  // an eviction might take what the head could reuse
      passes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(passes, reserved_.steady(cohort_.step())));
    }
  }
  if (cohort_.crossings_total(passes) > room) {
    for (std::uint32_t i = 0; i < passes; ++i) {
      if (cohort_.crossings(i) > room) {
        passes = i;
        break;
      }
      room -= cohort_.crossings(i);
    }
  }
  if (!waiting_.empty() && countdown_ == 0 && !full) passes = passes_blocked(passes);
  if (passes <= wanted) {
    wanted = passes;
    completes = false;
  }
  return {wanted, completes};
}

void SglangScheduler::advance(std::span<const Time> ends) {
  if (ends.empty()) return;
  const std::uint64_t passes = ends.size();
  const std::uint64_t pages = cohort_.crossings_total(passes);
  if (pages <= kv_.free()) {
    kv_.reserve(pages);
  } else {
    for (std::uint64_t i = 0; i < passes; ++i) kv_.reserve(cohort_.crossings(i));
  }
  for (std::uint64_t i = 0; i < passes && ratio_ > min_ratio_; ++i) decay_ratio();
  reserved_.advance(cohort_.step(), passes, cohort_.size());
  cohort_.advance(passes);
  if (options_.take_back) {
    for (const Time end : ends) log_.push(end);
  }
  decodes_observed_ += passes;
  pass_ += passes;
  last_decode_ = pass_;
  last_decode_end_ = ends.back();
}

std::uint64_t SglangScheduler::kv_need(Slot, std::uint32_t target) const {
  return page_.ceiling(target);
}

std::vector<Slot> SglangScheduler::live() const {
  std::vector<Slot> slots;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) slots.push_back(s);
  if (chunked_ != kNoSlot) slots.push_back(chunked_);
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) slots.push_back(s);
  slots.insert(slots.end(), unfit_.begin(), unfit_.end());
  if (frontend_) {
    const std::vector<Slot> preparing = frontend_->slots();
    slots.insert(slots.end(), preparing.begin(), preparing.end());
  }
  return slots;
}

void SglangScheduler::verify() const {
  SERVECAST_CHECK(running_.size() <= config_.max_sequences);
  SERVECAST_CHECK(ratio_ >= 0 && ratio_ <= 1);
  if (frontend_) frontend_->verify();
  if (vision_) vision_->verify();
  std::uint64_t context = 0, private_pages = 0;
  const auto count = [&](const Request& request, std::uint32_t blocks) {
    SERVECAST_CHECK(request.state == State::Running && request.prefix_blocks <= blocks);
    private_pages += blocks - request.prefix_blocks;
  };
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    const Request& request = requests_[s];
    const auto gone =
        static_cast<std::uint32_t>(cohort_formed_ ? cohort_.step() - request.joined_step : 0);
    context += request.known() + gone;
    SERVECAST_CHECK(cohort_formed_ || request.blocks == page_.ceiling(request.computed));
    count(request,
          cohort_formed_ ? page_.ceiling(request.known() + gone - 1 + ahead_) : request.blocks);
  }
  if (chunked_ != kNoSlot) count(requests_[chunked_], requests_[chunked_].blocks);
  for (const Canceled& canceled : canceled_)
    private_pages += canceled.kv.held - canceled.kv.prefix_blocks;
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after)
    SERVECAST_CHECK(requests_[s].state != State::Running && requests_[s].blocks == 0);
  if (cohort_formed_)
    SERVECAST_CHECK(running_.size() == cohort_.size() && context == cohort_.context());
  kv_.verify(private_pages, running_.empty() && chunked_ == kNoSlot && canceled_.empty());
}

}  // namespace servecast::scheduler
