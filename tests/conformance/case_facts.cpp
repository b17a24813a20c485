// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_facts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "conformance/expectations.hpp"

namespace servecast::test {
namespace {

// What came out, under the names that expectations use.
class Facts {
 public:
  Facts(std::string subject, const Value& expected)
      : subject_(std::move(subject)), expected_(expected) {}

  void count(std::string_view key, std::uint64_t actual) {
    if (const Value* want = take(key)) {
      tell(*want, key, fmt::format("{}", actual), actual == want->count());
    }
  }
  void word(std::string_view key, std::string_view actual) {
    if (const Value* want = take(key))
      tell(*want, key, std::string(actual), actual == want->scalar);
  }
  void moment(std::string_view key, Time actual) {
    const Value* want = take(key);
    if (want == nullptr) return;
    const std::string text = moment_text(actual);
    tell(*want, key, text, matches(*want, actual));
  }
  // A number that is computed in doubles; without one there is no such fact.
  void real(std::string_view key, const std::optional<double>& actual) {
    const Value* want = take(key);
    if (want == nullptr) return;
    tell(*want, key, actual ? fmt::format("{}", *actual) : "not told",
         actual && close(*actual, want->number()));
  }
  void moments(std::string_view key, const std::vector<Time>& actual) {
    const Value* want = take(key);
    if (want == nullptr) return;
    bool good = want->kind == Value::Kind::List && want->list.size() == actual.size();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      good = good && matches(want->list[i], actual[i]);
      texts.push_back(moment_text(actual[i]));
    }
    tell(*want, key, fmt::format("[{}]", fmt::join(texts, ", ")), good);
  }
  // Rows of whole numbers or names; a row of one element may be written without brackets.
  void rows(std::string_view key, const std::vector<std::vector<std::string>>& actual) {
    const Value* want = take(key);
    if (want == nullptr) return;
    if (want->kind != Value::Kind::List) want->refuse("a list is wanted here");
    std::vector<std::vector<std::string>> expected;
    for (const Value& row : want->list) {
      auto& out = expected.emplace_back();
      if (row.kind == Value::Kind::Scalar) out.push_back(row.scalar);
      for (const Value& item : row.list) out.push_back(item.scalar);
    }
    std::vector<std::string> texts;
    for (const auto& row : actual) texts.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
    tell(*want, key, fmt::format("[{}]", fmt::join(texts, ", ")), actual == expected);
  }
  // Refuses keys that nothing above has read.
  std::vector<std::string> finish() {
    std::size_t unknown = 0;
    for (const auto& [key, value] : expected_.map) {
      if (taken_.contains(key)) continue;
      broken_.push_back(
          fmt::format("{}:{}: {} has no fact named {}", value.file, value.line, subject_, key));
      ++unknown;
    }
    if (checked_ == 0 && unknown == 0) expected_.refuse("this expectation checks nothing");
    return std::move(broken_);
  }
  void selector(std::string_view key) { taken_.emplace(key, 0); }

 private:
  static std::string moment_text(Time actual) {
    return actual == kNever ? "never" : fmt::format("{}", to_ms(actual));
  }
  static bool matches(const Value& want, Time actual) {
    if (want.scalar == "never" || actual == kNever) return want.scalar == moment_text(actual);
    return std::abs(want.number() - to_ms(actual)) <= kToleranceMs;
  }
  const Value* take(std::string_view key) {
    const Value* value = expected_.find(key);
    if (value == nullptr) return nullptr;
    taken_.emplace(key, 0);
    ++checked_;
    return value;
  }
  static std::string expected_text(const Value& want) {
    if (want.kind == Value::Kind::Scalar) return want.scalar;
    std::vector<std::string> texts;
    for (const Value& item : want.list) texts.push_back(expected_text(item));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  void tell(const Value& want, std::string_view key, const std::string& actual, bool good) {
    if (good) return;
    broken_.push_back(fmt::format("{}:{}: {}: {} is {}, expected {}", want.file, want.line,
                                  subject_, key, actual, expected_text(want)));
  }

  std::string subject_;
  const Value& expected_;
  std::map<std::string, int, std::less<>> taken_;
  std::size_t checked_ = 0;
  std::vector<std::string> broken_;
};

using Rows = std::vector<std::vector<std::string>>;
std::string number(std::uint64_t value) {
  return fmt::format("{}", value);
}

void request_facts(Facts& facts, const RecordedRequest& request, const Recording& run) {
  const replay::RequestRecord& r = request.record;
  facts.word("status", to_string(r.status));
  facts.word("reason", to_string(r.reason));
  facts.count("worker", r.worker);
  facts.count("rank", r.rank);
  facts.moment("arrival_ms", r.arrival);
  facts.moment("first_admit_ms", r.first_admit);
  facts.moment("first_token_ms", r.first_token);
  facts.moment("second_token_ms", r.second_token);
  facts.moment("last_token_ms", r.last_token);
  facts.moment("terminal_ms", r.terminal);
  facts.count("input_tokens", r.input_tokens);
  facts.count("output_tokens", r.output_tokens);
  facts.count("tokens_reused", r.reused_tokens);
  facts.count("tokens_reused_first", r.reused_tokens_first);
  facts.count("admissions", r.admissions);
  facts.count("preemptions", r.preemptions);
  if (r.kv_in_bytes) {
    facts.count("bytes_needed", r.kv_needed);
    facts.count("bytes_available", r.kv_available);
  } else {
    facts.count("blocks_needed", r.kv_needed);
    facts.count("blocks_available", r.kv_available);
  }
  std::vector<Time> admitted;
  for (const replay::Admission& admission : request.history) admitted.push_back(admission.at);
  facts.moments("admitted_ms", admitted);
  std::vector<Time> tokens;
  for (const replay::PassRecord& pass : run.passes) {
    for (const auto& output : pass.outputs) {
      if (output.request == r.ordinal) tokens.insert(tokens.end(), output.tokens, pass.end);
    }
  }
  facts.moments("tokens_ms", tokens);
}

void pass_facts(Facts& facts, const replay::PassRecord& p) {
  facts.moment("start_ms", p.start);
  facts.moment("end_ms", p.end);
  facts.count("images", p.images);
  facts.moment("vision_ms", Time{} + p.vision);
  facts.moment("prefill_ms", Time{} + p.prefill);
  facts.moment("decode_ms", Time{} + p.decode);
  facts.count("prefill_requests", p.prefill_requests);
  facts.count("decode_requests", p.decode_requests);
  facts.count("total_isl", p.total_isl);
  facts.count("total_prefix", p.total_prefix);
  facts.count("total_length", p.total_length);
  Rows scheduled;
  for (const auto& s : p.scheduled) {
    scheduled.push_back({number(s.request), number(s.from), number(s.to)});
  }
  facts.rows("scheduled", scheduled);
  Rows admitted;
  for (const auto& a : p.admitted) admitted.push_back({number(a.request), number(a.reused_tokens)});
  facts.rows("admitted", admitted);
  Rows preempted;
  for (const auto& victim : p.preempted) preempted.push_back({number(victim.request)});
  facts.rows("preempted", preempted);
  Rows blocks;
  for (const auto& victim : p.preempted) blocks.push_back({number(victim.blocks)});
  facts.rows("preempted_blocks", blocks);
  Rows rejected;
  for (const std::uint64_t request : p.rejected) rejected.push_back({number(request)});
  facts.rows("rejected", rejected);
  Rows outputs;
  for (const auto& o : p.outputs) {
    outputs.push_back({number(o.request), number(o.tokens), o.completed ? "done" : "more"});
  }
  facts.rows("outputs", outputs);
  facts.count("blocks_active", p.blocks_active);
  facts.count("blocks_inactive", p.blocks_inactive);
  facts.count("blocks_free", p.blocks_free);
  facts.count("used_bytes", p.kv_used_bytes);
  facts.count("cached_bytes", p.kv_cached_bytes);
  facts.count("running", p.running);
  facts.count("waiting", p.waiting);
  facts.real("new_token_ratio", p.new_token_ratio);
}

// A block hash is named after the event that stored it first: e0b1 = second block of event 0.
std::string block_name(const Recording& run, const replay::KvEventRecord& at, std::uint64_t hash) {
  for (const replay::KvEventRecord& event : run.events) {
    if (event.worker != at.worker || event.rank != at.rank || !event.stored) continue;
    for (std::size_t i = 0; i < event.blocks.size(); ++i) {
      if (event.blocks[i].hash == hash) return fmt::format("e{}b{}", event.event, i);
    }
  }
  return "unknown";
}

void event_facts(Facts& facts, const replay::KvEventRecord& event, const Recording& run) {
  facts.moment("at_ms", event.at);
  facts.word("kind", event.stored ? "stored" : "removed");
  facts.count("count", event.blocks.size());
  facts.count("group", event.group.value_or(0));
  facts.word("session", event.session ? number(*event.session) : "none");
  facts.word("parent", event.has_parent ? block_name(run, event, event.parent) : "none");
  Rows blocks;
  for (const auto& block : event.blocks) {
    blocks.push_back({block_name(run, event, block.hash)});
  }
  facts.rows("blocks", blocks);
  Rows hashes;
  for (const auto& block : event.blocks) {
    hashes.push_back({number(block.hash), number(block.tokens_hash)});
  }
  facts.rows("hashes", hashes);
}

void total_facts(Facts& facts, const Recording& run) {
  const replay::RunTotals& t = run.totals;
  facts.count("requests", t.requests);
  facts.count("records", run.requests.size());
  facts.count("incomplete_at_cap", t.incomplete_at_cap);
  facts.count("passes", t.passes);
  facts.count("preemptions", t.preemptions);
  facts.count("evictions", t.evictions);
  facts.count("accepted_tokens", t.accepted_tokens);
  facts.count("decode_forwards", t.decode_forwards);
  facts.count("prefix_queried_tokens", t.prefix_queried_tokens);
  facts.count("prefix_hit_tokens", t.prefix_hit_tokens);
  facts.moment("first_arrival_ms", t.first_arrival);
  facts.moment("end_ms", t.end);
  facts.count("kv_events", run.events.size());
  const auto gap_rows = [](const replay::GapTable& table) {
    Rows rows;
    for (const auto& [gap, times] : table.gaps_ns) {
      rows.push_back({fmt::format("{}", ms_from_ns(gap)), number(times)});
    }
    return rows;
  };
  facts.rows("gaps_ms", gap_rows(t.gaps));
  if (t.step_gaps) facts.rows("step_gaps_ms", gap_rows(*t.step_gaps));
}

}  // namespace

std::vector<std::string> broken_expectation(const Value& expected, const Recording& run) {
  const auto chosen = [&](std::string_view key) {
    const Value* value = expected.find(key);
    return value == nullptr ? 0 : value->count();
  };
  const Value* selector = nullptr;
  if ((selector = expected.find("request")) != nullptr) {
    Facts facts(fmt::format("request {}", selector->scalar), expected);
    facts.selector("request");
    for (const RecordedRequest& request : run.requests) {
      if (request.record.row != selector->count()) continue;
      request_facts(facts, request, run);
      return facts.finish();
    }
    facts.word("status", "without a record");
    return facts.finish();
  }
  const std::uint64_t worker = chosen("worker"), rank = chosen("rank");
  if ((selector = expected.find("pass")) != nullptr) {
    Facts facts(fmt::format("worker {} rank {} pass {}", worker, rank, selector->scalar), expected);
    facts.selector("pass");
    facts.selector("worker");
    facts.selector("rank");
    for (const replay::PassRecord& pass : run.passes) {
      if (pass.worker != worker || pass.rank != rank || pass.pass != selector->count()) continue;
      pass_facts(facts, pass);
      return facts.finish();
    }
    return {fmt::format("{}:{}: there is no such pass", expected.file, expected.line)};
  }
  if ((selector = expected.find("event")) != nullptr) {
    Facts facts(fmt::format("worker {} rank {} KV event {}", worker, rank, selector->scalar),
                expected);
    facts.selector("event");
    facts.selector("worker");
    facts.selector("rank");
    for (const replay::KvEventRecord& event : run.events) {
      if (event.worker != worker || event.rank != rank || event.event != selector->count())
        continue;
      event_facts(facts, event, run);
      return facts.finish();
    }
    return {fmt::format("{}:{}: there is no such KV event", expected.file, expected.line)};
  }
  if ((selector = expected.find("pool")) != nullptr) {
    Facts facts(fmt::format("pool of worker {} rank {}", selector->scalar, rank), expected);
    facts.selector("pool");
    facts.selector("rank");
    const std::uint64_t ranks = run.totals.ranks_per_worker;
    const std::uint64_t index = selector->count() * ranks + rank;
    if (rank >= ranks || index >= run.totals.pools.size()) selector->refuse("no such rank");
    const replay::PoolState& pool = run.totals.pools[index];
    facts.count("active", pool.active);
    facts.count("inactive", pool.inactive);
    facts.count("free", pool.free);
    facts.count("used_bytes", pool.used_bytes);
    facts.count("cached_bytes", pool.cached_bytes);
    facts.count("capacity_bytes", pool.capacity_bytes);
    return facts.finish();
  }
  if ((selector = expected.find("totals")) != nullptr) {
    expected.only({"totals"});
    Facts facts("totals", *selector);
    total_facts(facts, run);
    return facts.finish();
  }
  expected.refuse("an expectation names a request, pass, event, pool or totals");
}

}  // namespace servecast::test
