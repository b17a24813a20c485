// SPDX-License-Identifier: Apache-2.0
// What only SGLang ranks do.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "property/marks.hpp"

namespace servecast::test {
namespace {

using replay::PassRecord;
using scheduler::SglangPolicy;

std::string_view several_wait(SglangPolicy policy) {
  switch (policy) {
    case SglangPolicy::Fcfs:
      return "sglang: several wait, fcfs";
    case SglangPolicy::Lpm:
      return "sglang: several wait, lpm";
    case SglangPolicy::DfsWeight:
      return "sglang: several wait, dfs_weight";
    case SglangPolicy::Lof:
      return "sglang: several wait, lof";
    case SglangPolicy::Random:
      return "sglang: several wait, random";
    case SglangPolicy::Priority:
      return "sglang: several wait, priority";
  }
  return "";
}

class SglangMarks {
 public:
  SglangMarks(Marks& marks, const scheduler::RankConfig& config, const Recording& run)
      : marks_(marks), config_(config), settings_(*config.sglang), run_(run) {
    for (const RecordedRequest& request : run.requests)
      places_[request.record.ordinal].record = &request.record;
  }

  void mark() {
    const PassRecord* before = nullptr;
    for (const PassRecord& pass : run_.passes) {
      const bool same_worker = before != nullptr && before->worker == pass.worker;
      if (!same_worker || before->pass != pass.pass) {
        round_prefilled_before_ = same_worker && round_prefilled_;
        round_prefilled_ = false;
      }
      round_prefilled_ |= pass.prefill_requests > 0;
      one(pass);
      before = &pass;
    }
    for (const auto& [id, place] : places_) mark_cancellation(place);
    if (run_.totals.evictions > 0) hit("sglang: eviction");
  }

 private:
  struct Place {
    const replay::RequestRecord* record = nullptr;
    std::uint32_t known = 0, computed = 0;
    const PassRecord* last = nullptr;      // that computed something of it
    const PassRecord* observed = nullptr;  // the pass after it
  };

  void hit(std::string_view what) { marks_[what] += 1; }

  void one(const PassRecord& pass) {
    const bool decodes = pass.decode_requests > 0, prefills = pass.prefill_requests > 0;
    if (pass.waiting > 1) hit(several_wait(settings_.policy));
    if (decodes && prefills) hit("sglang: mixed pass");
    if (decodes && !prefills && round_prefilled_before_ && pass.waiting > 0 &&
        settings_.prefill_decode_interval > 0)
      hit("sglang: prompt held back by the interval");
    if (decodes && config_.speculation) hit("sglang: speculation");
    if (decodes && settings_.mixed_chunk && !pass.preempted.empty())
      hit("sglang: retraction, mixed chunks");
    for (auto& [id, place] : places_) {
      const bool here = place.last != nullptr && place.last->worker == pass.worker;
      if (here && place.last->pass + 1 == pass.pass) place.observed = &pass;
    }
    retractions(pass);
    for (const auto& admitted : pass.admitted) {
      Place& place = places_[admitted.request];
      if (place.record == nullptr) continue;
      const bool again = place.last != nullptr;
      if (again && admitted.reused_tokens > 0) hit("sglang: readmission with reuse");
      place.known = std::max(place.known, place.record->input_tokens);
      place.computed = admitted.reused_tokens;
    }
    rows(pass);
  }

  void retractions(const PassRecord& pass) {
    if (pass.preempted.empty()) return;
    hit("sglang: retraction");
    if (settings_.host_loop) hit("sglang: retraction beside a forward in flight");
    if (pass.preempted.size() > 1) hit("sglang: several retractions in a pass");
    for (const auto& victim : pass.preempted) {
      const Place& place = places_[victim.request];
      if (place.computed + 1 < place.known)
        hit("sglang: chunked request released for the last one");
    }
  }

  void rows(const PassRecord& pass) {
    const auto shows = [&](std::uint64_t request) {
      return std::ranges::find(pass.outputs, request, &PassRecord::Output::request) !=
             pass.outputs.end();
    };
    for (const auto& item : pass.scheduled) {
      Place& place = places_[item.request];
      place.computed = item.to;
      place.last = &pass;
      if (place.record == nullptr) continue;
      const replay::RequestRecord& r = *place.record;
      const bool canceled = r.status == replay::Status::Canceled;
      const bool prefills = item.to > item.from + 1 && item.to == place.known;
      if (!settings_.host_loop && prefills && !canceled && !shows(item.request))
        hit("sglang: first token without a place");
      if (canceled && r.terminal <= pass.start)
        hit("sglang: canceled row that is in one batch more");
      const bool ends = r.status == replay::Status::Completed && r.terminal == pass.end;
      if (settings_.host_loop && ends && shows(item.request))
        hit("sglang: row that has its last token");
    }
    for (const auto& output : pass.outputs) places_[output.request].known += output.tokens;
  }

  void mark_cancellation(const Place& place) {
    if (place.record == nullptr) return;
    const replay::RequestRecord& r = *place.record;
    if (r.reason == replay::Reason::KvCapacity) hit("sglang: failed for want of memory");
    if (r.reason == replay::Reason::PoolTooSmall) hit("sglang: rejected for the pool");
    if (r.status == replay::Status::Completed && r.output_tokens == 0)
      hit("sglang: no output asked for");
    if (r.output_tokens > settings_.clip_max_new_tokens) hit("sglang: more output than the clip");
    if (!settings_.host_loop || r.status != replay::Status::Canceled || place.last == nullptr)
      return;
    const bool observed = place.observed != nullptr && place.observed->end <= r.terminal;
    if (!observed) hit("sglang: canceled with a forward in flight");
  }

  Marks& marks_;
  const scheduler::RankConfig& config_;
  const scheduler::SglangSettings& settings_;
  const Recording& run_;
  std::map<std::uint64_t, Place> places_;
  bool round_prefilled_ = false, round_prefilled_before_ = false;  // of the worker
};

}  // namespace

void mark_sglang(Marks& marks, const Scenario& scenario, const Recording& run) {
  for (const std::string_view name : {"sglang: compat",
                                      "sglang: exact",
                                      "sglang: eviction",
                                      "sglang: several wait, fcfs",
                                      "sglang: several wait, lpm",
                                      "sglang: several wait, dfs_weight",
                                      "sglang: several wait, lof",
                                      "sglang: several wait, random",
                                      "sglang: several wait, priority",
                                      "sglang: mixed pass",
                                      "sglang: prompt held back by the interval",
                                      "sglang: speculation",
                                      "sglang: retraction",
                                      "sglang: several retractions in a pass",
                                      "sglang: retraction, mixed chunks",
                                      "sglang: retraction beside a forward in flight",
                                      "sglang: chunked request released for the last one",
                                      "sglang: readmission with reuse",
                                      "sglang: first token without a place",
                                      "sglang: canceled row that is in one batch more",
                                      "sglang: row that has its last token",
                                      "sglang: failed for want of memory",
                                      "sglang: rejected for the pool",
                                      "sglang: no output asked for",
                                      "sglang: more output than the clip",
                                      "sglang: canceled with a forward in flight"})
    marks[name] += 0;
  const scheduler::RankConfig& config = scenario.deployment.rank;
  if (!config.sglang) return;
  const bool exact = config.sglang->fidelity == scheduler::Fidelity::Exact;
  marks[exact ? "sglang: exact" : "sglang: compat"] += 1;
  SglangMarks(marks, config, run).mark();
}

}  // namespace servecast::test
