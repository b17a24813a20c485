// SPDX-License-Identifier: Apache-2.0
#include "conformance/shared_sglang.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "conformance/shared_files.hpp"

namespace servecast::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

template <class Number>
Number number_of(const std::string& text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (text.empty() || result.ec != std::errc() || result.ptr != end)
    throw std::runtime_error("args.json: " + text + " is no number");
  return number;
}

// The reference counts reuse of all admissions together; a record has the largest one.
ExpectedRequest read_request(const json& row, const SglangHistory& history, const json& asked) {
  ExpectedRequest out = read_request_facts(row);
  out.requested_output_tokens = asked.at("output_length");
  for (const std::uint32_t reused : history.reused) out.reused = std::max(out.reused, reused);
  out.preemptions = row.at("retractions");
  return out;
}

void read_requests(const fs::path& folder, SharedSglangCase& out) {
  std::vector<json> asked;
  each_line(read_text(folder / "trace.jsonl"), [&](const json& row) { asked.push_back(row); });
  each_line(read_text(folder / "expected.jsonl"), [&](const json& row) {
    const std::size_t index = out.histories.size();
    if (row.at("index") != index || index >= asked.size())
      throw std::runtime_error("expected.jsonl is not in the order of the trace");
    SglangHistory& history = out.histories.emplace_back();
    row.at("admit_ms").get_to(history.admitted);
    row.at("token_ms").get_to(history.tokens);
    row.at("reused_tokens_per_admission").get_to(history.reused);
    out.common.requests.push_back(read_request(row, history, asked[index]));
  });
}

SglangPass read_pass(const json& row) {
  SglangPass out;
  out.worker = row.at("worker");
  out.pass = row.at("pass_id");
  out.start = row.at("start_ms");
  out.end = row.at("end_ms");
  out.kind = row.at("kind");
  if (row.contains("batch")) {
    for (const json& item : row.at("batch")) {
      const std::uint32_t prefix = item.at(1), computed = item.at(2);
      out.batch.push_back({item.at(0), prefix, prefix + computed});
    }
  }
  if (row.contains("rows")) {
    row.at("rows").get_to(out.rows);
    out.sum_len = row.at("sum_len");
  }
  row.at("retracted").get_to(out.retracted);
  out.running = row.at("running");
  out.waiting = row.at("waiting");
  out.available = row.at("available");
  out.evictable = row.at("evictable");
  out.ratio = row.at("ratio");
  return out;
}

// With the overlapped loop a forward starts when the one before has left the device.
void read_passes(const fs::path& file, SharedSglangCase& out) {
  std::map<std::uint32_t, double> device_free;
  each_line(read_text(file), [&](const json& row) {
    SglangPass& pass = out.passes.emplace_back(read_pass(row));
    if (row.contains("gpu_end")) {
      const double gpu_end = row.at("gpu_end");
      pass.device = gpu_end - std::max(device_free[pass.worker], pass.start);
      device_free[pass.worker] = gpu_end;
    } else if (pass.kind != "empty") {
      pass.device = pass.end - pass.start;
    }
  });
  std::stable_sort(out.passes.begin(), out.passes.end(),
                   [](const SglangPass& a, const SglangPass& b) {
                     return std::tie(a.worker, a.pass) < std::tie(b.worker, b.pass);
                   });
}

SglangEvent read_event(const json& row) {
  SglangEvent out;
  out.time = row.at("time_ms");
  replay::KvEventRecord& event = out.event;
  event.worker = row.at("worker");
  event.event = row.at("event_id");
  event.stored = row.at("type") == "stored";
  if (!event.stored) {
    for (const json& hash : row.at("block_hashes")) event.blocks.push_back({hash, 0});
    return out;
  }
  if (!row.at("session").is_null()) event.session = row.at("session").get<std::uint32_t>();
  event.has_parent = !row.at("parent_hash").is_null();
  if (event.has_parent) event.parent = row.at("parent_hash");
  for (const json& block : row.at("blocks"))
    event.blocks.push_back({block.at("block_hash"), block.at("tokens_hash")});
  return out;
}

void read_events(const fs::path& file, SharedSglangCase& out) {
  each_line(read_text(file), [&](const json& row) { out.events.push_back(read_event(row)); });
  std::stable_sort(
      out.events.begin(), out.events.end(), [](const SglangEvent& a, const SglangEvent& b) {
        return std::tie(a.event.worker, a.event.event) < std::tie(b.event.worker, b.event.event);
      });
}

// Passes of each worker. The file of event_cadence tells of another run than the files beside it:
// it has other passes, and fewer, than the summary counts.
void count_passes(std::uint64_t total, SharedSglangCase& out) {
  std::vector<std::uint64_t>& counts = out.common.passes_per_worker;
  counts.assign(out.common.deployment.workers, 0);
  for (const SglangPass& pass : out.passes) ++counts.at(pass.worker);
  if (out.passes.size() == total) return;
  if (counts.size() > 1) throw std::runtime_error("passes.jsonl is of another run");
  out.passes.clear();
  counts[0] = total;
}

// The file counts who waits when a pass ends, a record who waited when it was composed: they differ
// by those who came meanwhile. An iteration of the host loop is told as it began in both.
void drop_later_arrivals(SharedSglangCase& out) {
  if (out.common.deployment.rank.sglang->host_loop) return;
  for (SglangPass& pass : out.passes) {
    for (const ExpectedRequest& row : out.common.requests) {
      pass.waiting -=
          row.worker == pass.worker && *row.arrival > pass.start && *row.arrival < pass.end;
    }
  }
}

// The reused ratio is that of the rows, clamped (README of the cases).
double reused_ratio(const SharedCase& common) {
  double reused = 0, input = 0;
  for (const ExpectedRequest& row : common.requests) {
    if (row.status != "completed") continue;
    reused += std::min(row.reused, row.input_tokens);
    input += row.input_tokens;
  }
  return input > 0 ? reused / input : 0;
}

void read_summary(const json& summary, SharedSglangCase& out) {
  SharedCase& common = out.common;
  const std::set<std::string> elsewhere = {
      "passes",         "prefill_passes", "decode_passes", "stored_blocks",
      "removed_blocks", "kv_events",      "retractions",   "prefix_cache_reused_ratio"};
  for (const auto& [key, value] : summary.items()) {
    if (value.is_number() && !elsewhere.contains(key)) common.summary[key] = value;
  }
  common.summary["preemptions"] = summary.at("retractions");
  common.summary["prefix_cache_reused_ratio_capped_at_input"] = reused_ratio(common);
  out.prefill_passes = summary.at("prefill_passes");
  out.decode_passes = summary.at("decode_passes");
  out.stored_blocks = summary.at("stored_blocks");
  out.removed_blocks = summary.at("removed_blocks");
  summary.at("final_ratio").get_to(out.final_ratios);
  count_passes(summary.at("passes"), out);
  const std::uint32_t page = common.deployment.rank.block_tokens;
  for (std::size_t w = 0; w < common.deployment.workers; ++w) {
    const std::uint32_t available = summary.at("final_available").at(w),
                        evictable = summary.at("final_evictable").at(w);
    replay::PoolState pool{.inactive = evictable / page, .free = available / page};
    pool.active = common.deployment.rank.blocks - pool.inactive - pool.free;
    common.final_pools.push_back(pool);
  }
  if (!summary.at("error").is_null() || summary.at("kv_events") != out.events.size())
    throw std::runtime_error("summary.json does not agree with the other files");
}

}  // namespace

scheduler::SglangPolicy sglang_policy(const std::string& word) {
  using scheduler::SglangPolicy;
  const std::map<std::string, SglangPolicy> policies = {
      {"fcfs", SglangPolicy::Fcfs},        {"fifo", SglangPolicy::Fcfs},
      {"lpm", SglangPolicy::Lpm},          {"dfs_weight", SglangPolicy::DfsWeight},
      {"lof", SglangPolicy::Lof},          {"random", SglangPolicy::Random},
      {"priority", SglangPolicy::Priority}};
  const auto found = policies.find(word);
  if (found == policies.end()) throw std::runtime_error("unknown policy " + word);
  return found->second;
}

std::uint32_t read_sglang_args(const std::vector<std::string>& args, SharedCase& out) {
  scheduler::RankConfig& rank = out.deployment.rank;
  scheduler::SglangSettings& sglang = rank.sglang.emplace();
  out.spec.load.kind = workload::Load::Kind::TraceTimestamps;
  std::uint32_t trace_block = 1;
  const std::map<std::string_view, std::uint32_t*> counts = {
      {"--trace-block-size", &trace_block},
      {"--workers", &out.deployment.workers},
      {"--num-gpu-blocks", &rank.blocks},
      {"--page-size", &rank.block_tokens},
      {"--max-running", &rank.max_sequences},
      {"--chunked-prefill-size", &sglang.chunked_prefill_size},
      {"--max-prefill-tokens", &sglang.max_prefill_tokens},
      {"--clip-max-new-tokens", &sglang.clip_max_new_tokens},
      {"--decode-log-interval", &sglang.decode_log_interval},
      {"--concurrency", &out.spec.load.concurrency}};
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& flag = args[i];
    if (flag == "--overlap") {
      sglang.host_loop = true;
      continue;
    }
    if (flag == "--no-radix-cache") {
      rank.prefix_caching = false;
      continue;
    }
    if (++i == args.size()) throw std::runtime_error("args.json has no value for " + flag);
    if (flag == "--concurrency") out.spec.load.kind = workload::Load::Kind::Concurrency;
    if (const auto count = counts.find(flag); count != counts.end())
      *count->second = number_of<std::uint32_t>(args[i]);
    else if (flag == "--schedule-conservativeness")
      sglang.schedule_conservativeness = number_of<double>(args[i]);
    else if (flag == "--policy")
      sglang.policy = sglang_policy(args[i]);
    else if (flag == "--timing")
      out.deployment.timer = read_timer(args[i]);
    else
      throw std::runtime_error("args.json has the unknown flag " + flag);
  }
  return trace_block;
}

SharedSglangCase read_shared_sglang_case(const fs::path& folder) {
  SharedSglangCase out;
  SharedCase& common = out.common;
  common.name = folder.filename().string();
  const json args = json::parse(read_text(folder / "args.json"));
  const std::uint32_t trace_block = read_sglang_args(args.at("args"), common);
  common.trace = cut_trace(folder / "trace.jsonl", trace_block);
  workload::TraceSource source;
  source.path = common.trace->path();
  source.block_size = trace_block;
  common.spec.source = source;
  common.spec.stop = {};
  read_requests(folder, out);
  read_passes(folder / "passes.jsonl", out);
  read_events(folder / "events.jsonl", out);
  read_summary(json::parse(read_text(folder / "summary.json")), out);
  drop_later_arrivals(out);
  return out;
}

}  // namespace servecast::test
