// SPDX-License-Identifier: Apache-2.0
#include "conformance/shared_case.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "conformance/shared_files.hpp"

namespace servecast::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void read_args(const json& args, const fs::path& trace, SharedCase& out) {
  out.trace = cut_trace(trace, args.at("trace_block_size"));
  workload::TraceSource source;
  source.path = out.trace->path();
  out.spec.load.kind = workload::Load::Kind::TraceTimestamps;
  out.spec.stop = {};
  scheduler::RankConfig& rank = out.deployment.rank;
  for (const auto& [key, value] : args.items()) {
    if (key == "trace_block_size") {
      source.block_size = value;
    } else if (key == "workers") {
      out.deployment.workers = value;
    } else if (key == "num_gpu_blocks") {
      rank.blocks = value;
    } else if (key == "block_size") {
      rank.block_tokens = value;
    } else if (key == "max_num_seqs") {
      rank.max_sequences = value;
    } else if (key == "max_num_batched_tokens") {
      rank.max_batched_tokens = value;
    } else if (key == "no_prefix_caching") {
      rank.prefix_caching = !value.get<bool>();
    } else if (key == "no_chunked_prefill") {
      rank.chunked_prefill = !value.get<bool>();
    } else if (key == "max_model_len") {
      rank.max_model_len = value.get<std::uint32_t>();
    } else if (key == "preemption_mode") {
      rank.preemption_mode = value.get<std::string>() == "fifo" ? scheduler::PreemptionMode::Fifo
                                                                : scheduler::PreemptionMode::Lifo;
    } else if (key == "concurrency") {
      out.spec.load.kind = workload::Load::Kind::Concurrency;
      out.spec.load.concurrency = value;
    } else if (key == "timing") {
      out.deployment.timer = read_timer(value);
    } else {
      throw std::runtime_error("args.json has the unknown key " + key);
    }
  }
  out.spec.source = source;
}

ExpectedRequest read_request(const json& row) {
  ExpectedRequest out = read_request_facts(row);
  out.requested_output_tokens = row.at("requested_output_tokens");
  out.reused = row.at("max_reused_tokens");
  out.preemptions = row.at("preemptions");
  return out;
}

ExpectedPass read_pass(const json& row) {
  ExpectedPass out;
  out.worker = row.at("worker");
  out.pass = row.at("pass");
  out.start = row.at("start_ms");
  out.end = row.at("end_ms");
  out.prefill = row.at("prefill_ms");
  out.decode = row.at("decode_ms");
  out.prefill_requests = row.at("prefill_count");
  out.decode_requests = row.at("decode_count");
  out.total_isl = row.at("total_isl");
  out.total_prefix = row.at("total_prefix");
  out.total_length = row.at("total_length");
  for (const json& item : row.at("scheduled")) {
    out.scheduled.push_back({item.at(0), item.at(1), item.at(2)});
  }
  for (const json& item : row.at("admitted")) out.admitted.push_back({item.at(0), item.at(1)});
  // A victim stands with the blocks it held.
  for (const json& item : row.at("preempted")) out.preempted.push_back({item.at(0), item.at(1)});
  for (const json& item : row.at("rejected")) out.rejected.push_back(item);
  for (const json& item : row.at("outputs")) {
    out.outputs.push_back({item.at(0), item.at(1), item.at(2).get<int>() != 0});
  }
  const json& after = row.at("after");
  out.blocks_active = after.at("active");
  out.blocks_inactive = after.at("inactive");
  out.blocks_free = after.at("free");
  out.running = after.at("running");
  out.waiting = after.at("waiting");
  return out;
}

void read_summary(const json& summary, SharedCase& out) {
  for (const auto& [key, value] : summary.items()) {
    if (value.is_number()) out.summary[key] = value;
  }
  for (const json& count : summary.at("passes")) out.passes_per_worker.push_back(count);
  for (const json& pool : summary.at("final_pool")) {
    out.final_pools.push_back({pool.at("active"), pool.at("inactive"), pool.at("free")});
  }
}

}  // namespace

ExpectedRequest read_request_facts(const json& row) {
  ExpectedRequest out;
  out.arrival = moment(row.at("arrival_ms"));
  out.first_admit = moment(row.at("first_admit_ms"));
  out.first_token = moment(row.at("first_token_ms"));
  out.last_token = moment(row.at("last_token_ms"));
  out.terminal = moment(row.at("terminal_ms"));
  out.input_tokens = row.at("input_tokens");
  out.output_tokens = row.at("output_tokens");
  out.reused_first = row.at("first_admission_reused_tokens");
  out.worker = row.at("worker");
  out.status = row.at("status");
  return out;
}

std::vector<fs::path> shared_vllm_cases(const fs::path& folder) {
  std::vector<fs::path> large;
  std::vector<fs::path> micro;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "micro") large.push_back(entry.path());
  }
  if (fs::is_directory(folder / "micro")) {
    for (const auto& entry : fs::directory_iterator(folder / "micro"))
      micro.push_back(entry.path());
  }
  std::sort(large.begin(), large.end());
  std::sort(micro.begin(), micro.end());
  large.insert(large.end(), micro.begin(), micro.end());
  return large;
}

SharedCase read_shared_case(const fs::path& folder) {
  SharedCase out;
  out.name = folder.filename().string();
  read_args(json::parse(read_text(folder / "args.json")), folder / "trace.jsonl", out);
  each_line(read_text(folder / "expected.jsonl"),
            [&out](const json& row) { out.requests.push_back(read_request(row)); });
  read_summary(json::parse(read_text(folder / "summary.json")), out);
  if (fs::exists(folder / "passes.jsonl.gz")) {
    each_line(read_gzip(folder / "passes.jsonl.gz"),
              [&out](const json& row) { out.passes.push_back(read_pass(row)); });
    std::stable_sort(out.passes.begin(), out.passes.end(),
                     [](const ExpectedPass& a, const ExpectedPass& b) {
                       return std::tie(a.worker, a.pass) < std::tie(b.worker, b.pass);
                     });
  }
  return out;
}

}  // namespace servecast::test
