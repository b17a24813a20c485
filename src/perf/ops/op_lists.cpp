// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/op_lists.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servecast::perf {
namespace {

constexpr std::string_view kStrongSkew = "power_law_1.2";
constexpr std::string_view kModerateSkew = "power_law_1.01";
// DeepSeek's latent attention, which its module tables assume.
constexpr std::int64_t kQuery = 192, kKeyValue = 256, kValue = 128;

// Builds one phase's list; knows the model, its sharding and how often a layer's operators run.
class Builder {
 public:
  Builder(const ModelFacts& facts, const Sharding& sharding, const OpModes& modes,
          const ListSettings& settings, Phase phase)
      : f_(facts), s_(sharding), m_(modes), set_(settings), phase_(phase) {
    const auto layers = static_cast<double>(f_.layers);
    // A draft model's layer runs once for each draft token beside the model's own.
    repeat_ = phase == Phase::Generation && settings.draft_tokens > 0
                  ? (static_cast<double>(settings.draft_tokens) + layers) / layers
                  : 1.0;
  }

  OpList build() {
    switch (f_.family) {
      case Family::Dense:
        dense();
        break;
      case Family::Experts:
        routed();
        break;
      case Family::LatentExperts:
      case Family::SparseExperts:
        latent();
        break;
    }
    return std::move(list_);
  }

 private:
  bool context() const { return phase_ == Phase::Context; }
  double layers() const { return static_cast<double>(f_.layers); }
  std::int64_t kv_heads() const { return (f_.kv_heads + s_.tp - 1) / s_.tp; }
  std::int64_t heads() const { return f_.heads / s_.tp; }

  void add(OpList& list, std::string name, Op op, double times,
           TokensFrom tokens = TokensFrom::Tokens) const {
    list.push_back({std::move(name), std::move(op), times * repeat_, tokens});
  }
  void add(std::string name, Op op, double times, TokensFrom tokens = TokensFrom::Tokens) {
    add(list_, std::move(name), std::move(op), times, tokens);
  }

  Gemm gemm(std::int64_t n, std::int64_t k, bool quantised = false) const {
    return {.n = n, .k = k, .quant = m_.gemm, .input_is_quantised = quantised};
  }
  void norm(std::string name) {
    add(std::move(name), Elementwise{.in = 2 * f_.hidden, .out = 2 * f_.hidden}, layers());
  }
  Op all_reduce() const { return CustomAllReduce{.ranks = s_.tp, .width = f_.hidden}; }

  void embedding() {
    add("embedding", Embedding{.width = f_.hidden}, 1.0);
    add("embedding_all_reduce", all_reduce(), 1.0);
  }
  void logits() {
    add("logits", Gemm{.n = f_.vocab / s_.tp, .k = f_.hidden}, 1.0, TokensFrom::Sequences);
  }
  void pipeline() {
    add("peer_to_peer", PeerToPeer{.width = f_.hidden}, static_cast<double>(s_.pp - 1));
  }

  Op attention(std::int64_t window) const {
    if (context())
      return ContextAttention{.heads = heads(),
                              .kv_heads = kv_heads(),
                              .head_dim = f_.head_dim,
                              .window = window,
                              .math = m_.attention,
                              .kv = m_.kv,
                              .qk_norm = f_.qk_norm};
    return GenerationAttention{.heads = heads(),
                               .kv_heads = kv_heads(),
                               .head_dim = f_.head_dim,
                               .window = window,
                               .kv = m_.kv};
  }

  void grouped_attention() {
    const std::int64_t wide = f_.heads * f_.head_dim / s_.tp;
    add("qkv", gemm(wide + 2 * f_.head_dim * kv_heads(), f_.hidden), layers());
    const auto windowed = static_cast<double>(f_.windowed_layers);
    if (f_.windowed_layers > 0) add("attention_window", attention(f_.window), windowed);
    if (f_.windowed_layers < f_.layers) add("attention", attention(0), layers() - windowed);
    add("projection", gemm(f_.hidden, wide, true), layers());
  }

  void dense() {
    embedding();
    norm("norm_attention");
    grouped_attention();
    norm("norm_feed_forward");
    const std::int64_t inter = f_.inter / s_.tp;
    add("gate_up", gemm(2 * inter, f_.hidden), layers());
    add("activation", Elementwise{.in = 2 * inter, .out = inter}, layers());
    add("down", gemm(f_.hidden, inter), layers());
    logits();
    add("all_reduce_attention", all_reduce(), layers());
    add("all_reduce_feed_forward", all_reduce(), layers());
    pipeline();
  }

  Dispatch dispatch(bool before) const {
    return {.engine = set_.engine,
            .phase = phase_,
            .before = before,
            .width = f_.hidden,
            .moe_tp = s_.moe_tp,
            .moe_ep = s_.moe_ep,
            .attention_dp = s_.dp,
            .quant = m_.experts};
  }

  void experts(OpList& list, double times, std::string_view skew) const {
    add(list, "router", Gemm{.n = f_.experts, .k = f_.hidden}, times);
    add(list, "dispatch", dispatch(true), times);
    add(list, "experts",
        Experts{.hidden = f_.hidden,
                .inter = f_.expert_inter,
                .topk = f_.topk,
                .experts = f_.experts,
                .tp = s_.moe_tp,
                .ep = s_.moe_ep,
                .quant = m_.experts,
                .distribution = std::string(skew),
                .attention_dp = s_.dp},
        times);
    add(list, "combine", dispatch(false), times);
  }

  void routed() {
    embedding();
    norm("norm_attention");
    grouped_attention();
    norm("norm_feed_forward");
    experts(list_, layers(), kStrongSkew);
    if (!context() || !set_.parity) logits();
    pipeline();
  }

  OpList latent_module() const {
    OpList list;
    if (context())
      add(list, "attention",
          MlaContext{
              .heads = heads(), .math = m_.attention, .kv = m_.kv, .module = true, .gemm = m_.gemm},
          layers());
    else
      add(list, "attention",
          MlaGeneration{.heads = heads(), .kv = m_.kv, .module = true, .gemm = m_.gemm}, layers());
    return list;
  }

  OpList latent_parts() const {
    OpList list;
    add(list, "downscale", gemm(f_.q_lora + f_.kv_lora + f_.rope, f_.hidden), layers());
    add(list, "q_b", gemm(heads() * kQuery, f_.q_lora), layers());
    if (context()) {
      add(list, "kv_b", gemm(heads() * kKeyValue, f_.kv_lora), layers());
      if (set_.engine == catalog::EngineKind::Vllm)
        add(list, "attention",
            ContextAttention{.heads = heads(),
                             .kv_heads = heads(),
                             .head_dim = kValue,
                             .math = m_.attention,
                             .kv = m_.kv},
            layers());
      else
        add(list, "attention", MlaContext{.heads = heads(), .math = m_.attention, .kv = m_.kv},
            layers());
    } else {
      add(list, "absorb_before", MlaBmm{.heads = heads(), .quant = m_.gemm, .pre = true}, layers());
      add(list, "attention", MlaGeneration{.heads = heads(), .kv = m_.kv}, layers());
      add(list, "absorb_after", MlaBmm{.heads = heads(), .quant = m_.gemm, .pre = false}, layers());
    }
    add(list, "projection", gemm(f_.hidden, heads() * kValue, true), layers());
    return list;
  }

  void sparse_attention() {
    const auto module = [&](bool skip) {
      return DsaModule{.phase = phase_,
                       .architecture = f_.architecture,
                       .heads = heads(),
                       .hidden = f_.hidden,
                       .q_lora = f_.q_lora,
                       .kv_lora = f_.kv_lora,
                       .rope = f_.rope,
                       .nope = f_.nope,
                       .v = f_.v,
                       .index_heads = f_.index_heads,
                       .index_dim = f_.index_dim,
                       .topk = f_.index_topk,
                       .gemm = m_.gemm,
                       .math = m_.attention,
                       .kv = m_.kv,
                       .skip_indexer = skip};
    };
    add("attention", module(false), layers() * f_.own_indexer_share);
    if (f_.own_indexer_share < 1.0)
      add("attention_reusing", module(true), layers() * (1.0 - f_.own_indexer_share));
  }

  OpList shared_expert(double times) const {
    // In parity, beside sparse attention, every rank is taken to hold the whole shared expert.
    const bool whole = set_.parity && f_.family == Family::SparseExperts;
    const std::int64_t inter =
        f_.expert_inter * std::max<std::int64_t>(1, f_.shared_experts) / (whole ? 1 : s_.tp);
    OpList list;
    add(list, "shared_gate_up", gemm(2 * inter, f_.hidden), times);
    add(list, "shared_activation", Elementwise{.in = 2 * inter, .out = inter}, times);
    add(list, "shared_down", gemm(f_.hidden, inter), times);
    return list;
  }

  void leading_dense() {
    const auto times = static_cast<double>(f_.dense_layers);
    const std::int64_t inter = f_.inter / s_.tp;
    add("gate_up", gemm(2 * inter, f_.hidden), times);
    add("activation", Elementwise{.in = 2 * inter, .out = inter}, times);
    add("down", gemm(f_.hidden, inter), times);
  }

  void latent() {
    add("embedding", Embedding{.width = f_.hidden}, 1.0);
    norm("norm_attention");
    if (f_.family == Family::SparseExperts)
      sparse_attention();
    else
      list_.push_back({"attention_block", Fallback{latent_module(), latent_parts()}});
    norm("norm_feed_forward");
    const bool split = !set_.parity && f_.dense_layers > 0 && f_.inter > 0;
    const double times = layers() - (split ? static_cast<double>(f_.dense_layers) : 0.0);
    if (split) leading_dense();
    OpList routed;
    experts(routed, times, kModerateSkew);
    OpList shared = shared_expert(times);
    if (context()) {
      list_.insert(list_.end(), shared.begin(), shared.end());
      list_.insert(list_.end(), routed.begin(), routed.end());
    } else {  // on two streams
      list_.push_back({"experts", Overlap{std::move(routed), std::move(shared)}});
    }
    logits();
    pipeline();
    // The public estimators add two all-reduces a layer to those that dispatch and combine consist
    // of; the engine runs one after attention and one after the experts.
    const bool twice = set_.parity && f_.family == Family::LatentExperts &&
                       set_.engine == catalog::EngineKind::Vllm;
    if (twice) add("all_reduce", all_reduce(), 2.0 * layers());
  }

  const ModelFacts& f_;
  const Sharding& s_;
  const OpModes& m_;
  const ListSettings& set_;
  Phase phase_;
  double repeat_ = 1.0;
  OpList list_;
};

void require(Problems& problems, bool holds, std::string message) {
  if (holds) return;
  problems.push_back({.code = "placement.invalid_sharding",
                      .message = std::move(message),
                      .place = {},
                      .hint = "choose group sizes that divide the model's counts"});
}

}  // namespace

Result<OpLists> op_lists(const ModelFacts& facts, const Sharding& sharding, const OpModes& modes,
                         const ListSettings& settings) {
  Problems problems;
  require(problems, facts.heads % sharding.tp == 0,
          fmt::format("{} attention heads do not divide over {} ranks", facts.heads, sharding.tp));
  if (facts.family != Family::Dense) {
    require(problems, sharding.tp * sharding.dp == sharding.moe_tp * sharding.moe_ep,
            fmt::format("attention takes {} x {} ranks, experts take {} x {}", sharding.tp,
                        sharding.dp, sharding.moe_tp, sharding.moe_ep));
    require(problems, facts.experts >= sharding.moe_ep,
            fmt::format("{} experts on {} ranks", facts.experts, sharding.moe_ep));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return OpLists{Builder(facts, sharding, modes, settings, Phase::Context).build(),
                 Builder(facts, sharding, modes, settings, Phase::Generation).build()};
}

}  // namespace servecast::perf
