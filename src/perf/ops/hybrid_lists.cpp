// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/hybrid_lists.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servecast::perf {
namespace {

constexpr std::string_view kStrongSkew = "power_law_1.2";
constexpr std::string_view kModerateSkew = "power_law_1.01";
constexpr std::int64_t kRouterFromExperts = 128;  // with fewer, Qwen3.5's kernel routes itself

double real(std::int64_t x) {
  return static_cast<double>(x);
}

struct Attention {
  std::int64_t kv_heads = 0, head_dim = 0, window = 0;
  bool gates_output = false;  // the query projection is twice as wide
};

// Builds one phase's list; knows the model, its sharding and how often a layer's operators run.
class Builder {
 public:
  Builder(const HybridFacts& facts, const Sharding& sharding, const OpModes& modes,
          const ListSettings& settings, Phase phase)
      : f_(facts), s_(sharding), m_(modes), set_(settings), phase_(phase) {
    const bool drafts = phase == Phase::Generation && settings.draft_tokens > 0;
    if (drafts) repeat_ = real(settings.draft_tokens + f_.layers) / real(f_.layers);
  }

  OpList build() {
    switch (f_.family) {
      case HybridFamily::Gpt:
        gpt();
        break;
      case HybridFamily::Mamba:
        mamba();
        break;
      case HybridFamily::GatedDelta:
        gated_delta();
        break;
      case HybridFamily::Interleaved:
        interleaved();
        break;
    }
    return std::move(list_);
  }

 private:
  void add(std::string name, Op op, std::int64_t times, TokensFrom tokens = TokensFrom::Tokens) {
    if (times > 0) list_.push_back({std::move(name), std::move(op), real(times) * repeat_, tokens});
  }
  void norm(std::string name, std::int64_t times) {
    add(std::move(name), Elementwise{.in = 2 * f_.hidden, .out = 2 * f_.hidden}, times);
  }
  Gemm gemm(std::int64_t n, std::int64_t k, bool quantised = false) const {
    return {.n = n, .k = k, .quant = m_.gemm, .input_is_quantised = quantised};
  }
  void all_reduce(std::string name, std::int64_t times) {
    add(std::move(name), CustomAllReduce{.ranks = s_.tp, .width = f_.hidden}, times);
  }
  void embedding() { add("embedding", Embedding{.width = f_.hidden}, 1); }
  void head() {
    add("logits", Gemm{.n = f_.vocab / s_.tp, .k = f_.hidden}, 1, TokensFrom::Sequences);
    add("peer_to_peer", PeerToPeer{.width = f_.hidden}, s_.pp - 1);
  }

  Op attention(const Attention& kind, std::int64_t kv_heads) const {
    const std::int64_t heads = f_.heads / s_.tp;
    if (phase_ == Phase::Context)
      return ContextAttention{.heads = heads,
                              .kv_heads = kv_heads,
                              .head_dim = kind.head_dim,
                              .window = kind.window,
                              .math = m_.attention,
                              .kv = m_.kv,
                              .qk_norm = f_.qk_norm};
    return GenerationAttention{.heads = heads,
                               .kv_heads = kv_heads,
                               .head_dim = kind.head_dim,
                               .window = kind.window,
                               .kv = m_.kv};
  }

  void attend(const Attention& kind, std::int64_t times) {
    const std::int64_t value = f_.value_dim > 0 ? f_.value_dim : kind.head_dim;
    const std::int64_t query = f_.heads * kind.head_dim / s_.tp;
    const std::int64_t kv_heads = (kind.kv_heads + s_.tp - 1) / s_.tp;
    norm("norm_attention", times);
    add("qkv",
        gemm((kind.gates_output ? 2 : 1) * query + kv_heads * (kind.head_dim + value), f_.hidden),
        times);
    add(kind.window > 0 ? "attention_window" : "attention", attention(kind, kv_heads), times);
    add("projection", gemm(f_.hidden, f_.heads * value / s_.tp, true), times);
  }

  void feed_forward(const std::string& prefix, std::int64_t whole, std::int64_t times, bool gated) {
    const std::int64_t inter = whole / s_.tp;
    const std::int64_t up = gated ? 2 * inter : inter;
    add(prefix + (gated ? "gate_up" : "up"), gemm(up, f_.hidden), times);
    add(prefix + "activation", Elementwise{.in = up, .out = inter}, times);
    add(prefix + "down", gemm(f_.hidden, inter), times);
  }

  void router(std::int64_t times) { add("router", Gemm{.n = f_.experts, .k = f_.hidden}, times); }

  Dispatch dispatch(std::int64_t width, bool before) const {
    return {.engine = set_.engine,
            .phase = phase_,
            .before = before,
            .width = width,
            .moe_tp = s_.moe_tp,
            .moe_ep = s_.moe_ep,
            .attention_dp = s_.dp,
            .quant = m_.experts};
  }

  void experts(std::int64_t width, std::int64_t times, std::string_view skew, bool exchanges) {
    if (exchanges) add("dispatch", dispatch(width, true), times);
    add("experts",
        Experts{.hidden = width,
                .inter = f_.expert_inter,
                .topk = f_.topk,
                .experts = f_.experts,
                .tp = s_.moe_tp,
                .ep = s_.moe_ep,
                .quant = m_.experts,
                .distribution = std::string(skew),
                .gated = f_.gated_experts,
                .attention_dp = s_.dp},
        times);
    if (exchanges) add("combine", dispatch(width, false), times);
  }

  void gpt() {
    embedding();
    attend({.kv_heads = f_.kv_heads, .head_dim = f_.head_dim}, f_.layers);
    norm("norm_feed_forward", f_.layers);
    feed_forward("", f_.inter, f_.layers, false);
    all_reduce("all_reduce", 2 * f_.layers);
    head();
  }

  // Heads that a state-space kernel is asked for: the public estimators ask for the whole model's
  // on every rank.
  std::int64_t kernel_share(std::int64_t all) const {
    return set_.parity ? all : std::max<std::int64_t>(1, all / s_.tp);
  }

  void state_space(std::int64_t times) {
    const std::int64_t heads = f_.mamba_heads / s_.tp;
    const std::int64_t inner = heads * f_.mamba_head_dim;
    const std::int64_t groups = std::max<std::int64_t>(f_.groups / s_.tp, 1);
    norm("mamba_norm", times);
    add("mamba_in", gemm(2 * inner + 2 * groups * f_.state + heads, f_.hidden), times);
    Mamba2Kernel kernel{.part = Mamba2Kernel::Part::Convolution,
                        .phase = phase_,
                        .heads = kernel_share(f_.mamba_heads),
                        .head_dim = f_.mamba_head_dim,
                        .groups = kernel_share(f_.groups),
                        .state = f_.state,
                        .conv = f_.conv};
    add("mamba_convolution", kernel, times);
    kernel.part = Mamba2Kernel::Part::Scan;
    add("mamba_scan", kernel, times);
    add("mamba_out", gemm(f_.hidden, inner), times);
    all_reduce("mamba_all_reduce", times);
  }

  // Experts in a latent width where the model has one, beside those that every token passes.
  void latent_experts(std::int64_t times) {
    const std::int64_t shared = f_.shared_inter / s_.tp;
    const std::int64_t latent = f_.latent / s_.tp;
    norm("experts_norm", times);
    if (shared > 0) {
      add("shared_up", gemm(shared, f_.hidden), times);
      add("shared_activation", Elementwise{.in = shared, .out = shared}, times);
      add("shared_down", gemm(f_.hidden, shared, true), times);
    }
    router(times);
    if (latent > 0) add("latent_down", gemm(latent, f_.hidden), times);
    experts(f_.latent > 0 ? f_.latent : f_.hidden, times, kStrongSkew, true);
    if (latent > 0) add("latent_up", gemm(f_.hidden, latent), times);
    all_reduce("experts_all_reduce", times);
  }

  void mamba() {
    embedding();
    state_space(f_.mamba_layers);
    attend({.kv_heads = f_.kv_heads, .head_dim = f_.head_dim}, f_.attention_layers);
    all_reduce("attention_all_reduce", f_.attention_layers);
    if (f_.expert_layers > 0) latent_experts(f_.expert_layers);
    norm("norm_feed_forward", f_.dense_layers);
    feed_forward("", f_.inter, f_.dense_layers, false);
    all_reduce("feed_forward_all_reduce", f_.dense_layers);
    head();
  }

  void delta(std::int64_t times) {
    const std::int64_t keys = f_.linear_k_heads * f_.linear_k_dim;
    const std::int64_t values = f_.linear_v_heads * f_.linear_v_dim;
    norm("linear_norm", times);
    add("linear_in", gemm((2 * keys + 2 * values) / s_.tp, f_.hidden), times);
    add("linear_gates", gemm(2 * f_.linear_v_heads / s_.tp, f_.hidden), times);
    GdnKernel kernel{.part = GdnKernel::Part::Convolution,
                     .phase = phase_,
                     .k_heads = f_.linear_k_heads / s_.tp,
                     .k_dim = f_.linear_k_dim,
                     .v_heads = f_.linear_v_heads / s_.tp,
                     .v_dim = f_.linear_v_dim,
                     .conv = f_.conv};
    add("linear_convolution", kernel, times);
    kernel.part = GdnKernel::Part::Scan;
    add("linear_scan", kernel, times);
    add("linear_projection", gemm(f_.hidden, values / s_.tp, true), times);
  }

  void gated_delta() {
    const bool sglang = set_.engine == catalog::EngineKind::Sglang;
    const bool routes = f_.experts > 0;
    const std::int64_t full = f_.layers - f_.linear_layers;
    // SGLang's exchange of tokens between experts holds the all-reduce of attention.
    const bool reduces = !(routes && sglang && s_.dp > 1);
    embedding();
    all_reduce("embedding_all_reduce", 1);
    delta(f_.linear_layers);
    if (reduces) all_reduce("linear_all_reduce", f_.linear_layers);
    attend({.kv_heads = f_.kv_heads, .head_dim = f_.head_dim, .gates_output = true}, full);
    if (reduces) all_reduce("attention_all_reduce", full);
    norm("norm_feed_forward", f_.layers);
    if (routes) {
      if (f_.experts >= kRouterFromExperts) router(f_.layers);
      experts(f_.hidden, f_.layers, kStrongSkew, !sglang || s_.dp > 1);
      if (f_.shared_inter > 0) feed_forward("shared_", f_.shared_inter, f_.layers, true);
      // SGLang has the scalar gate in another kernel.
      if (f_.shared_inter > 0 && !sglang)
        add("shared_gate", Gemm{.n = 1, .k = f_.hidden}, f_.layers);
    } else {
      feed_forward("", f_.inter, f_.layers, true);
      all_reduce("feed_forward_all_reduce", f_.layers);
    }
    head();
  }

  void interleaved_layers(const Attention& kind, std::int64_t routed, std::int64_t dense) {
    attend(kind, routed + dense);
    norm("norm_feed_forward", routed + dense);
    if (routed > 0) {
      router(routed);
      experts(f_.hidden, routed, kModerateSkew, true);
    }
    feed_forward("", f_.inter, dense, true);
    // The public estimators price no all-reduce of a dense layer.
    if (!set_.parity) all_reduce("all_reduce", 2 * dense);
  }

  void interleaved() {
    embedding();
    interleaved_layers({.kv_heads = f_.kv_heads, .head_dim = f_.head_dim}, f_.global_experts,
                       f_.global_dense);
    interleaved_layers({.kv_heads = f_.sliding_kv_heads > 0 ? f_.sliding_kv_heads : f_.kv_heads,
                        .head_dim = f_.sliding_head_dim > 0 ? f_.sliding_head_dim : f_.head_dim,
                        .window = f_.window},
                       f_.sliding_experts, f_.sliding_dense);
    head();
  }

  const HybridFacts& f_;
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

Result<OpLists> hybrid_lists(const HybridFacts& f, const Sharding& s, const OpModes& modes,
                             const ListSettings& settings) {
  Problems problems;
  for (const auto& [heads, kind] :
       {std::pair{f.heads, "attention"}, std::pair{f.mamba_heads, "state-space"},
        std::pair{f.linear_k_heads, "linear key"}, std::pair{f.linear_v_heads, "linear value"}})
    require(problems, heads % s.tp == 0,
            fmt::format("{} {} heads do not divide over {} ranks", heads, kind, s.tp));
  if (f.experts > 0) {
    require(problems, s.tp * s.dp == s.moe_tp * s.moe_ep,
            fmt::format("attention takes {} x {} ranks, experts take {} x {}", s.tp, s.dp, s.moe_tp,
                        s.moe_ep));
    require(problems, f.experts >= s.moe_ep,
            fmt::format("{} experts on {} ranks", f.experts, s.moe_ep));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return OpLists{Builder(f, s, modes, settings, Phase::Context).build(),
                 Builder(f, s, modes, settings, Phase::Generation).build()};
}

}  // namespace servecast::perf
