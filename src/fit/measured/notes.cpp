// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/notes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace servecast::fit {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The text after "key=", up to a blank, a comma or a semicolon; nothing when the key is not there.
std::optional<std::string_view> setting(std::string_view notes, std::string_view key) {
  for (std::size_t at = notes.find(key); at != std::string_view::npos;
       at = notes.find(key, at + 1)) {
    const bool begins = at == 0 || notes[at - 1] == ' ' || notes[at - 1] == ';';
    const std::size_t value = at + key.size();
    if (!begins || value >= notes.size() || notes[value] != '=') continue;
    const std::string_view rest = notes.substr(value + 1);
    return rest.substr(0, rest.find_first_of(" ,;"));
  }
  return std::nullopt;
}

template <class Number>
void take(std::string_view notes, std::string_view key, std::optional<Number>& into) {
  const auto text = setting(notes, key);
  if (into || !text) return;
  Number value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc{} && end == text->data() + text->size()) into = value;
}

// What follows an engine's own name is its flavour or version.
std::string engine_name(std::string_view written) {
  std::string name = lower(written);
  if (name.starts_with("dynamo-")) name.erase(0, 7);
  for (const std::string_view known : {"vllm", "sglang", "trtllm"}) {
    if (contains(name, known)) return std::string(known);
  }
  return name.starts_with("tensorrt") ? "trtllm" : std::string(written);
}

// Common rows give the experts' share of the GPUs only; and where attention data parallelism is on,
// `tp` counts all GPUs.
void read_gpus(MeasuredRow& row) {
  FiledWidths& widths = row.widths;
  if (!row.gpus || row.is_disaggregated() || row.is_submission) return;
  const std::uint32_t data = std::max(widths.attention_data.value_or(1), 1U);
  const std::uint32_t stages = std::max(widths.pipeline.value_or(1), 1U);
  const std::uint32_t tensor = std::max(widths.tensor.value_or(0), 0U);
  const std::uint64_t ranks = std::uint64_t{data} * stages;
  if (tensor * ranks != *row.gpus && *row.gpus % ranks == 0)
    widths.tensor = static_cast<std::uint32_t>(*row.gpus / ranks);
  const std::uint32_t experts = std::max(widths.moe_expert.value_or(1), 1U);
  const std::uint64_t group = std::uint64_t{widths.tensor.value_or(1)} * data;
  if (!widths.moe_tensor && group % experts == 0)
    widths.moe_tensor = static_cast<std::uint32_t>(group / experts);
}

// MLPerf publishes samples and tokens per second; one by the other are a sample's output tokens.
void read_submission(MeasuredRow& row) {
  if (!contains(row.notes, "scenario=")) return;
  row.is_submission = true;
  std::optional<double> samples_per_s;
  take(row.notes, "samples_per_s", samples_per_s);
  if (row.output_tokens || !row.gpus || !row.output_tok_s_per_gpu || !(samples_per_s > 0.0)) return;
  const double tokens = *row.output_tok_s_per_gpu * *row.gpus / *samples_per_s;
  if (tokens >= 1 && tokens < 1e6) row.output_tokens = static_cast<std::uint32_t>(tokens + 0.5);
}

std::optional<std::uint32_t> leading_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && value > 0 ? std::optional(value) : std::nullopt;
}

// Rows of one replica of several: "layout=2DP4TP_0" are four tensor ranks, and of the rate one
// half.
void read_replica(MeasuredRow& row) {
  const auto layout = setting(row.notes, "layout");
  if (!layout) return;
  const std::size_t data = layout->find("DP");
  const std::string_view rest = data == std::string_view::npos ? *layout : layout->substr(data + 2);
  const auto tensor = leading_number(rest);
  if (!tensor || !contains(rest, "TP")) return;
  row.widths.tensor = row.gpus = *tensor;
  if (row.unreadable.starts_with("tensor is")) row.unreadable.clear();
  const auto replicas = data == std::string_view::npos ? 1U : leading_number(*layout);
  double rate = 0;
  const auto [end, error] =
      std::from_chars(row.rate.data(), row.rate.data() + row.rate.size(), rate);
  if (error == std::errc{} && replicas) row.rate = fmt::format("{}", rate / *replicas);
}

// Where only totals are told, the number of requests follows from the means: all latencies are
// n TTFT + (tokens - n) TPOT. Means of requests are not those of tokens, so it is a rough number.
void read_totals(MeasuredRow& row) {
  std::optional<double> prompts, outputs, seconds;
  take(row.notes, "prompt tokens", prompts);
  take(row.notes, "output tokens", outputs);
  take(row.notes, "latencies s", seconds);
  if (row.input_tokens || row.output_tokens || !prompts || !outputs || !seconds || !row.ttft_ms ||
      !row.tpot_ms)
    return;
  const double requests =
      (1e3 * *seconds - *row.tpot_ms * *outputs) / (*row.ttft_ms - *row.tpot_ms);
  constexpr double kTokensMin = 16;  // fewer a request: the totals contradict the means
  if (!(requests >= 1) || *prompts / requests < kTokensMin || *outputs / requests < kTokensMin)
    return;
  row.requests = static_cast<std::uint32_t>(std::lround(requests));
  row.input_tokens = static_cast<std::uint32_t>(std::lround(*prompts / requests));
  row.output_tokens = static_cast<std::uint32_t>(std::lround(*outputs / requests));
}

}  // namespace

void read_notes(MeasuredRow& row) {
  const std::string_view notes = row.notes;
  row.engine = engine_name(row.engine);
  if (row.mode.empty() && contains(notes, "DISAGGREGATED")) row.mode = "disagg";
  take(notes, "n", row.requests);
  take(notes, "max_num_seqs", row.max_sequences);
  take(notes, "max_num_batched_tokens", row.max_batched_tokens);
  take(notes, "max_model_len", row.max_model_len);
  take(notes, "gpu_mem_util", row.memory_fraction);
  take(notes, "num_spec", row.nextn);
  if (!row.nextn && (setting(notes, "spec") == "none" || setting(notes, "mtp") == "off"))
    row.nextn = 0;
  // The first sweeps had no run with drafts: only its disaggregated rows say so ("mtp=off").
  if (!row.nextn && contains(notes, "InferenceMAX official sweep snapshot 2025-11")) row.nextn = 0;
  read_submission(row);
  read_replica(row);
  read_totals(row);
  read_gpus(row);
}

std::optional<Protocol> protocol_of(const MeasuredRow& row) {
  if (!row.protocol.empty()) return protocol_from(row.protocol);
  const std::string_view notes = row.notes;
  if (contains(notes, "static batch")) return Protocol::Static;
  if (contains(notes, "U[0.8L,L]")) return Protocol::InferenceMax;
  if (contains(row.rate, "offline") || contains(notes, "scenario=Offline") ||
      contains(notes, "scenario=offline"))
    return Protocol::Offline;
  const bool has_rate = !row.rate.empty() && !row.rate.starts_with("inf");
  if (has_rate && !row.concurrency) return Protocol::OpenLoop;
  if (row.id.starts_with("2026_") || contains(row.id, "_cfg")) return Protocol::InferenceMax;
  return Protocol::Fixed;
}

}  // namespace servecast::fit
