// SPDX-License-Identifier: Apache-2.0
#include "fit/identify.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
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

// Words of a GPU's name that tell memory, maker or casing, not which GPU it is.
bool is_decoration(std::string_view word) {
  constexpr std::array<std::string_view, 6> kWords{"nvidia",    "amd",    "instinct",
                                                   "blackwell", "server", "edition"};
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return true;
  return word.ends_with("gb") || word.starts_with("hbm");
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

bool is_fp8(Precision precision) {
  return precision == Precision::Fp8 || precision == Precision::Fp8Block;
}

// An engine falls back to one scale a tensor where shards do not hold whole blocks.
Precision fp8_of_experts(const catalog::ModelCard& model, const perf::Parallelism& widths,
                         Precision wanted) {
  if (wanted != Precision::Fp8Block || !model.experts) return wanted;
  const std::uint32_t block = model.weights.block > 0 ? model.weights.block : 128;
  return (model.experts->intermediate / widths.moe_tensor) % block == 0 ? wanted : Precision::Fp8;
}

// FP8 weights of SGLang go with a bfloat16 cache (realdata.md 2.5: 70,272 bytes a token of R1).
Precision kv_of(EngineKind engine, Precision narrowest) {
  if (narrowest == Precision::Nvfp4) return Precision::Fp8;
  return is_fp8(narrowest) && engine != EngineKind::Sglang ? Precision::Fp8 : Precision::Bfloat16;
}

}  // namespace

Answerable<catalog::ModelCard> model_of(std::string_view written) {
  for (const std::string& name : spellings_of(written)) {
    if (auto card = catalog::find_model(name)) return std::move(*card);
  }
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
                                           EngineKind engine, const perf::Parallelism& widths) {
  const std::string precision = lower(row.precision);
  const catalog::WeightPrecision& own = model.weights;
  if (precision.empty() || precision.starts_with("mxfp4") ||
      (precision == "fp4" && own.experts == Precision::Mxfp4 && model.experts)) {
    perf::Precisions published = perf::precisions_of(model);
    published.experts = fp8_of_experts(model, widths, published.experts);
    published.kv_cache = kv_of(engine, published.linear);
    return published;
  }
  if (precision == "bf16" || precision == "fp16" || precision == "bfloat16")
    return perf::Precisions{};
  if (precision == "fp8") {
    const bool by_block = own.linear == Precision::Fp8Block || row.linear_precision == "fp8_block";
    const Precision fp8 = by_block ? Precision::Fp8Block : Precision::Fp8;
    return perf::Precisions{.linear = fp8,
                            .experts = fp8_of_experts(model, widths, fp8),
                            .kv_cache = kv_of(engine, fp8)};
  }
  if (precision == "fp4" || precision == "nvfp4")
    return perf::Precisions{.linear = model.experts ? Precision::Bfloat16 : Precision::Nvfp4,
                            .experts = Precision::Nvfp4,
                            .kv_cache = kv_of(engine, Precision::Nvfp4)};
  return tl::unexpected(fmt::format("unknown precision {}", row.precision));
}

}  // namespace servecast::fit
