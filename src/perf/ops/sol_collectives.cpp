// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "perf/ops/sol_internal.hpp"

namespace servecast::perf {
namespace detail {

OpResult<Sol> sol(const CustomAllReduce& op, const OpShape& q, const catalog::SystemCard& system) {
  if (op.ranks <= 1) return Sol{};
  const double n = real(op.ranks);
  const double bytes = real(q.tokens) * real(op.width) * 2.0;
  return Sol{0.0, 2.0 * bytes / n * (n - 1.0) / link_rate(system, op.ranks) * 1000.0};
}

OpResult<Sol> sol(const Nccl& op, const OpShape& q, const catalog::SystemCard& system) {
  if (op.ranks <= 1) return Sol{};
  const double n = real(op.ranks);
  const double bytes = bytes_of(op.quant) * real(q.tokens) * real(op.width);
  const double once = bytes * (n - 1.0) / n / link_rate(system, op.ranks) * 1000.0;
  return Sol{0.0, op.kind == Collective::AllReduce ? 2.0 * once : once};
}

OpResult<Sol> sol(const PeerToPeer& op, const OpShape& q, const catalog::SystemCard& system) {
  const double bytes = real(q.tokens) * real(op.width) * 2.0;
  return Sol{0.0, bytes / static_cast<double>(system.inter_node_bytes_per_s) * 1000.0};
}

OpResult<Sol> sol(const Dispatch& op, const OpShape& q, const catalog::SystemCard& system) {
  const auto parts = parts_of(op, system);
  if (!parts) return tl::unexpected(parts.error());
  Sol total;
  for (const Op& part : *parts) {
    const auto one = perf::sol(part, q, system);
    if (!one) return one;
    total.mem_ms += one->mem_ms;
  }
  return total;
}

}  // namespace detail

namespace {

struct Groups {
  std::int64_t experts;    // ranks that hold the experts: all
  std::int64_t attention;  // ranks of one attention replica
};

Op all_reduce(std::int64_t ranks, std::int64_t width) {
  return CustomAllReduce{.ranks = ranks, .width = width};
}
Op gather(std::int64_t ranks, std::int64_t width) {
  return Nccl{.kind = Collective::AllGather, .ranks = ranks, .width = width};
}
Op scatter(std::int64_t ranks, std::int64_t width) {
  return Nccl{.kind = Collective::ReduceScatter, .ranks = ranks, .width = width};
}

std::vector<Op> vllm_parts(const Dispatch& d, Groups g) {
  std::vector<Op> parts;
  if (g.attention > 1 && !(d.before && d.attention_reduced_apart))
    parts.push_back(all_reduce(g.experts, d.width));
  if (d.attention_dp > 1)
    parts.push_back(d.before ? gather(g.experts, d.width * d.attention_dp)
                             : scatter(g.experts, d.width * d.attention_dp));
  return parts;
}

std::vector<Op> sglang_parts(const Dispatch& d, Groups g) {
  const std::int64_t gathered = d.width * d.attention_dp;
  if (g.attention > 1 && d.attention_dp > 1) {
    if (d.before) return {scatter(g.attention, d.width), gather(g.experts, gathered)};
    return {scatter(g.experts, gathered), gather(g.attention, d.width)};
  }
  if (d.attention_cp > 1) {
    if (d.phase != Phase::Context)
      return d.before ? std::vector<Op>{} : std::vector<Op>{all_reduce(g.experts, d.width)};
    return {d.before ? gather(g.experts, d.width) : scatter(g.experts, d.width)};
  }
  if (g.attention > 1) return {all_reduce(g.experts, d.width)};
  if (d.attention_dp > 1)
    return {d.before ? gather(g.experts, gathered) : scatter(g.experts, gathered)};
  return {};
}

// Numbers that TensorRT-LLM gathers for one of the hidden state: it quantises before it sends, and
// only on sm 100.
double sent_share(const Dispatch& d, bool quantises) {
  if (!quantises) return 1.0;
  if (d.quant == Quant::Nvfp4) return 0.25 + 0.03125;
  if (d.quant == Quant::Fp8 || d.quant == Quant::Fp8Block) return 0.5;
  return 1.0;
}

std::vector<Op> trtllm_parts(const Dispatch& d, Groups g, bool sm100) {
  const std::int64_t gathered = d.width * d.attention_dp;
  const auto sent = static_cast<std::int64_t>(detail::real(gathered) * sent_share(d, sm100));
  const std::vector<Op> exchange = {d.before ? gather(g.experts, sent)
                                             : scatter(g.experts, gathered)};
  const std::vector<Op> reduce = {all_reduce(g.experts, d.width)};
  // The two branches differ in what they ask first.
  if (sm100 && d.attention_dp > 1) return exchange;
  if (g.attention > 1) return reduce;
  if (d.attention_dp > 1) return exchange;
  return {};
}

}  // namespace

double link_rate(const catalog::SystemCard& system, std::int64_t ranks) {
  if (ranks <= system.gpus_per_node) return static_cast<double>(system.intra_node_bytes_per_s);
  if (system.rack && ranks > system.rack->gpus)
    return static_cast<double>(system.rack->inter_rack_bytes_per_s);
  return static_cast<double>(system.inter_node_bytes_per_s);
}

OpResult<std::vector<Op>> parts_of(const Dispatch& d, const catalog::SystemCard& system) {
  const std::int64_t ranks = d.moe_tp * d.moe_ep;
  const Groups groups{ranks, std::max<std::int64_t>(1, ranks / d.attention_dp)};
  switch (d.engine) {
    case catalog::EngineKind::Vllm:
      return vllm_parts(d, groups);
    case catalog::EngineKind::Sglang:
      return sglang_parts(d, groups);
    case catalog::EngineKind::TensorRtLlm:
      if (system.sm == 100U && d.attention_dp > 1 && d.moe_tp == 1 && system.gpus_per_node >= 72)
        return tl::unexpected(Miss{Miss::Kind::Unsupported,
                                   "TensorRT-LLM's all-to-all of a 72-GPU node is not modelled"});
      return trtllm_parts(d, groups, system.sm == 100U);
  }
  return std::vector<Op>{};
}

}  // namespace servecast::perf
