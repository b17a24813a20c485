// SPDX-License-Identifier: Apache-2.0
#include "fit/identify.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <variant>
#include <vector>

namespace servecast::fit {
namespace {

using catalog::EngineKind;
using catalog::Precision;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Removes one ending that says how the same network is stored or when it was released.
bool drop_ending(std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings{
      "-v2", "-preview", "-0528", "-fp8", "-nvfp4", "-fp4", "-mxfp4", "-fp8-dynamic"};
  const std::string small = lower(name);
  for (const std::string_view ending : kEndings) {
    if (!small.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    return true;
  }
  return false;
}

std::vector<std::string> spellings_of(std::string_view written) {
  std::vector<std::string> names{std::string(written)};
  for (std::string name(written); drop_ending(name);) names.push_back(name);
  // Another publisher stores the same network in another format.
  for (std::size_t i = 0, count = names.size(); i < count; ++i) {
    const std::size_t slash = names[i].find('/');
    if (slash != std::string::npos) names.push_back(names[i].substr(slash + 1));
  }
  return names;
}

// Benchmarks write "llama3.1-8b", "llama3_1-70b-fp8_dyn" and "LLaMA-7B" for what a publisher names
// in full.
std::string short_name(std::string_view written) {
  std::string name = lower(written);
  // TensorRT-LLM's first tables and MLPerf.
  if (name == "llama-7b") return "meta-llama/Llama-2-7b-hf";
  if (name == "llama-70b" || name.starts_with("llama2-70b")) return "meta-llama/Llama-2-70b-hf";
  for (const std::string_view ending : {"-edge", "-fp8_", "-99"}) {
    if (const auto at = name.find(ending); at != std::string::npos) name.resize(at);
  }
  std::replace(name.begin(), name.end(), '_', '.');
  if (name.starts_with("llama") && name.size() > 5 && std::isdigit(name[5]) != 0)
    name.insert(5, 1, '-');
  if (name.starts_with("mixtral")) name += "-v0.1";
  return name;
}

// Words of a GPU's name that tell memory, maker or casing, not which GPU it is.
bool is_decoration(std::string_view word) {
  constexpr std::array<std::string_view, 11> kWords{
      "nvidia",  "amd",         "instinct", "geforce", "blackwell", "server",
      "edition", "virtualized", "cts",      "nps1",    "spx"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  return word.ends_with("gb") || word.starts_with("hbm") || word == "750w";
}

std::string gpu_name(std::string_view written) {
  std::string joined, word;
  const auto end_word = [&] {
    if (!word.empty() && !is_decoration(word)) joined += (joined.empty() ? "" : "_") + word;
    word.clear();
  };
  for (const char c : lower(written)) {
    if (c == ' ' || c == '-' || c == '_')
      end_word();
    else
      word += c;
  }
  end_word();
  return joined;
}

// An engine falls back to one scale a tensor where shards do not hold whole blocks.
Precision fp8_of_experts(const catalog::ModelCard& model, const perf::Parallelism& widths,
                         Precision wanted) {
  const catalog::Experts* experts = model.experts();
  if (wanted != Precision::Fp8Block || experts == nullptr) return wanted;
  const std::uint32_t block = model.precision.block > 0 ? model.precision.block : 128;
  return (experts->width / widths.moe_tensor) % block == 0 ? wanted : Precision::Fp8;
}

// As the published runs had it: a narrow cache goes with 4-bit weights and on Blackwell, where the
// kernels for it are; on Hopper SGLang keeps bfloat16 (realdata.md 2.5: 70,272 bytes a token of
// R1), and so does vLLM for mixtures whose checkpoint says nothing (the rows of MiniMax-M2.5 on
// H100 that fill the memory).
Precision kv_of(const catalog::ModelCard& model, EngineKind engine, bool blackwell,
                Precision narrowest) {
  if (narrowest == Precision::Bfloat16) return Precision::Bfloat16;
  if (narrowest == Precision::Mxfp4 && !blackwell) return Precision::Bfloat16;
  const bool latent = model.mixer<catalog::LatentAttention>() != nullptr;
  if (engine == EngineKind::Sglang)
    return blackwell && latent ? Precision::Fp8 : Precision::Bfloat16;
  if (engine == EngineKind::Vllm && !blackwell && model.experts() != nullptr && !latent)
    return Precision::Bfloat16;
  return Precision::Fp8;
}

// Checkpoints of mixtures quantise their routed experts only (accuracy-notes.md 1.6).
perf::Precisions fp4_precisions(bool has_experts, Precision kv_cache) {
  const Precision rest = has_experts ? Precision::Bfloat16 : Precision::Nvfp4;
  return {.attention = rest,
          .dense = rest,
          .shared_experts = Precision::Bfloat16,
          .experts = Precision::Nvfp4,
          .kv_cache = kv_cache};
}

}  // namespace

Answerable<catalog::ModelCard> model_of(std::string_view written) {
  for (const std::string& name : spellings_of(written)) {
    if (auto card = catalog::find_model(name)) return std::move(*card);
  }
  if (auto card = catalog::find_model(short_name(written))) return std::move(*card);
  return tl::unexpected(fmt::format("no card of model {}", written));
}

Answerable<catalog::SystemCard> system_of(std::string_view written) {
  const std::string name = gpu_name(written);
  for (const std::string_view form : {"", "_sxm", "_server"}) {
    if (auto card = catalog::find_system(name + std::string(form))) return std::move(*card);
  }
  return tl::unexpected(written.empty() ? std::string("no system is named")
                                        : fmt::format("no card of system {}", written));
}

Answerable<perf::Precisions> precisions_of(const MeasuredRow& row, const catalog::ModelCard& model,
                                           const catalog::SystemCard& system, EngineKind engine,
                                           const perf::Parallelism& widths) {
  const bool blackwell = system.sm.value_or(0) >= 100;
  const auto cache = [&](Precision narrowest) {
    return kv_of(model, engine, blackwell, narrowest);
  };
  std::string precision = lower(row.precision);
  // Submissions keep to the narrowest weights that the GPU multiplies.
  if (precision.empty() && row.is_submission)
    precision = system.flops_per_s.fp4 ? "fp4" : system.flops_per_s.fp8 ? "fp8" : "bf16";
  const catalog::WeightPrecision& own = model.precision;
  const bool has_experts = model.experts() != nullptr;
  if (precision.empty() || precision.starts_with("mxfp4") ||
      (precision == "fp4" && own.experts == Precision::Mxfp4 && has_experts)) {
    perf::Precisions published = perf::precisions_of(model);
    published.experts = fp8_of_experts(model, widths, published.experts);
    published.kv_cache =
        cache(published.experts == Precision::Mxfp4 ? Precision::Mxfp4 : published.dense);
    return published;
  }
  if (precision == "bf16" || precision == "fp16" || precision == "bfloat16")
    return perf::Precisions{};
  if (precision == "fp8") {
    const bool by_block =
        own.attention == Precision::Fp8Block || row.linear_precision == "fp8_block";
    const Precision fp8 = by_block ? Precision::Fp8Block : Precision::Fp8;
    // Llama 4 is published with its routed experts quantised and nothing else.
    if (model.architecture.starts_with("Llama4"))
      return perf::Precisions{.experts = fp8, .kv_cache = cache(fp8)};
    return perf::Precisions{.attention = fp8,
                            .dense = fp8,
                            .shared_experts = fp8,
                            .experts = fp8_of_experts(model, widths, fp8),
                            .kv_cache = cache(fp8)};
  }
  if (precision == "fp4" || precision == "nvfp4")
    return fp4_precisions(has_experts, cache(Precision::Nvfp4));
  return tl::unexpected(fmt::format("unknown precision {}", row.precision));
}

}  // namespace servecast::fit
