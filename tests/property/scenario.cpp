// SPDX-License-Identifier: Apache-2.0
#include "property/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "cache/grouped_bytes.hpp"
#include "cache/grouped_gate.hpp"
#include "perf/timers.hpp"

namespace servecast::test {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, "property scenario") {}
  // A whole number from `low` to `high`, both included.
  std::uint32_t from(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random_.below(high - low + 1));
  }
  bool percent(std::uint32_t p) { return random_.below(100) < p; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size())));
  }

 private:
  Random random_;
};

// Times in milliseconds, so that ends of passes and arrivals meet often.
struct Clock {
  double prefill_ms = 0, decode_ms = 0;
  bool polynomial = false;
};

Clock make_clock(Dice& dice) {
  Clock clock;
  if (dice.percent(15)) {
    clock.polynomial = true;
    return clock;
  }
  clock.prefill_ms = dice.one_of({10.0, 5.0, 1.0, 0.0, 3.0});
  clock.decode_ms = dice.one_of({2.0, 5.0, 1.0, 2.0, 5.0, 0.0});
  return clock;
}

scheduler::RankConfig make_rank(Dice& dice) {
  scheduler::RankConfig rank;
  rank.block_tokens = dice.from(2, 8);
  rank.blocks = dice.from(2, dice.percent(50) ? 8 : 30);
  rank.max_sequences = dice.from(1, 10);
  rank.max_batched_tokens = dice.from(2, 32);
  rank.prefix_caching = dice.percent(80);
  rank.chunked_prefill = dice.percent(80);
  if (dice.percent(35)) rank.preemption_mode = scheduler::PreemptionMode::Fifo;
  if (dice.percent(20)) rank.max_model_len = dice.from(4, 60);
  if (dice.percent(20)) rank.rules = scheduler::kTrtllmRules;
  if (dice.percent(15)) rank.policy = scheduler::SchedulingPolicy::Priority;
  if (dice.percent(20)) {
    scheduler::Speculation& speculation = rank.speculation.emplace();
    for (std::uint32_t n = dice.from(1, 4); n > 0; --n)
      speculation.rates.push_back(dice.one_of({0.0, 0.3, 0.7, 1.0}));
    speculation.needs_last_block = dice.percent(50);
  }
  return rank;
}

router::Spec make_router(Dice& dice) {
  using router::Metric;
  using router::Policy;
  using router::Tie;
  router::Spec spec;
  spec.policy = dice.one_of({Policy::RoundRobin, Policy::RoundRobin, Policy::LeastLoaded,
                             Policy::PowerOfTwo, Policy::Random});
  spec.metric = dice.one_of({Metric::Requests, Metric::Tokens});
  spec.tie = dice.one_of({Tie::LowestId, Tie::RoundRobin, Tie::Random});
  spec.seed = dice.from(0, 1000);
  return spec;
}

struct Row {
  double at_ms = 0;
  std::uint32_t input = 1, output = 0;
  std::vector<std::uint32_t> ids, output_tokens;
  int session = -1;      // none
  double delay_ms = -1;  // none
  int priority = 0;
  double cancel_after_ms = 0;  // none
};

// Prompts spelled with few ids, each often a continuation or a cut of an earlier one.
std::vector<std::uint32_t> make_ids(Dice& dice, const std::vector<Row>& before,
                                    std::uint32_t alphabet, std::uint32_t blocks_max) {
  std::vector<std::uint32_t> ids;
  if (!before.empty() && dice.percent(60)) {
    ids = before[dice.from(0, static_cast<std::uint32_t>(before.size()) - 1)].ids;
    if (dice.percent(50)) ids.resize(dice.from(1, static_cast<std::uint32_t>(ids.size())));
  }
  const std::uint32_t more = dice.from(ids.empty() ? 1 : 0, 4);
  for (std::uint32_t i = 0; i < more; ++i) ids.push_back(dice.from(0, alphabet - 1));
  if (ids.size() > blocks_max) ids.resize(blocks_max);
  return ids;
}

std::string spell(const Row& row) {
  std::string out = fmt::format(R"({{"input_length": {}, "output_length": {}, "hash_ids": [{}])",
                                row.input, row.output, fmt::join(row.ids, ", "));
  if (row.session >= 0) out += fmt::format(R"(, "session_id": "s{}")", row.session);
  if (row.delay_ms >= 0) {
    out += fmt::format(R"(, "delay": {})", row.delay_ms);
  } else {
    out += fmt::format(R"(, "timestamp": {})", row.at_ms);
  }
  if (row.cancel_after_ms > 0) out += fmt::format(R"(, "cancel_after": {})", row.cancel_after_ms);
  if (row.priority != 0) out += fmt::format(R"(, "priority": {})", row.priority);
  if (!row.output_tokens.empty()) {
    out += fmt::format(R"(, "output_token_ids": [{}])", fmt::join(row.output_tokens, ", "));
  }
  return out + "}\n";
}

std::uint32_t output_length(Dice& dice) {
  return dice.percent(25) ? dice.from(0, 2) : dice.from(1, dice.percent(30) ? 40 : 12);
}

// The rows spelled so far are the workload, each at its time.
void replay_rows(Scenario& out, workload::TraceSource source) {
  out.trace = std::make_shared<const TraceFile>(out.trace_text);
  source.path = out.trace->path();
  out.spec.source = source;
  out.spec.stop = {};
  out.spec.load = {};
  out.spec.load.kind = workload::Load::Kind::TraceTimestamps;
}

// Often at the end of a pass, or one nanosecond beside it.
double patience(Dice& dice) {
  const double ms = dice.from(1, dice.percent(50) ? 12 : 80);
  return dice.percent(70) ? ms : ms + dice.one_of({0.5, 1e-6, -1e-6});
}

void make_trace(Dice& dice, Scenario& out) {
  const scheduler::RankConfig& rank = out.deployment.rank;
  workload::TraceSource source;
  source.block_size = dice.percent(40) ? rank.block_tokens : dice.from(1, 9);
  source.start_as_given = dice.percent(20);
  const std::uint32_t rows = dice.from(1, dice.percent(20) ? 60 : 14);
  const std::uint32_t alphabet = dice.from(1, 6);
  const std::uint32_t pool_blocks = std::max(
      1U, rank.blocks * rank.block_tokens / source.block_size + (dice.percent(10) ? 2 : 0));
  const bool sessions = dice.percent(25);
  const bool authored = dice.percent(10);
  const bool equal_lengths = dice.percent(20);
  const bool cancels = dice.percent(25);
  const std::uint32_t equal_output = output_length(dice);
  const double step_ms = dice.one_of({0.0, 1.0, 2.0, 5.0, 10.0, 0.5});
  double now = source.start_as_given ? dice.from(0, 20) : 0;
  std::vector<Row> all;
  for (std::uint32_t i = 0; i < rows; ++i) {
    Row row;
    row.ids = make_ids(dice, all, alphabet, std::min(pool_blocks, 12U));
    const auto blocks = static_cast<std::uint32_t>(row.ids.size());
    row.input = blocks * source.block_size;
    if (dice.percent(60)) row.input -= dice.from(0, source.block_size - 1);
    row.output = equal_lengths ? equal_output : output_length(dice);
    if (rank.policy == scheduler::SchedulingPolicy::Priority)
      row.priority = static_cast<int>(dice.from(0, 3)) - 1;
    if (authored && dice.percent(60)) {
      for (std::uint32_t t = 0; t < row.output; ++t) {
        row.output_tokens.push_back(dice.from(0, alphabet));
      }
    }
    now += step_ms * dice.from(0, 3);
    row.at_ms = now;
    if (cancels && dice.percent(40)) row.cancel_after_ms = patience(dice);
    if (sessions && dice.percent(70)) {
      row.session = static_cast<int>(dice.from(0, 3));
      const bool later = std::any_of(all.begin(), all.end(), [&row](const Row& other) {
        return other.session == row.session;
      });
      if (later) row.delay_ms = dice.percent(50) ? 0 : dice.from(0, 12);
    }
    all.push_back(row);
    out.trace_text += spell(row);
  }
  replay_rows(out, source);
  if (dice.percent(40)) {
    out.spec.load.kind = workload::Load::Kind::Concurrency;
    out.spec.load.concurrency = dice.from(1, 6);
  }
}

// One prompt that is computed in chunks, others that begin like it, and a pool that just holds one
// of them.
void make_crowd(Dice& dice, Scenario& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  rank.prefix_caching = true;
  workload::TraceSource source;
  source.block_size = rank.block_tokens;
  const std::uint32_t blocks = dice.from(2, 6);
  rank.blocks = blocks + dice.from(0, 2);
  rank.max_batched_tokens = dice.from(2, blocks * rank.block_tokens);
  const std::uint32_t rows = dice.from(2, 6);
  for (std::uint32_t i = 0; i < rows; ++i) {
    Row row;
    const std::uint32_t own = i == 0 ? blocks : dice.from(1, blocks + 1);
    for (std::uint32_t b = 0; b < own; ++b) row.ids.push_back(b);
    if (dice.percent(40)) row.ids.back() = 100 + i;
    row.input = own * rank.block_tokens - dice.from(0, rank.block_tokens - 1);
    row.output = dice.from(1, 8);
    row.at_ms = dice.from(0, 3) * 5;
    out.trace_text += spell(row);
  }
  replay_rows(out, source);
}

// Long answers over a small pool and a budget that cuts recomputation into chunks: preempted
// requests come back as the unfinished last one while others are preempted.
void make_squeeze(Dice& dice, Scenario& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  rank.block_tokens = dice.from(2, 4);
  rank.blocks = dice.from(4, 12);
  rank.max_batched_tokens = dice.from(3, 9);
  rank.max_sequences = 10;
  rank.max_model_len = std::nullopt;
  rank.chunked_prefill = true;
  rank.prefix_caching = dice.percent(30);
  if (dice.percent(70)) rank.preemption_mode = scheduler::PreemptionMode::Fifo;
  workload::TraceSource source;
  source.block_size = rank.block_tokens;
  const std::uint32_t rows = dice.from(2, 6);
  for (std::uint32_t i = 0; i < rows; ++i) {
    Row row;
    row.input = dice.from(1, 3 * rank.block_tokens);
    for (std::uint32_t b = 0; b * rank.block_tokens < row.input; ++b) row.ids.push_back(i * 10 + b);
    row.output = dice.from(2, 20);
    row.at_ms = dice.from(0, 4) * 3;
    if (dice.percent(15)) row.cancel_after_ms = patience(dice);
    out.trace_text += spell(row);
  }
  replay_rows(out, source);
}

workload::Length make_length(Dice& dice, std::uint32_t max) {
  workload::Length length;
  if (dice.percent(40)) {
    length.fixed = dice.from(1, max);
    return length;
  }
  length.kind = workload::Length::Kind::Uniform;
  length.min = dice.from(1, max);
  length.max = dice.from(length.min, max);
  return length;
}

void make_load(Dice& dice, Scenario& out) {
  using Kind = workload::Load::Kind;
  workload::Load& load = out.spec.load;
  load.kind = dice.one_of({Kind::Concurrency, Kind::Concurrency, Kind::Burst, Kind::Poisson,
                           Kind::ConstantRate, Kind::Gamma});
  load.concurrency = dice.from(1, 6);
  load.per_second = dice.one_of({20.0, 100.0, 200.0, 500.0});
  load.smoothness = dice.one_of({0.5, 1.0, 4.0});
  load.seed = dice.from(0, 1000);
}

void make_synthetic(Dice& dice, Scenario& out) {
  workload::SyntheticSource source;
  source.input = make_length(dice, 30);
  source.output = make_length(dice, 14);
  const std::uint32_t shortest =
      source.input.kind == workload::Length::Kind::Fixed ? source.input.fixed : source.input.min;
  if (dice.percent(50)) source.cached_prefix_tokens = dice.from(0, shortest - 1);
  source.seed = dice.from(0, 1000);
  out.spec.source = source;
  out.spec.stop.count = dice.from(1, dice.percent(20) ? 60 : 15);
  make_load(dice, out);
}

void make_sessions(Dice& dice, Scenario& out) {
  workload::SessionSource source;
  source.new_input = make_length(dice, 12);
  source.output = make_length(dice, 8);
  source.turns = dice.from(1, 4);
  if (dice.percent(70)) {
    source.shared_prefix_ratio = dice.one_of({0.25, 0.5, 1.0});
    source.prefix_groups = dice.from(1, 3);
  }
  source.inter_turn_delay_ms = dice.one_of({0.0, 0.0, 1.0, 5.0, 30.0});
  source.block_size = dice.percent(50) ? out.deployment.rank.block_tokens : dice.from(1, 9);
  source.seed = dice.from(0, 1000);
  out.spec.source = source;
  out.spec.stop.count = dice.from(1, 12);
  make_load(dice, out);
}

// Also on the half of a pass, and one nanosecond beside a likely boundary.
Time make_cap(Dice& dice) {
  const std::int64_t ms = dice.from(0, dice.percent(50) ? 40 : 200);
  return Time{ms * 1'000'000 + dice.one_of<std::int64_t>({0, 0, 500'000, 1, -1, 333})};
}

// A rank with recurrent state, in a pool with room for the states of a few requests.
void make_state(Dice& dice, scheduler::RankConfig& rank) {
  scheduler::StateCacheSettings state;
  state.blocks = dice.from(1, 3);
  if (dice.percent(70)) {
    do {
      state.match_unit = dice.from(1, rank.block_tokens);
    } while (rank.block_tokens % state.match_unit != 0);
  }
  if (dice.percent(25)) state.boundary = cache::AlignBoundary::KnownFloor;
  rank.blocks += state.blocks * dice.from(1, 6);
  rank.state = state;
}

cache::KvGroup make_kv_group(Dice& dice, std::uint32_t unit, std::uint32_t state_block) {
  using cache::GroupKind;
  cache::KvGroup group{.num_layers = 1, .page_size_bytes = 8, .prefix_cacheable = true};
  group.kind = dice.one_of({GroupKind::Attention, GroupKind::Attention, GroupKind::Attention,
                            GroupKind::State, GroupKind::Ring});
  group.block_size_tokens = unit * dice.from(1, 3);
  if (group.kind == GroupKind::Attention) {
    if (dice.percent(35))
      group.sliding_window = dice.from(1, 12);
    else if (dice.percent(15))
      group.attention_chunk = dice.from(1, 3) * 4;
  } else if (group.kind == GroupKind::State) {
    group.block_size_tokens = state_block;
    group.mamba_cache_mode = cache::MambaCacheMode::Align;
  } else {
    group.prefix_cacheable = false;
  }
  return group;
}

// A rank with some groups, cold or with prefix caching, in a pool that holds a few requests. The
// gate has the last word; what it refuses is drawn again.
void make_grouped(Dice& dice, scheduler::RankConfig& rank) {
  rank.max_model_len = dice.from(20, 80);
  for (;;) {
    scheduler::GroupedCacheSettings out;
    const std::uint32_t unit = dice.from(1, 4), state_block = unit * dice.from(1, 4);
    const std::uint32_t checkpoints = dice.percent(30) ? 1 : 0;
    for (std::uint32_t g = 0, count = dice.from(1, 4); g < count; ++g) {
      cache::KvGroup& group = out.groups.emplace_back(make_kv_group(dice, unit, state_block));
      group.name = fmt::format("g{}", g);
      if (group.kind == cache::GroupKind::State) group.prefill_checkpoint_blocks = checkpoints;
    }
    const bool caching = dice.percent(70);
    if (!caching) {
      for (cache::KvGroup& group : out.groups) {
        group.page_size_bytes = dice.from(1, 9);
        if (group.sliding_window && dice.percent(20)) group.kind = cache::GroupKind::Convolution;
      }
      out.capacity_bytes = cache::peak_request_bytes(out.groups, dice.from(5, *rank.max_model_len),
                                                     dice.from(1, rank.max_batched_tokens)) *
                           dice.from(1, 3);
    }
    cache::GroupedSettings settings{
        .groups = out.groups,
        .prefix_caching = caching,
        .vllm_version = "0.32.0",
        .max_model_len = rank.max_model_len,
        .max_num_batched_tokens = rank.max_batched_tokens,
        .capacity_bytes = caching ? std::uint64_t{8'000'000} : out.capacity_bytes,
        .key_output_blocks = dice.percent(75)};
    if (caching) {
      settings.prefix_match_unit = unit;
      settings.evidence = {.ran_with_prefix_caching = true, .hash_block_tokens = unit};
    }
    const cache::GroupedGate gate = cache::grouped_gate(settings);
    if (!gate.refusals.empty()) continue;
    if (caching) {
      const std::uint64_t blocks =
          cache::startup_blocks(cache::grouped_rules(settings).groups) + dice.from(0, 12);
      settings.capacity_bytes = out.capacity_bytes = blocks * 8 + dice.from(0, 7);
      out.rules = cache::grouped_rules(settings);
    }
    rank.prefix_caching = caching;
    rank.blocks = 0;
    rank.grouped = std::move(out);
    return;
  }
}

// Few texts, shared up to any token, in prompts of some blocks and passes that hold about one.
void make_texts(Dice& dice, Scenario& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  rank.max_batched_tokens =
      rank.block_tokens + dice.from(0, dice.percent(60) ? 2 : rank.block_tokens);
  if (rank.state) {
    rank.max_model_len = std::nullopt;
    rank.prefix_caching = true;
    rank.blocks = (4 + rank.state->blocks) * dice.from(2, 5);
  }
  workload::TraceSource source;
  source.block_size = 1;
  out.trace_text.clear();
  const std::uint32_t rows = dice.from(2, 12);
  for (std::uint32_t i = 0; i < rows; ++i) {
    Row row;
    row.input = dice.from(1, 4 * rank.block_tokens);
    const std::uint32_t shared = dice.from(0, row.input), text = dice.from(0, 1);
    for (std::uint32_t t = 0; t < row.input; ++t) {
      row.ids.push_back(t < shared ? text * 1000 + t : 10'000 + i * 1000 + t);
    }
    row.output = dice.from(0, dice.percent(30) ? 30 : 6);
    row.at_ms = dice.from(0, 6) * 3;
    if (dice.percent(10)) row.cancel_after_ms = patience(dice);
    out.trace_text += spell(row);
  }
  replay_rows(out, source);
}

std::string groups_text(const scheduler::RankConfig& rank) {
  if (!rank.grouped) return "";
  std::string text = fmt::format("{} bytes of", rank.grouped->capacity_bytes);
  for (const cache::KvGroup& g : rank.grouped->groups) {
    text += fmt::format(" [kind {} block {} page {} window {} chunk {} checkpoints {}]",
                        static_cast<int>(g.kind), g.block_size_tokens, g.page_size_bytes,
                        g.sliding_window.value_or(0), g.attention_chunk.value_or(0),
                        g.prefill_checkpoint_blocks.value_or(0));
  }
  if (const auto& rules = rank.grouped->rules)
    text += fmt::format(", {} blocks, unit {}, outputs keyed {}", rules->blocks, rules->unit,
                        rules->key_output_blocks);
  return text + "; ";
}

// Few workers then, or nobody meets anybody on a rank.
void make_group(Dice& dice, replay::Deployment& deployment) {
  if (!dice.percent(30)) return;
  if (dice.percent(70)) deployment.workers = 1;
  deployment.ranks_per_worker = dice.from(2, 4);
  if (dice.percent(60)) deployment.rank.prefill_schedule_interval = dice.from(2, 6);
}

// Only where the oracle knows every demand (replay/oracle.hpp); the two modes are then one.
void make_oracle(Dice& dice, Scenario& out) {
  const scheduler::RankConfig& rank = out.deployment.rank;
  const bool accumulates = std::holds_alternative<workload::SessionSource>(out.spec.source);
  if (!dice.percent(accumulates ? 40 : 10) || !rank.prefix_caching || rank.state || rank.grouped)
    return;
  out.deployment.kv_eviction_policy = replay::EvictionPolicy::Belady;
  if (!replay::check(out.deployment, workload::build(out.spec).value()).empty())
    out.deployment.kv_eviction_policy = replay::EvictionPolicy::Lru;
}

std::string sglang_text(const scheduler::RankConfig& rank) {
  if (!rank.sglang) return "";
  const scheduler::SglangSettings& s = *rank.sglang;
  return fmt::format(
      "sglang policy {}, chunk {}, prefill tokens {}, clip {}, conservativeness {}, reserve {}, "
      "flush every {}, interval {}, mixed {}, host loop {}, {}, {} drafts; ",
      static_cast<int>(s.policy), s.chunked_prefill_size, s.max_prefill_tokens,
      s.clip_max_new_tokens, s.schedule_conservativeness, s.retract_decode_steps,
      s.decode_log_interval, s.prefill_decode_interval, s.mixed_chunk, s.host_loop,
      s.fidelity == scheduler::Fidelity::Exact ? "exact" : "compat",
      rank.speculation ? rank.speculation->rates.size() : 0);
}

// Short prompts that all start at once in small pages: when memory runs out one victim is not
// enough.
void make_shortage(Dice& dice, Scenario& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  rank.block_tokens = dice.from(1, 2);
  rank.blocks = dice.from(20, 40) / rank.block_tokens;
  rank.max_sequences = 12;
  rank.max_model_len = std::nullopt;
  rank.sglang->schedule_conservativeness = 0;
  rank.sglang->chunked_prefill_size = out.deployment.ranks_per_worker * 40;
  rank.sglang->max_prefill_tokens = 40;
  rank.sglang->clip_max_new_tokens = dice.from(1, 3);
  workload::TraceSource source;
  source.block_size = 1;
  out.trace_text.clear();
  for (std::uint32_t i = 0, rows = dice.from(6, 14); i < rows; ++i) {
    Row row;
    row.input = dice.from(1, 3);
    for (std::uint32_t t = 0; t < row.input; ++t) row.ids.push_back(dice.from(0, 9));
    row.output = dice.from(4, 16);
    row.at_ms = dice.from(0, 1);
    out.trace_text += spell(row);
  }
  replay_rows(out, source);
}

// The same kinds of workloads on an SGLang rank. Chunks hold a page at least.
void make_sglang(Dice& dice, Scenario& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  using scheduler::SglangPolicy;
  scheduler::RankConfig config;
  config.block_tokens = dice.percent(40) ? 1 : dice.from(2, 6);
  config.blocks = rank.blocks * rank.block_tokens / config.block_tokens + dice.from(1, 12);
  config.max_sequences = rank.max_sequences;
  config.max_model_len = rank.max_model_len;
  config.prefix_caching = rank.prefix_caching;
  scheduler::SglangSettings& sglang = config.sglang.emplace();
  sglang.policy = dice.one_of({SglangPolicy::Fcfs, SglangPolicy::Fcfs, SglangPolicy::Fcfs,
                               SglangPolicy::Lpm, SglangPolicy::DfsWeight, SglangPolicy::Lof,
                               SglangPolicy::Random, SglangPolicy::Priority});
  sglang.chunked_prefill_size =
      out.deployment.ranks_per_worker * (config.block_tokens + dice.from(0, 40));
  sglang.max_prefill_tokens = dice.from(1, 60);
  sglang.clip_max_new_tokens = dice.percent(50) ? dice.from(1, 20) : 4096;
  sglang.schedule_conservativeness = dice.one_of({0.0, 0.1, 0.3, 1.0, 2.0});
  sglang.retract_decode_steps = dice.one_of({20U, 1U, 3U});
  sglang.decode_log_interval = dice.from(1, 12);
  if (dice.percent(25)) sglang.prefill_decode_interval = dice.from(1, 4);
  if (dice.percent(35)) sglang.fidelity = scheduler::Fidelity::Exact;
  const bool one_rank = out.deployment.ranks_per_worker == 1;
  if (rank.speculation && dice.percent(50)) {
    config.speculation = rank.speculation;
  } else if (one_rank && sglang.prefill_decode_interval == 0 && dice.percent(25)) {
    sglang.host_loop = true;
    for (std::uint32_t n = dice.percent(40) ? dice.from(1, 2) : 0; n > 0; --n) {
      scheduler::FrontendStage& stage = sglang.frontend.emplace_back();
      stage.workers = dice.from(1, 3);
      stage.service_ms = dice.one_of({0.0, 1.0, 3.0, 10.0, 0.7});
      if (!dice.percent(50)) continue;
      for (std::uint32_t w = 0; w < stage.workers; ++w)
        stage.concurrency_scale.push_back(1.0 + 0.5 * w);
    }
  } else if (dice.percent(20)) {
    sglang.mixed_chunk = true;
  }
  rank = config;
  if (dice.percent(10)) make_shortage(dice, out);
}

}  // namespace

Scenario scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario out;
  out.deployment.rank = make_rank(dice);
  out.deployment.workers = dice.percent(60) ? 1 : dice.from(2, 4);
  out.deployment.router = make_router(dice);
  const Clock clock = make_clock(dice);
  out.deployment.timer =
      clock.polynomial
          ? perf::polynomial_timer().value()
          : perf::fixed_timer({.prefill_ms = clock.prefill_ms, .decode_ms = clock.decode_ms})
                .value();
  const std::uint32_t kind = dice.from(0, 99);
  if (kind < 50) {
    make_trace(dice, out);
  } else if (kind < 60) {
    make_crowd(dice, out);
  } else if (kind < 70) {
    make_squeeze(dice, out);
  } else if (kind < 85) {
    make_sessions(dice, out);
  } else {
    make_synthetic(dice, out);
  }
  if (dice.percent(20)) out.cap = make_cap(dice);
  if (out.cap && out.cap->ns < 0) out.cap->ns = 0;
  out.run_passes_max = dice.from(1, 5);
  if (kind >= 70 && dice.percent(25)) out.spec.cancel_after_ms = patience(dice);
  make_group(dice, out.deployment);
  const bool plain = !out.deployment.rank.rules.promises_output && !out.deployment.rank.speculation;
  if (plain && dice.percent(28)) {
    make_state(dice, out.deployment.rank);
    if (dice.percent(75)) make_texts(dice, out);
  } else if (plain && dice.percent(25)) {
    if (dice.percent(75)) make_texts(dice, out);
    make_grouped(dice, out.deployment.rank);
  }
  // What only vLLM has is rare enough.
  if (dice.percent(out.deployment.rank.state || out.deployment.rank.grouped ? 20 : 40)) {
    make_sglang(dice, out);
  } else {
    make_oracle(dice, out);
  }

  const scheduler::RankConfig& rank = out.deployment.rank;
  out.settings = fmt::format(
      "{}{}{} rules, {} blocks of {}, {} sequences, budget {}, model length {}, caching {}, "
      "chunked "
      "{}, {}, states of {} blocks (unit {}, {}), "
      "eviction {}, prefill {} ms, "
      "decode {} ms{}, {} workers of {} ranks, prefill interval {}, router {}, source {}, load {} "
      "(concurrency {}), cap {}, runs of {}",
      sglang_text(rank), groups_text(rank), rank.rules.promises_output ? "trtllm" : "vllm",
      rank.blocks, rank.block_tokens, rank.max_sequences, rank.max_batched_tokens,
      rank.max_model_len.value_or(0), rank.prefix_caching, rank.chunked_prefill,
      rank.preemption_mode == scheduler::PreemptionMode::Fifo ? "fifo" : "lifo",
      rank.state ? rank.state->blocks : 0, rank.state ? rank.state->match_unit : 0,
      rank.state && rank.state->boundary == cache::AlignBoundary::KnownFloor ? "known_floor"
                                                                             : "prompt_minus_one",
      out.deployment.kv_eviction_policy == replay::EvictionPolicy::Belady ? "belady" : "lru",
      clock.prefill_ms, clock.decode_ms, clock.polynomial ? " (polynomial)" : "",
      out.deployment.workers, out.deployment.ranks_per_worker, rank.prefill_schedule_interval,
      static_cast<int>(out.deployment.router.policy), out.spec.source.index(),
      static_cast<int>(out.spec.load.kind), out.spec.load.concurrency,
      out.cap ? fmt::format("{} ns", out.cap->ns) : "none", out.run_passes_max);
  return out;
}

}  // namespace servecast::test
