// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "cli/estimate_report.hpp"

namespace servecast::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A share of a whole as a bar, one # a part of `width`.
std::string bar(double share, int width) {
  const int filled = std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  return filled > 0 ? "  " + std::string(static_cast<std::size_t>(filled), '#') : "";
}

std::string percent(double part, double whole) {
  return whole > 0.0 ? fmt::format("{:.1f}%", 100.0 * part / whole) : "-";
}

// "tensor 2, expert 2": axes above 1.
std::string axes_text(const perf::Parallelism& p) {
  std::vector<std::string> axes;
  const auto add = [&](const char* name, std::uint32_t ranks) {
    if (ranks > 1) axes.push_back(fmt::format("{} {}", name, ranks));
  };
  add("tensor", p.tensor);
  add("pipeline", p.pipeline);
  add("attention_data", p.attention_data);
  add("moe_tensor", p.moe_tensor);
  add("moe_expert", p.moe_expert);
  return axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
}

std::string title(const Estimate& found) {
  const replay::Deployment& deployment = found.deployed.deployment;
  const perf::Placement& placement = found.deployed.placement;
  std::string text =
      fmt::format("{} on {}, {}{}: {} {} of {} {}{}\n", printable(placement.model.name),
                  printable(placement.system.name), to_string(placement.engine),
                  placement.engine_version.empty() ? "" : " " + printable(placement.engine_version),
                  deployment.workers, deployment.workers == 1 ? "worker" : "workers",
                  deployment.gpus_per_worker, deployment.gpus_per_worker == 1 ? "GPU" : "GPUs",
                  axes_text(placement.parallelism));
  text += fmt::format("Batch of {} x ({} + {} tokens)", found.batch.requests,
                      found.batch.input_tokens, found.batch.output_tokens);
  if (found.ranks > 1)
    text += fmt::format(" on each of {} ranks, {} requests in all", found.ranks, found.requests());
  return text + "\n\n";
}

std::string interval_text(double ms, const std::optional<double>& half_width) {
  if (!half_width) return "-";
  const Range range = range_of(ms, *half_width);
  return fmt::format("{} to {}", grouped(range.low), grouped(range.high));
}

void append_latency(std::string& out, const char* name, double ms, double bound_ms,
                    const std::optional<double>& half_width) {
  out += fmt::format("{:<36}{:>14}{:>14}{:>9}   {}\n", name, grouped(ms), grouped(bound_ms),
                     percent(bound_ms, ms), interval_text(ms, half_width));
}

void append_summary(std::string& out, const Estimate& found) {
  std::optional<double> ttft, tpot;
  if (found.evidence && found.evidence->interval) {
    ttft = found.evidence->interval->ttft;
    tpot = found.evidence->interval->tpot;
  }
  out += fmt::format("{:<36}{:>14}{:>14}{:>9}   {}\n", "", "estimate", "bound", "bound %",
                     "90% interval");
  append_latency(out, "Time to First Token (ms)", to_ms(found.times.prefill), found.ttft_bound_ms,
                 ttft);
  if (found.decode)
    append_latency(out, "Time per Output Token (ms)", found.times.tpot_ms(), found.tpot_bound_ms,
                   tpot);
  append_latency(out, "Request Latency (ms)", to_ms(found.times.request()),
                 found.request_bound_ms(), std::nullopt);
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:<36}{:>14}\n", name, value);
  };
  const double tokens = found.output_tokens_per_s();
  line("Output Throughput (tokens/s)", grouped(tokens));
  line("  per GPU (tokens/s/GPU)", grouped(tokens / static_cast<double>(found.gpus())));
  if (const auto user = found.tokens_per_s_of_user())
    line("  per user (tokens/s/user)", grouped(*user));
  line("Request Throughput (requests/s)", grouped(found.requests_per_s()));
  out += fmt::format("Energy: {}\n\n", energy_reason());
}

void append_memory(std::string& out, const Estimate& found, Detail detail) {
  const auto& memory = found.deployed.memory;
  if (!memory) {
    out += "Memory: the KV capacity is given, not computed\n";
    return;
  }
  const auto gpu = static_cast<double>(memory->gpu_bytes);
  const auto row = [&](const char* name, double bytes) {
    out += fmt::format("{:<22}{:>12}{:>9}{}\n", name, fmt::format("{:.3f}", bytes / kGiB),
                       percent(bytes, gpu), detail == Detail::Full ? bar(bytes / gpu, 40) : "");
  };
  out += fmt::format("{:<22}{:>12}{:>9}\n", "Memory of one GPU", "GiB", "share");
  const perf::MemoryParts& parts = memory->parts;
  const auto kv = static_cast<double>(memory->kv_bytes);
  row("  weights", static_cast<double>(parts.weights));
  row("  KV cache", kv);
  row("  activations", static_cast<double>(parts.activations));
  row("  collectives", static_cast<double>(parts.collectives));
  row("  others", static_cast<double>(parts.others));
  if (parts.cuda_graphs > 0) row("  CUDA graphs", static_cast<double>(parts.cuda_graphs));
  const double total = static_cast<double>(parts.sum()) + kv;
  row("  total", total);
  row("  free", gpu - total);
}

void append_kv(std::string& out, const Estimate& found) {
  const scheduler::RankConfig& rank = found.deployed.deployment.rank;
  if (!rank.grouped)
    out += fmt::format("KV cache: {} blocks of {} {}, {} tokens on each rank\n", rank.blocks,
                       rank.block_tokens, rank.block_tokens == 1 ? "token" : "tokens",
                       found.batch.capacity_tokens);
  out += fmt::format(
      "One request at its full length takes {:.3f} GiB, the batch {:.3f} GiB; {} such requests fit "
      "at most\n\n",
      static_cast<double>(found.request_kv_bytes) / kGiB,
      static_cast<double>(found.request_kv_bytes) * found.batch.requests / kGiB,
      found.requests_max);
}

void append_pass(std::string& out, const std::string& name, const perf::Breakdown& pass,
                 Detail detail) {
  const double total = to_ms(pass.total);
  out += fmt::format("{:<36}{:>14}{:>14}{:>9}{:>9}\n", name, "ms", "bound ms", "bound %", "share");
  const auto row = [&](std::string_view part, double ms, double bound_ms) {
    out += fmt::format("  {:<34}{:>14.6f}{:>14.6f}{:>9}{:>9}{}\n", part, ms, bound_ms,
                       percent(bound_ms, ms), percent(ms, total),
                       detail == Detail::Full && total > 0.0 ? bar(ms / total, 12) : "");
  };
  for (const perf::PartTime& part : pass.parts)
    row(to_string(part.name), to_ms(part.time), part.bound_ms);
  row(pass.parts.empty() ? "total; this timing knows no parts" : "total", total, pass.bound_ms);
  out += '\n';
}

void append_passes(std::string& out, const Estimate& found, Detail detail) {
  const perf::StepShape prefill = perf::prefill_shape(found.batch);
  append_pass(out, fmt::format("Prefill pass, {} tokens", prefill.prefill_isl), found.prefill,
              detail);
  if (!found.decode) return;
  const perf::StepShape decode = perf::decode_shape(found.batch, found.decode_pass());
  append_pass(out,
              fmt::format("Decode pass {} of {}, context {}", found.decode_pass() + 1,
                          found.batch.decode_passes(), decode.decode_context),
              *found.decode, detail);
}

// "kind=dense engine=vllm", "always". An empty version is one that is not known.
std::string when_text(const catalog::Effect& effect) {
  if (effect.when.empty()) return "always";
  std::vector<std::string> terms;
  for (const auto& [label, value] : effect.when)
    terms.push_back(
        fmt::format("{}={}", to_string(label), value.empty() ? "(not known)" : printable(value)));
  return fmt::format("{}", fmt::join(terms, " "));
}

void append_effects(std::string& out, const Evidence& evidence) {
  out += fmt::format("\n{:<28}{:>10}  {:>10}{:>7}  {}\n", "Coefficient", "value", "factor", "rows",
                     "where");
  for (const Applied& applied : evidence.coefficients) {
    std::string name(to_string(applied.coefficient));
    std::string value = fmt::format("{:.5g}", applied.value);
    if (applied.effects.empty()) out += fmt::format("{:<28}{:>10}\n", name, value);
    for (const catalog::Effect& effect : applied.effects) {
      out += fmt::format("{:<28}{:>10}  {:>10}{:>7}  {}\n", name, value,
                         fmt::format("{:.5g}", effect.factor), effect.rows, when_text(effect));
      name.clear();
      value.clear();
    }
  }
}

void append_provenance(std::string& out, const Estimate& found, Detail detail) {
  const auto timing = perf::to_string(found.deployed.deployment.timer->provenance());
  if (!found.evidence) {
    out += fmt::format("Provenance: {}\n", timing);
    return;
  }
  const Evidence& evidence = *found.evidence;
  out += fmt::format("Provenance: {}; step model: {} ({})\n", timing, printable(evidence.source),
                     printable(evidence.licence));
  out +=
      fmt::format("Support: {}: {}\n", to_string(evidence.support), support_text(evidence.support));
  if (!evidence.interval) out += "90% interval: the step model states none\n";
  if (detail == Detail::Full) append_effects(out, evidence);
}

}  // namespace

std::string_view energy_reason() {
  return "not known: no power of this hardware was measured";
}

std::string_view support_text(fit::Support support) {
  switch (support) {
    case fit::Support::Group:
      return "this network was measured on this system with this engine and these formats";
    case fit::Support::EngineAndNetwork:
      return "this network was measured with this engine, on other systems or in other formats";
    case fit::Support::Engine:
      return "other networks were measured with this engine";
    case fit::Support::None:
      break;
  }
  return "no measurement of this engine stands behind the step model";
}

Range range_of(double value, double half_width) {
  return {value * std::exp(-half_width), value * std::exp(half_width)};
}

std::string estimate_table(const Estimate& found, Detail detail) {
  std::string out = title(found);
  append_summary(out, found);
  append_memory(out, found, detail);
  append_kv(out, found);
  append_passes(out, found, detail);
  append_provenance(out, found, detail);
  return out;
}

}  // namespace servecast::cli
