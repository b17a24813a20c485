// SPDX-License-Identifier: Apache-2.0
#include "property/marks.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace servecast::test {
namespace {

using replay::PassRecord;

struct Progress {
  std::uint32_t input = 0, computed = 0, generated = 0;
  std::uint32_t worker = 0, rank = 0;
  bool running = false;
};

// What only workers of several ranks know. `progress` is that before the pass.
void mark_group(Marks& marks, const replay::Deployment& deployment, const PassRecord& part,
                const std::map<std::uint64_t, Progress>& progress) {
  const bool group = deployment.ranks_per_worker > 1;
  marks["idle rank at a boundary"] +=
      group && part.running + part.waiting == 0 && part.scheduled.empty() && part.start < part.end;
  marks["rank that waits for a slower one"] +=
      group && !part.scheduled.empty() && part.start + part.prefill + part.decode < part.end;
  const bool throttles = group && deployment.rank.prefill_schedule_interval > 1;
  marks["somebody waits beside a decode with a prefill interval"] +=
      throttles && part.waiting > 0 && part.decode_requests > 0;
  bool held_back = false;
  for (const auto& [request, p] : progress) {
    const bool here = p.running && p.worker == part.worker && p.rank == part.rank;
    held_back |= throttles && here && p.computed < p.input && part.decode_requests > 0 &&
                 part.prefill_requests == 0;
  }
  marks["prompt held back in the middle"] += held_back;
}

// Situations inside passes, followed request by request.
void mark_passes(Marks& marks, const Scenario& scenario, const Recording& run) {
  const bool fifo = scenario.deployment.rank.preemption_mode == scheduler::PreemptionMode::Fifo;
  std::map<std::uint64_t, Progress> progress;
  for (const RecordedRequest& request : run.requests) {
    progress[request.record.ordinal].input = request.record.input_tokens;
  }
  for (const PassRecord& pass : run.passes) {
    marks["pass of no duration"] += pass.start == pass.end;
    marks["FIFO preemption"] += fifo && !pass.preempted.empty();
    marks["two victims in a pass"] += pass.preempted.size() > 1;
    marks["admission beside decodes"] += !pass.admitted.empty() && pass.decode_requests > 1;
    marks["two prompts in a pass"] += pass.prefill_requests > 1;
    marks["two completions in a pass"] +=
        std::count_if(pass.outputs.begin(), pass.outputs.end(),
                      [](const PassRecord::Output& o) { return o.completed; }) > 1;
    mark_group(marks, scenario.deployment, pass, progress);
    for (const auto& item : pass.admitted) {
      Progress& p = progress[item.request];
      p.running = true;
      p.worker = pass.worker;
      p.rank = pass.rank;
    }
    for (const auto& victim : pass.preempted) progress[victim.request].running = false;
    std::set<std::uint64_t> emitted;
    for (const auto& output : pass.outputs) {
      emitted.insert(output.request);
      progress[output.request].generated += output.tokens;
      if (output.completed || output.tokens == 0) progress[output.request].running = false;
    }
    for (const auto& item : pass.scheduled) {
      Progress& p = progress[item.request];
      marks["chunk"] += item.to < p.input;
      p.computed = item.to;
      // What looks like a member of the decode batch but had no token in this pass.
      const std::uint32_t known = p.input + p.generated;
      const bool lacks_one = p.generated > 0 && p.computed + 1 == known;
      marks["resumed request that lacks one token after a pass that preempted"] +=
          lacks_one && !emitted.contains(item.request) && !pass.preempted.empty();
    }
    for (const auto& admitted : pass.admitted) {
      const Progress& p = progress[admitted.request];
      marks["own blocks found after preemption"] += p.generated > 0 && admitted.reused_tokens > 0;
      marks["generated block found after preemption"] +=
          p.generated > 0 && admitted.reused_tokens > p.input;
    }
  }
}

// Where requests stood when their clients went away.
void mark_cancellations(Marks& marks, const Recording& run) {
  for (const std::string_view name :
       {"canceled before it was admitted", "canceled in its prefill", "canceled in its decode",
        "canceled after a preemption", "canceled beside others that went on"}) {
    marks[name] += 0;
  }
  for (const RecordedRequest& request : run.requests) {
    const replay::RequestRecord& r = request.record;
    if (r.status != replay::Status::Canceled) continue;
    marks["canceled before it was admitted"] += r.admissions == 0;
    marks["canceled in its prefill"] += r.admissions > 0 && r.output_tokens == 0;
    marks["canceled in its decode"] += r.output_tokens > 1;
    marks["canceled after a preemption"] += r.admissions == r.preemptions && r.preemptions > 0;
    marks["canceled beside others that went on"] += run.requests.size() > 1;
  }
}

// What only ranks with recurrent state do.
void mark_state(Marks& marks, const Scenario& scenario, const Recording& run) {
  const scheduler::RankConfig& rank = scenario.deployment.rank;
  std::map<std::uint64_t, std::uint32_t> inputs;
  for (const RecordedRequest& request : run.requests) {
    inputs[request.record.ordinal] = request.record.input_tokens;
    const bool has_state = rank.state.has_value();
    const replay::Reason reason = request.record.reason;
    marks["state: rejected"] += has_state && reason == replay::Reason::PoolTooSmall;
    marks["state: outgrew the pool"] += has_state && reason == replay::Reason::KvCapacity;
  }
  for (const std::string_view name :
       {"state: preemption", "state: reuse", "state: reuse that ends inside a block",
        "state: reuse of generated tokens"}) {
    marks[name] += 0;
  }
  for (const PassRecord& pass : run.passes) {
    if (!rank.state) break;
    marks["state: preemption"] += !pass.preempted.empty();
    for (const auto& admitted : pass.admitted) {
      const std::uint32_t reused = admitted.reused_tokens;
      marks["state: reuse"] += reused > 0;
      marks["state: reuse that ends inside a block"] += reused % rank.block_tokens != 0;
      marks["state: reuse of generated tokens"] += reused > inputs[admitted.request];
    }
  }
}

// What only ranks with grouped caches do.
void mark_grouped(Marks& marks, const Scenario& scenario, const Recording& run) {
  const scheduler::RankConfig& rank = scenario.deployment.rank;
  const bool cold = rank.grouped && !rank.grouped->rules;
  const bool blocks = rank.grouped && rank.grouped->rules;
  std::map<std::uint64_t, std::uint32_t> inputs;
  for (const RecordedRequest& request : run.requests) {
    const replay::Reason reason = request.record.reason;
    inputs[request.record.ordinal] = request.record.input_tokens;
    marks["cold groups: rejected"] += cold && reason == replay::Reason::PoolTooSmall;
    marks["cold groups: outgrew the pool"] += cold && reason == replay::Reason::KvCapacity;
  }
  marks["groups: eviction"] += blocks && run.totals.evictions > 0;
  for (const std::string_view name :
       {"cold groups: preemption", "groups: preemption", "groups: reuse",
        "groups: reuse that ends inside a block", "groups: reuse of generated tokens"}) {
    marks[name] += 0;
  }
  for (const PassRecord& pass : run.passes) {
    if (!rank.grouped) break;
    marks["cold groups: preemption"] += cold && !pass.preempted.empty();
    marks["groups: preemption"] += blocks && !pass.preempted.empty();
    for (const auto& admitted : pass.admitted) {
      const std::uint32_t reused = admitted.reused_tokens;
      marks["groups: reuse"] += blocks && reused > 0;
      const bool inside =
          blocks &&
          std::any_of(rank.grouped->rules->groups.begin(), rank.grouped->rules->groups.end(),
                      [&](const cache::GroupRule& rule) {
                        return rule.is_cacheable() && reused % rule.block != 0;
                      });
      marks["groups: reuse that ends inside a block"] += inside;
      marks["groups: reuse of generated tokens"] += blocks && reused > inputs[admitted.request];
    }
  }
}

}  // namespace

void mark(Marks& marks, const Scenario& scenario, const Recording& run) {
  using replay::Reason;
  const workload::Spec& spec = scenario.spec;
  marks["more than one worker"] += scenario.deployment.workers > 1;
  marks["more than one rank"] += scenario.deployment.ranks_per_worker > 1;
  marks["prefill interval"] += scenario.deployment.rank.prefill_schedule_interval > 1;
  marks["closed loop"] += spec.load.kind == workload::Load::Kind::Concurrency;
  marks["accumulating sessions"] += std::holds_alternative<workload::SessionSource>(spec.source);
  marks["authored outputs"] += scenario.trace_text.find("output_token_ids") != std::string::npos;
  if (const auto* source = std::get_if<workload::TraceSource>(&spec.source)) {
    marks["engine block that does not divide the trace block"] +=
        source->block_size % scenario.deployment.rank.block_tokens != 0;
  }
  marks["cut off by the cap"] += run.totals.incomplete_at_cap > 0;
  marks["eviction"] += run.totals.evictions > 0;
  const bool clairvoyant = scenario.deployment.kv_eviction_policy == replay::EvictionPolicy::Belady;
  const bool accumulates = std::holds_alternative<workload::SessionSource>(spec.source);
  marks["clairvoyant eviction"] += clairvoyant && run.totals.evictions > 0;
  marks["clairvoyant eviction among sessions"] +=
      clairvoyant && accumulates && run.totals.evictions > 0;
  for (const RecordedRequest& request : run.requests) {
    const replay::RequestRecord& r = request.record;
    marks["rejected for the model length"] += r.reason == Reason::ModelLength;
    marks["rejected for the pool"] += r.reason == Reason::PoolTooSmall;
    marks["rejected for the budget"] += r.reason == Reason::PromptExceedsStepBudget;
    marks["rejected for the budget after waiting"] +=
        r.reason == Reason::PromptExceedsStepBudget && r.terminal > r.arrival;
    marks["outgrew the pool"] += r.reason == Reason::KvCapacity;
    marks["preempted twice"] += r.preemptions > 1;
    marks["no output asked for"] += r.requested_output_tokens == 0;
    marks["one output"] += r.output_tokens == 1;
    marks["cut at the model length"] +=
        r.status == replay::Status::Completed && r.output_tokens < r.requested_output_tokens;
  }
  mark_passes(marks, scenario, run);
  mark_state(marks, scenario, run);
  mark_grouped(marks, scenario, run);
  mark_cancellations(marks, run);
  mark_sglang(marks, scenario, run);
}

}  // namespace servecast::test
