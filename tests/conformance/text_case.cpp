// SPDX-License-Identifier: Apache-2.0
#include "conformance/text_case.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "cache/grouped_gate.hpp"
#include "conformance/case_facts.hpp"
#include "conformance/shared_sglang.hpp"
#include "perf/timers.hpp"

namespace servecast::test {
namespace {

std::uint32_t small(const Value& value) {
  const std::uint64_t count = value.count();
  if (count > std::numeric_limits<std::uint32_t>::max()) value.refuse("too large");
  return static_cast<std::uint32_t>(count);
}

std::shared_ptr<const perf::StepTimer> read_timer(const Value& engine) {
  const Value* timing = engine.find("timing");
  if (timing != nullptr && timing->scalar == "polynomial") return perf::polynomial_timer().value();
  if (timing != nullptr) timing->refuse("timing is polynomial, or prefill_ms and decode_ms");
  perf::FixedDurations fixed{.prefill_ms = engine.at("prefill_ms").number(),
                             .decode_ms = engine.at("decode_ms").number()};
  if (const Value* v = engine.find("vision_ms")) fixed.vision_ms = v->number();
  return perf::fixed_timer(fixed).value();
}

scheduler::StateCacheSettings read_state(const Value& state) {
  state.only({"blocks", "match_unit", "boundary"});
  scheduler::StateCacheSettings out;
  if (const Value* v = state.find("blocks")) out.blocks = small(*v);
  if (const Value* v = state.find("match_unit")) out.match_unit = small(*v);
  if (const Value* v = state.find("boundary")) {
    if (v->scalar != "known_floor")
      v->refuse("a boundary other than prompt_minus_one is known_floor");
    out.boundary = cache::AlignBoundary::KnownFloor;
  }
  return out;
}

cache::KvGroup read_group(const Value& value) {
  value.only(
      {"name", "kind", "block", "page", "window", "chunk", "cacheable", "checkpoints", "count"});
  const std::map<std::string, cache::GroupKind> kinds = {
      {"attention", cache::GroupKind::Attention},
      {"convolution", cache::GroupKind::Convolution},
      {"state", cache::GroupKind::State},
      {"ring", cache::GroupKind::Ring}};
  const auto kind = kinds.find(value.at("kind").scalar);
  if (kind == kinds.end()) value.refuse("a kind is attention, convolution, state or ring");
  cache::KvGroup group{.name = value.at("name").scalar,
                       .kind = kind->second,
                       .num_layers = 1,
                       .block_size_tokens = small(value.at("block")),
                       .page_size_bytes = value.at("page").count()};
  group.prefix_cacheable = group.kind != cache::GroupKind::Ring;
  if (const Value* v = value.find("window")) group.sliding_window = small(*v);
  if (const Value* v = value.find("chunk")) group.attention_chunk = small(*v);
  if (const Value* v = value.find("cacheable")) group.prefix_cacheable = v->flag();
  if (const Value* v = value.find("checkpoints")) group.prefill_checkpoint_blocks = small(*v);
  if (group.kind == cache::GroupKind::State) group.mamba_cache_mode = cache::MambaCacheMode::Align;
  return group;
}

std::vector<scheduler::FrontendStage> read_frontend(const Value& frontend) {
  frontend.only({"stages"});
  std::vector<scheduler::FrontendStage> stages;
  for (const Value& stage : frontend.at("stages").list) {
    stage.only({"workers", "service_ms", "concurrency_scale"});
    scheduler::FrontendStage& out = stages.emplace_back();
    if (const Value* v = stage.find("workers")) out.workers = small(*v);
    out.service_ms = stage.at("service_ms").number();
    if (const Value* scales = stage.find("concurrency_scale")) {
      for (const Value& scale : scales->list) out.concurrency_scale.push_back(scale.number());
    }
  }
  return stages;
}

// Names as in the configuration's block of the same name.
scheduler::SglangSettings read_sglang(const Value& sglang) {
  sglang.only({"schedule_policy", "policy_seed", "chunked_prefill_size", "max_prefill_tokens",
               "clip_max_new_tokens", "schedule_conservativeness", "retract_decode_steps",
               "decode_log_interval", "prefill_decode_interval", "enable_mixed_chunk", "host_loop",
               "fidelity", "frontend", "vision", "vlm_cache_bytes"});
  scheduler::SglangSettings out;
  const std::pair<std::string_view, std::uint32_t*> counts[] = {
      {"chunked_prefill_size", &out.chunked_prefill_size},
      {"max_prefill_tokens", &out.max_prefill_tokens},
      {"clip_max_new_tokens", &out.clip_max_new_tokens},
      {"retract_decode_steps", &out.retract_decode_steps},
      {"decode_log_interval", &out.decode_log_interval},
      {"prefill_decode_interval", &out.prefill_decode_interval}};
  for (const auto& [key, count] : counts) {
    if (const Value* v = sglang.find(key)) *count = small(*v);
  }
  if (const Value* v = sglang.find("schedule_policy")) out.policy = sglang_policy(v->scalar);
  if (const Value* v = sglang.find("policy_seed")) out.policy_seed = v->count();
  if (const Value* v = sglang.find("schedule_conservativeness"))
    out.schedule_conservativeness = v->number();
  if (const Value* v = sglang.find("enable_mixed_chunk")) out.mixed_chunk = v->flag();
  if (const Value* v = sglang.find("host_loop")) out.host_loop = v->flag();
  if (const Value* v = sglang.find("frontend")) out.frontend = read_frontend(*v);
  if (const Value* v = sglang.find("vision"); v != nullptr && v->flag()) out.vision.emplace();
  if (const Value* v = sglang.find("vlm_cache_bytes")) out.vision->cache_bytes = v->count();
  if (const Value* v = sglang.find("fidelity")) {
    if (v->scalar != "exact") v->refuse("a fidelity other than compat is exact");
    out.fidelity = scheduler::Fidelity::Exact;
  }
  return out;
}

// Groups with prefix caching when they have a unit; the gate has the last word.
void read_grouped(const Value& grouped, scheduler::RankConfig& rank) {
  grouped.only({"groups", "bytes", "blocks", "unit", "version", "key_output_blocks"});
  scheduler::GroupedCacheSettings out;
  out.groups = read_groups(grouped.at("groups"));
  out.capacity_bytes = grouped.find("blocks") != nullptr
                           ? grouped.at("blocks").count() * out.groups[0].page_size_bytes
                           : grouped.at("bytes").count();
  rank.prefix_caching = grouped.find("unit") != nullptr;
  cache::GroupedSettings settings{.groups = out.groups,
                                  .prefix_caching = rank.prefix_caching,
                                  .max_model_len = rank.max_model_len,
                                  .max_num_batched_tokens = rank.max_batched_tokens,
                                  .capacity_bytes = out.capacity_bytes};
  if (const Value* v = grouped.find("version")) settings.vllm_version = v->scalar;
  if (const Value* v = grouped.find("unit")) {
    settings.prefix_match_unit = small(*v);
    settings.evidence = {.ran_with_prefix_caching = true, .hash_block_tokens = small(*v)};
  }
  if (const Value* v = grouped.find("key_output_blocks")) settings.key_output_blocks = v->flag();
  const cache::GroupedGate gate = cache::grouped_gate(settings);
  for (const cache::GroupedRefusal& refusal : gate.refusals)
    grouped.refuse(refusal.field + " " + refusal.message);
  if (gate.prefix_caching) out.rules = cache::grouped_rules(settings);
  rank.grouped = std::move(out);
  rank.blocks = 0;
}

}  // namespace

void read_engine(const Value& engine, replay::Deployment& out) {
  engine.only({"rules",
               "policy",
               "acceptance_rates",
               "drafter",
               "blocks",
               "block_tokens",
               "max_sequences",
               "max_batched_tokens",
               "max_model_len",
               "prefix_caching",
               "chunked_prefill",
               "preemption",
               "attention_data",
               "prefill_schedule_interval",
               "timing",
               "prefill_ms",
               "decode_ms",
               "vision_ms",
               "state",
               "grouped",
               "sglang"});
  scheduler::RankConfig& rank = out.rank;
  if (const Value* v = engine.find("rules")) {
    if (v->scalar != "trtllm") v->refuse("rules other than vLLM's are trtllm");
    rank.rules = scheduler::kTrtllmRules;
  }
  if (const Value* v = engine.find("acceptance_rates")) {
    scheduler::Speculation speculation;
    for (const Value& rate : v->list) speculation.rates.push_back(rate.number());
    if (const Value* drafter = engine.find("drafter")) {
      if (drafter->scalar != "mtp" && drafter->scalar != "ngram")
        drafter->refuse("drafter is mtp or ngram");
      speculation.needs_last_block = drafter->scalar == "mtp";
    }
    rank.speculation = speculation;
  }
  const Value* grouped = engine.find("grouped");
  if (grouped == nullptr) {
    rank.blocks = small(engine.at("blocks"));
    rank.block_tokens = small(engine.at("block_tokens"));
  }
  if (const Value* v = engine.find("max_sequences")) rank.max_sequences = small(*v);
  if (const Value* v = engine.find("max_batched_tokens")) rank.max_batched_tokens = small(*v);
  if (const Value* v = engine.find("max_model_len")) rank.max_model_len = small(*v);
  if (const Value* v = engine.find("prefix_caching")) rank.prefix_caching = v->flag();
  if (const Value* v = engine.find("chunked_prefill")) rank.chunked_prefill = v->flag();
  if (const Value* v = engine.find("attention_data")) out.ranks_per_worker = small(*v);
  if (const Value* v = engine.find("prefill_schedule_interval")) {
    rank.prefill_schedule_interval = small(*v);
  }
  if (const Value* v = engine.find("preemption")) {
    if (v->scalar != "lifo" && v->scalar != "fifo") v->refuse("preemption is lifo or fifo");
    rank.preemption_mode =
        v->scalar == "fifo" ? scheduler::PreemptionMode::Fifo : scheduler::PreemptionMode::Lifo;
  }
  if (const Value* v = engine.find("policy")) {
    if (v->scalar != "priority") v->refuse("a policy other than first come is priority");
    rank.policy = scheduler::SchedulingPolicy::Priority;
  }
  if (const Value* v = engine.find("sglang")) rank.sglang = read_sglang(*v);
  if (const Value* v = engine.find("state")) rank.state = read_state(*v);
  if (grouped != nullptr) read_grouped(*grouped, rank);
  out.timer = read_timer(engine);
}

namespace {

void read_router(const Value& router, replay::Deployment& out) {
  const std::map<std::string, router::Policy> policies = {
      {"round_robin", router::Policy::RoundRobin},
      {"least_loaded", router::Policy::LeastLoaded},
      {"power_of_two", router::Policy::PowerOfTwo},
      {"random", router::Policy::Random}};
  const auto it = policies.find(router.scalar);
  if (it == policies.end()) router.refuse("unknown router policy " + router.scalar);
  out.router.policy = it->second;
}

workload::Image read_image(const Value& image) {
  image.only({"id", "start", "end", "bytes"});
  return {.identity = image.at("id").count(),
          .start = small(image.at("start")),
          .end = small(image.at("end")),
          .bytes = image.at("bytes").count()};
}

CaseRequest read_request(const Value& value, std::size_t index,
                         const std::vector<CaseRequest>& before, std::uint32_t trace_block) {
  value.only({"at_ms", "after", "delay_ms", "prompt", "prompt_same_as", "same_tokens", "ids",
              "output", "output_tokens", "priority", "cancel_after_ms", "extra_key", "images"});
  CaseRequest out;
  if (const Value* v = value.find("priority"))
    out.priority = static_cast<std::int32_t>(v->number());
  if (const Value* v = value.find("extra_key")) out.extra_key = v->scalar;
  if (const Value* v = value.find("cancel_after_ms")) out.cancel_after_ms = v->number();
  if (const Value* v = value.find("at_ms")) out.at_ms = v->number();
  if (const Value* v = value.find("after")) {
    out.after = small(*v);
    if (*out.after >= index) v->refuse("`after` names an earlier request");
  }
  if (const Value* v = value.find("delay_ms")) out.delay_ms = v->number();
  if ((value.find("at_ms") != nullptr) == out.after.has_value()) {
    value.refuse("a request has either at_ms or after");
  }
  if (const Value* v = value.find("prompt")) out.prompt = small(*v);
  if (const Value* v = value.find("prompt_same_as")) {
    out.same_as = small(*v);
    if (out.same_as >= index) v->refuse("`prompt_same_as` names an earlier request");
    const std::uint32_t length = before[out.same_as].prompt;
    if (out.prompt == 0) out.prompt = length;
    out.same_tokens = std::min(out.prompt, length);
  }
  if (const Value* v = value.find("same_tokens")) {
    if (small(*v) > out.same_tokens) v->refuse("more than the prompts have in common");
    out.same_tokens = small(*v);
  }
  if (out.same_tokens < out.prompt && out.same_tokens % trace_block != 0) {
    value.refuse("prompts can part only where a trace block ends; set trace_block_tokens");
  }
  if (out.prompt == 0) value.refuse("a prompt has at least one token");
  if (const Value* v = value.find("ids")) {
    for (const Value& id : v->list) out.ids.push_back(id.count());
    if (out.same_tokens > 0) v->refuse("ids or prompt_same_as");
  }
  if (const Value* v = value.find("output_tokens")) {
    for (const Value& token : v->list) out.output_tokens.push_back(small(token));
    out.output = static_cast<std::uint32_t>(out.output_tokens.size());
  } else {
    out.output = small(value.at("output"));
  }
  if (const Value* images = value.find("images")) {
    for (const Value& image : images->list) out.images.push_back(read_image(image));
  }
  return out;
}

}  // namespace

std::vector<cache::KvGroup> read_groups(const Value& list) {
  std::vector<cache::KvGroup> groups;
  for (const Value& item : list.list) {
    const cache::KvGroup group = read_group(item);
    const std::uint32_t count = item.find("count") != nullptr ? small(item.at("count")) : 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      groups.push_back(group);
      if (count > 1) groups.back().name += std::to_string(i);
    }
  }
  if (groups.empty()) list.refuse("grouped caches have groups");
  return groups;
}

TextCase read_text_case(const Value& document) {
  document.only({"name", "engine", "workers", "router", "eviction", "trace_block_tokens",
                 "concurrency", "cap_ms", "requests", "expect", "why"});
  TextCase out;
  out.name = document.at("name").scalar;
  if (out.name.empty()) document.refuse("a case has a name");
  if (document.at("why").scalar.empty()) document.refuse("a case says why");
  read_engine(document.at("engine"), out.deployment);
  if (const Value* v = document.find("workers")) out.deployment.workers = small(*v);
  if (const Value* v = document.find("router")) read_router(*v, out.deployment);
  if (const Value* v = document.find("eviction")) {
    if (v->scalar != "belady") v->refuse("an eviction other than lru is belady");
    out.deployment.kv_eviction_policy = replay::EvictionPolicy::Belady;
  }
  const scheduler::RankConfig& rank = out.deployment.rank;
  out.trace_block_tokens = rank.grouped ? 1 : rank.block_tokens;
  out.respell = true;
  if (const Value* v = document.find("trace_block_tokens")) {
    out.trace_block_tokens = small(*v);
    out.respell = false;
  }
  if (const Value* v = document.find("concurrency")) out.concurrency = small(*v);
  if (const Value* v = document.find("cap_ms")) {
    out.cap = Time{ns_from_ms(v->number()).value()};
  }
  const Value& requests = document.at("requests");
  for (const Value& request : requests.list) {
    out.requests.push_back(
        read_request(request, out.requests.size(), out.requests, out.trace_block_tokens));
    const CaseRequest& last = out.requests.back();
    if (!last.output_tokens.empty() || !last.ids.empty()) out.respell = false;
  }
  if (out.requests.empty()) requests.refuse("a case has requests");
  out.expect = document.at("expect").list;
  if (out.expect.empty()) document.at("expect").refuse("a case expects something");
  return out;
}

std::string mooncake_text(const TextCase& text_case, std::uint32_t block_tokens) {
  std::string out;
  std::vector<std::vector<std::uint64_t>> ids;
  std::vector<std::size_t> session(text_case.requests.size());
  for (std::size_t r = 0; r < text_case.requests.size(); ++r) {
    const CaseRequest& request = text_case.requests[r];
    const std::uint32_t blocks = (request.prompt + block_tokens - 1) / block_tokens;
    const std::uint32_t same = (request.same_tokens + block_tokens - 1) / block_tokens;
    std::vector<std::uint64_t>& own = ids.emplace_back();
    own = request.ids;
    for (std::uint32_t b = 0; b < blocks && request.ids.empty(); ++b) {
      own.push_back(b < same ? ids[request.same_as][b] : r * 1'000'000 + b);
    }
    session[r] = request.after ? session[*request.after] : r;
    out += fmt::format(R"({{"session_id": "s{}", "input_length": {}, "output_length": {}, )",
                       session[r], request.prompt, request.output);
    if (request.after) {
      out += fmt::format(R"("delay": {}, )", request.delay_ms);
    } else {
      out += fmt::format(R"("timestamp": {}, )", request.at_ms);
    }
    if (!request.output_tokens.empty()) {
      out += fmt::format(R"("output_token_ids": [{}], )", fmt::join(request.output_tokens, ", "));
    }
    if (request.cancel_after_ms)
      out += fmt::format(R"("cancel_after": {}, )", *request.cancel_after_ms);
    if (!request.extra_key.empty()) out += fmt::format(R"("extra_key": "{}", )", request.extra_key);
    for (std::size_t i = 0; i < request.images.size(); ++i) {
      const workload::Image& image = request.images[i];
      out += fmt::format(R"({}{{"id": {}, "start": {}, "end": {}, "bytes": {}}}{})",
                         i == 0 ? "\"images\": [" : ", ", image.identity, image.start, image.end,
                         image.bytes, i + 1 == request.images.size() ? "], " : "");
    }
    if (request.priority != 0) out += fmt::format(R"("priority": {}, )", request.priority);
    out += fmt::format("\"hash_ids\": [{}]}}\n", fmt::join(own, ", "));
  }
  return out;
}

bool expects_a_problem(const TextCase& text_case) {
  return text_case.expect.front().find("problem") != nullptr;
}

std::vector<std::string> broken_expectations(const TextCase& text_case, const Recording& run) {
  std::vector<std::string> out;
  if (expects_a_problem(text_case)) {
    const Value& expected = text_case.expect.front();
    expected.only({"problem", "says"});
    if (text_case.expect.size() > 1) expected.refuse("a run that fails tells nothing else");
    const std::string told = run.problems.empty() ? "nothing" : to_text(run.problems.front());
    const bool same = !run.problems.empty() &&
                      run.problems.front().code == expected.at("problem").scalar &&
                      told.find(expected.at("says").scalar) != std::string::npos;
    if (!same)
      out.push_back(fmt::format("{}:{}: the problem is {}", expected.file, expected.line, told));
    return out;
  }
  for (const Problem& problem : run.problems) out.push_back("the run failed: " + to_text(problem));
  if (!run.problems.empty()) return out;
  for (const Value& expected : text_case.expect) {
    for (std::string& line : broken_expectation(expected, run)) out.push_back(std::move(line));
  }
  return out;
}

}  // namespace servecast::test
