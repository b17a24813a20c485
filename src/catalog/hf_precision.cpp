// SPDX-License-Identifier: Apache-2.0
// How a checkpoint stores its weights (perfmodel.md 2.2, annex A).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "catalog/hf_categories.hpp"
#include "catalog/hf_json.hpp"

namespace servecast::catalog {
namespace {

Precision& of(WeightPrecision& p, Category category) {
  switch (category) {
    case Category::Attention:
      return p.attention;
    case Category::Dense:
      return p.dense;
    case Category::SharedExperts:
      return p.shared_experts;
    case Category::Experts:
      return p.experts;
    case Category::Head:
      break;
  }
  return p.head;
}

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!out.empty() && is_space(out.back())) out.pop_back();
  while (!out.empty() && is_space(out.front())) out.erase(out.begin());
  return out;
}

class Reader {
 public:
  Reader(HfConfig& at, const HfJson* hf, ModelCard& card) : at_(at), card_(card) {
    if (hf != nullptr) hf_ = HfConfig::find_in(*hf, {"quantization"});
    if (hf != nullptr && hf_ == nullptr) hf_ = hf;
    config_ = HfConfig::find_in(at.root(), {"quantization_config"});
    if (config_ == nullptr) config_ = at.find({"quantization_config"});
    if (config_ != nullptr && !config_->is_object()) config_ = nullptr;
  }

  void read() {
    const std::string algorithm = algorithm_name();
    read_block();
    if (algorithm == "compressed-tensors")
      compressed_tensors();
    else if (algorithm == "mixed_precision")
      mixed();
    else
      uniform(algorithm);
    if (const HfJson* dtype = at_.find({"expert_dtype"}); card_.family == Family::DeepSeekV4 &&
                                                          dtype != nullptr && *dtype == "fp4" &&
                                                          precision().experts != Precision::Nvfp4)
      precision().experts = Precision::Mxfp4Mxfp8;
    drop_absent();
    kv_cache(algorithm);
  }

 private:
  WeightPrecision& precision() { return card_.precision; }

  static std::string text(const HfJson* object, HfConfig::Keys keys) {
    const HfJson* value = object != nullptr ? HfConfig::find_in(*object, keys) : nullptr;
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string{};
  }

  static std::uint64_t whole(const HfJson& object, const char* key, std::uint64_t otherwise) {
    const HfJson* value = HfConfig::find_in(object, {key});
    return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>()
                                                           : otherwise;
  }

  // Empty for a checkpoint that is not quantised.
  std::string algorithm_name() {
    std::string name = lower(text(hf_, {"quant_algo"}));
    if (name.empty())
      name = lower(text(config_, {"quant_algo", "quant_method", "quantization_method"}));
    if (name.starts_with("mixed") || name == "mixedprecision") return "mixed_precision";
    if (name == "w4a16_mxfp4") return "mxfp4";
    if (name == "fp8_pb_wo" || name == "fp8_block_scales") return "fp8_block";
    if (name == "fp8" && config_ != nullptr && HfConfig::find_in(*config_, {"weight_block_size"}))
      return "fp8_block";
    return name;
  }

  void read_block() {
    const HfJson* block =
        config_ != nullptr ? HfConfig::find_in(*config_, {"weight_block_size"}) : nullptr;
    if (block != nullptr && block->is_array() && !block->empty() &&
        block->front().is_number_unsigned())
      block_ = block->front().get<std::uint32_t>();
  }

  bool is_dynamic() const {
    if (config_ == nullptr) return false;
    const std::string scheme = lower(text(config_, {"activation_scheme"}));
    if (scheme == "dynamic" || scheme == "static") return scheme == "dynamic";
    const HfJson* groups = HfConfig::find_in(*config_, {"config_groups"});
    if (groups == nullptr || !groups->is_object()) return false;
    for (const HfJson& group : *groups) {
      for (const char* part : {"input_activations", "weights"}) {
        const HfJson* inner = HfConfig::find_in(group, {part});
        const HfJson* dynamic = inner != nullptr ? HfConfig::find_in(*inner, {"dynamic"}) : nullptr;
        if (dynamic != nullptr && *dynamic == true) return true;
      }
    }
    return false;
  }

  std::vector<std::string> patterns() const {
    std::vector<std::string> list;
    for (const HfJson* object : {config_, hf_}) {
      if (object == nullptr) continue;
      for (const char* key : {"modules_to_not_convert", "exclude_modules", "ignore"}) {
        const HfJson* found = HfConfig::find_in(*object, {key});
        if (found == nullptr || !found->is_array()) continue;
        for (const HfJson& item : *found) {
          if (item.is_string()) list.push_back(item.get<std::string>());
        }
      }
    }
    return list;
  }

  void set_all(Precision gemm, Precision experts) {
    precision().attention = precision().dense = precision().shared_experts = gemm;
    precision().experts = experts;
  }
  void exclude() {
    for (const Category category : excluded(patterns(), card_))
      of(precision(), category) = Precision::Bfloat16;
  }

  // What one name of an algorithm stands for; nothing when it is none.
  std::optional<std::pair<Precision, Precision>> modes(const std::string& name) const {
    using P = Precision;
    const P fp8 = is_dynamic() ? P::Fp8 : P::Fp8Static;
    const std::map<std::string, std::pair<P, P>> known{
        {"fp8", {fp8, P::Fp8}},
        {"fp8_block", {P::Fp8Block, P::Fp8Block}},
        {"mxfp8", {P::Mxfp8, P::Mxfp8}},
        {"nvfp4", {P::Nvfp4, P::Nvfp4}},
        {"w4a16_nvfp4", {P::Nvfp4Weights, P::Nvfp4Weights}},
        {"mxfp4", {P::Bfloat16, P::Mxfp4}},
        {"w4a8_mxfp4_mxfp8", {P::Bfloat16, P::Mxfp4Mxfp8}},
        {"w4afp8", {P::Fp8Block, P::Int4Fp8}},
        {"w4a8_awq", {P::Int4Fp8, P::Int4Fp8}},
        {"int8", {P::Int8, P::Int8}},
        {"w8a16", {P::Int8, P::Int8}},
        {"int4", {P::Int4, P::Int4}},
        {"w4a16", {P::Int4, P::Int4}},
        {"w4a16_awq", {P::Int4, P::Int4}},
        {"int4_awq", {P::Int4, P::Int4}}};
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }

  void uniform(std::string name) {
    if (name.empty() || name == "none") return;
    if (name == "awq" || name == "gptq") {  // say their width apart
      const HfJson* bits =
          config_ != nullptr ? HfConfig::find_in(*config_, {"bits", "w_bit"}) : nullptr;
      name = bits != nullptr && *bits == 8 ? "int8" : "int4";
    }
    const auto found = modes(name);
    if (!found) return unsupported(name);
    set_all(found->first, found->second);
    exclude();
  }

  void unsupported(const std::string& name) {
    at_.problem("model.quantization",
                fmt::format("unsupported quantization algorithm {}; known are fp8, fp8_block, "
                            "mxfp8, nvfp4, w4a16_nvfp4, mxfp4, w4a8_mxfp4_mxfp8, w4afp8, w4a8_awq, "
                            "int8, int4, w4a16, awq, gptq, compressed-tensors, mixed_precision",
                            name));
  }

  void compressed_tensors() {
    const HfJson* groups =
        config_ != nullptr ? HfConfig::find_in(*config_, {"config_groups"}) : nullptr;
    const HfJson* weights = nullptr;
    if (groups != nullptr && groups->is_object()) {
      for (const HfJson& group : *groups) {
        if (weights == nullptr) weights = HfConfig::find_in(group, {"weights"});
      }
    }
    if (weights == nullptr || !weights->is_object())
      return at_.problem("model.quantization",
                         "compressed-tensors: no group of config_groups has weights");
    const std::string type = lower(text(weights, {"type"}));
    const std::uint64_t bits = whole(*weights, "num_bits", 0);
    const bool blocks = lower(text(weights, {"strategy"})) == "block" ||
                        HfConfig::find_in(*weights, {"block_structure"}) != nullptr;
    if (type == "int" && bits == 4)
      set_all(Precision::Int4, Precision::Int4);
    else if (type == "int" && bits == 8)
      set_all(Precision::Int8, Precision::Int8);
    else if (type == "float" && bits == 8)
      set_all(blocks ? Precision::Fp8Block : Precision::Fp8,
              blocks ? Precision::Fp8Block : Precision::Fp8);
    else if (type == "float" && bits == 4)
      set_all(Precision::Mxfp4, Precision::Mxfp4);
    else
      at_.problem(
          "model.quantization",
          fmt::format("compressed-tensors: weights of type {} with {} bits; known are int 4 "
                      "and 8, float 4 and 8",
                      type, bits));
    exclude();
  }

  // A map from modules to algorithms. What it does not name stays in the checkpoint's fp8, or in
  // bfloat16. Of a category the algorithm that most of its modules have.
  void mixed() {
    if (lower(text(config_, {"quant_method"})) == "fp8") {
      const Precision base = block_ > 0     ? Precision::Fp8Block
                             : is_dynamic() ? Precision::Fp8
                                            : Precision::Fp8Static;
      set_all(base, base);
    }
    std::map<Category, std::map<std::string, int>> votes;
    for (const HfJson* object : {hf_, config_}) {
      const HfJson* map =
          object != nullptr ? HfConfig::find_in(*object, {"quantized_layers"}) : nullptr;
      if (map == nullptr || !map->is_object()) continue;
      for (const auto& [module, entry] : map->items()) {
        const auto category = category_of(module);
        if (category && entry.is_object()) ++votes[*category][lower(text(&entry, {"quant_algo"}))];
      }
      break;
    }
    if (const std::string experts = lower(text(config_, {"moe_quant_algo"})); !experts.empty())
      ++votes[Category::Experts][experts];
    for (const auto& [category, counts] : votes) {
      const auto most =
          std::max_element(counts.begin(), counts.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const auto found = modes(most->first);
      if (!found) return unsupported(most->first);
      of(precision(), category) = category == Category::Experts ? found->second : found->first;
    }
    if (votes.empty())
      at_.problem("model.quantization", "mixed_precision without a map quantized_layers");
  }

  // A category that no layer has keeps the neutral value.
  void drop_absent() {
    for (const Category category : kCategories) {
      if (category == Category::Head) continue;
      bool used = false;
      for (std::uint32_t layer = 0; layer < card_.layers(); ++layer)
        used = used || has_category(card_, layer, category);
      if (!used) of(precision(), category) = Precision::Bfloat16;
    }
    const bool blocks = std::any_of(kCategories.begin(), kCategories.end(), [&](Category category) {
      return of(precision(), category) == Precision::Fp8Block;
    });
    if (blocks) precision().block = block_ > 0 ? block_ : 128;
  }

  void kv_cache(const std::string& algorithm) {
    const bool fp8_algorithm =
        algorithm == "fp8" || algorithm == "fp8_block" || algorithm == "nvfp4";
    const bool fp8 = kv_is_fp8();
    precision().attention_math_fp8 = fp8_algorithm || fp8;
    if (fp8 || fp8_algorithm || card_.family == Family::DeepSeekV4)
      precision().kv_cache = Precision::Fp8;
  }

  bool kv_is_fp8() {
    const HfJson* value =
        hf_ != nullptr ? HfConfig::find_in(*hf_, {"kv_cache_quant_algo"}) : nullptr;
    if (value == nullptr && config_ != nullptr)
      value = HfConfig::find_in(*config_, {"kv_cache_quant_algo", "kv_cache_quant_method",
                                           "kv_cache_dtype", "kv_cache_scheme"});
    if (value == nullptr) return false;
    if (value->is_object()) {
      const std::string type = lower(text(value, {"type"}));
      return type.find("fp8") != std::string::npos ||
             (type == "float" && whole(*value, "num_bits", 16) <= 8);
    }
    const std::string name = value->is_string() ? lower(value->get<std::string>()) : value->dump();
    for (const char* known : {"fp8", "e4m3", "e5m2", "fp8_e4m3", "fp8_e5m2"}) {
      if (name == known) return true;
    }
    for (const char* known : {"fp16", "float16", "bf16", "bfloat16", "auto"}) {
      if (name == known) return false;
    }
    at_.problem("model.quantization",
                fmt::format("unsupported precision {} of the KV cache; known are fp8, e4m3, e5m2, "
                            "fp16, bfloat16",
                            name));
    return false;
  }

  HfConfig& at_;
  ModelCard& card_;
  const HfJson* hf_ = nullptr;
  const HfJson* config_ = nullptr;
  std::uint32_t block_ = 0;
};

}  // namespace

void read_precision(HfConfig& at, const HfJson* hf_quant_config, ModelCard& card) {
  Reader(at, hf_quant_config, card).read();
}

}  // namespace servecast::catalog
