// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/pass_estimate.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "perf/ops/sol_internal.hpp"
#include "perf/ops/table_time.hpp"

namespace servecast::perf {
namespace {

using detail::real;

constexpr std::size_t kPage = 1024;           // token counts that are remembered together
constexpr std::size_t kPages = 512;           // up to half a million tokens
constexpr std::size_t kDecodeBatches = 8192;  // batch sizes whose curves are remembered
constexpr std::size_t kPrefillBatches = 1024;
constexpr double kContextMax = 67108863.0;  // tokens of a sequence: the knots end at 2^26

bool is_attention(const OpStep& step) {
  const Op& op = step.op;
  if (const auto* fallback = std::get_if<Fallback>(&op))
    return std::any_of(fallback->primary.begin(), fallback->primary.end(), is_attention);
  return std::holds_alternative<ContextAttention>(op) ||
         std::holds_alternative<GenerationAttention>(op) ||
         std::holds_alternative<MlaContext>(op) || std::holds_alternative<MlaGeneration>(op) ||
         std::holds_alternative<DsaModule>(op) || std::holds_alternative<Mamba2Kernel>(op) ||
         std::holds_alternative<GdnKernel>(op) || std::holds_alternative<KdaKernel>(op);
}

OpShape of_tokens(std::uint64_t tokens) {
  return {.tokens = static_cast<std::int64_t>(tokens), .batch = 1};
}

OpShape of_sequences(std::uint64_t sequences) {
  return {.tokens = 0, .batch = static_cast<std::int64_t>(sequences)};
}

OpShape of_decodes(std::uint32_t requests, double context) {
  return {.tokens = requests, .batch = requests, .length = std::max(1.0, context)};
}

std::int64_t window_of(const OpStep& step) {
  const auto* attention = std::get_if<ContextAttention>(&step.op);
  return attention == nullptr ? 0 : attention->window;
}

// Prompts of a pass as equal ones: of the same mean length and, without a window, of the same sum
// of pairs.
OpShape alike(const StepShape& shape, bool windowed) {
  const double requests = real(shape.prefill_requests);
  const double full = static_cast<double>(shape.prefill_isl) / requests;
  const double fresh = static_cast<double>(shape.prefill_isl - shape.prefill_prefix);
  double prefix = full - fresh / requests;
  if (!windowed) {
    const double pairs = static_cast<double>(shape.prefill_attention) / requests;
    prefix = std::sqrt(std::max(0.0, full * full - pairs));
  }
  OpShape out{.tokens = static_cast<std::int64_t>(fresh), .batch = shape.prefill_requests};
  out.prefix = std::min(prefix, full);
  out.length = full - out.prefix;
  return out;
}

}  // namespace

struct PassEstimate::Memory {
  using Page = LazyValues<kPage>;
  using Pages = LazyPlaces<Page, kPages>;
  using PrefillBatches = LazyPlaces<Knots, kPrefillBatches>;
  Pages context_tokens, generation_tokens, context_sequences, generation_sequences;
  LazyPlaces<Knots, kDecodeBatches> decode;
  std::vector<std::unique_ptr<PrefillBatches>> prefill;  // of each attention step

  template <class Compute>
  static double get(Pages& pages, std::uint64_t count, const Compute& compute) {
    if (count / kPage >= kPages) return compute();
    return pages.get(count / kPage).get(count % kPage, [&](std::size_t) { return compute(); });
  }
};

PassEstimate::Parts PassEstimate::split(const OpList& list) {
  Parts parts;
  for (const OpStep& step : list) {
    OpList& part = is_attention(step)                     ? parts.attention
                   : step.tokens == TokensFrom::Sequences ? parts.sequences
                                                          : parts.tokens;
    part.push_back(step);
  }
  return parts;
}

PassEstimate::PassEstimate(std::shared_ptr<const Estimator> estimator, OpLists lists)
    : estimator_(std::move(estimator)),
      lists_(std::move(lists)),
      context_(split(lists_.context)),
      generation_(split(lists_.generation)),
      memory_(std::make_unique<Memory>()) {
  SERVECAST_CHECK(!estimator_->settings().parity);
  for (std::size_t i = 0; i < context_.attention.size(); ++i)
    memory_->prefill.push_back(std::make_unique<Memory::PrefillBatches>());
}

PassEstimate::~PassEstimate() = default;

// A place that no source answers takes the bound: misses() has asked at ordinary shapes before.
double PassEstimate::ms_of(const OpStep& step, const OpShape& shape) const {
  const auto time = estimator_->time(step, shape);
  if (time && std::isfinite(time->ms)) return std::max(0.0, time->ms);
  const auto bound = sol(step.op, shape, estimator_->system());
  return bound ? step.scale * bound->ms() : 0.0;
}

double PassEstimate::decode_base_ms(std::uint32_t requests, std::uint32_t tokens_each) const {
  const std::uint64_t tokens = std::uint64_t{requests} * tokens_each;
  const auto sum = [&](const OpList& list, const OpShape& shape) {
    double ms = 0.0;
    for (const OpStep& step : list) ms += ms_of(step, shape);
    return ms;
  };
  return Memory::get(memory_->generation_tokens, tokens,
                     [&] { return sum(generation_.tokens, of_tokens(tokens)); }) +
         Memory::get(memory_->generation_sequences, tokens,
                     [&] { return sum(generation_.sequences, of_sequences(tokens)); });
}

double PassEstimate::prefill_base_ms(std::uint64_t tokens, std::uint64_t sequences) const {
  const auto sum = [&](const OpList& list, const OpShape& shape) {
    double ms = 0.0;
    for (const OpStep& step : list) ms += ms_of(step, shape);
    return ms;
  };
  return Memory::get(memory_->context_tokens, tokens,
                     [&] { return sum(context_.tokens, of_tokens(tokens)); }) +
         Memory::get(memory_->context_sequences, sequences,
                     [&] { return sum(context_.sequences, of_sequences(sequences)); });
}

double PassEstimate::decode_attention_ms(std::uint32_t requests, double context) const {
  double ms = 0.0;
  for (const OpStep& step : generation_.attention) ms += ms_of(step, of_decodes(requests, context));
  return ms;
}

PassEstimate::DecodeCurve PassEstimate::decode_curve(std::uint32_t requests) const {
  Knots* knots = requests < kDecodeBatches ? &memory_->decode.get(requests) : nullptr;
  return {*this, knots, requests};
}

void PassEstimate::DecodeCurve::move(double context) {
  const std::size_t piece = piece_of(std::min(context, kContextMax));
  const auto compute = [&](std::size_t i) { return pass_.decode_attention_ms(requests_, knot(i)); };
  const auto value = [&](std::size_t i) {
    return knots_ == nullptr ? compute(i) : knots_->get(i, compute);
  };
  from_ = knot(piece);
  to_ = knot(piece + 1);
  low_ = value(piece);
  slope_ = (value(piece + 1) - low_) / (to_ - from_);
  if (context < from_) slope_ = 0.0;  // of less than one token
}

// Uncached prompts of `full` tokens. Their roots are blended: attention grows with the square.
double PassEstimate::prefill_curve_ms(std::size_t step, std::uint32_t requests, double full) const {
  const OpStep& attention = context_.attention[step];
  const auto compute = [&](std::size_t i) {
    const double length = knot(i);
    const OpShape shape{.tokens = static_cast<std::int64_t>(real(requests) * length),
                        .batch = requests,
                        .length = length};
    double ms = ms_of(attention, shape);
    if (const auto* op = std::get_if<ContextAttention>(&attention.op))
      ms -= attention.scale * around_attention_ms(*op, shape, estimator_->system(), false,
                                                  estimator_->settings().mode == DataMode::Sol);
    return std::max(0.0, ms);
  };
  Knots* knots = requests < kPrefillBatches ? &memory_->prefill[step]->get(requests) : nullptr;
  const auto root = [&](std::size_t i) {
    return std::sqrt(knots == nullptr ? compute(i) : knots->get(i, compute));
  };
  const std::size_t piece = piece_of(std::min(full, kContextMax));
  const double from = knot(piece);
  const double weight = std::max(0.0, (full - from) / (knot(piece + 1) - from));
  const double blend = root(piece) + weight * (root(piece + 1) - root(piece));
  return blend * blend;
}

double PassEstimate::prefill_attention_ms(const StepShape& shape) const {
  double ms = 0.0;
  for (std::size_t i = 0; i < context_.attention.size(); ++i) {
    const OpStep& step = context_.attention[i];
    const OpShape prompts = alike(shape, window_of(step) > 0);
    OpShape whole = prompts;
    whole.length = prompts.length + prompts.prefix;
    whole.prefix = 0.0;
    // From uncached prompts to these as the physical bound goes; a mix of lengths has more pairs
    // than its mean.
    const auto here = sol(step.op, prompts, estimator_->system());
    const auto there = sol(step.op, whole, estimator_->system());
    double ratio = here && there && there->ms() > 0.0 ? here->ms() / there->ms() : 1.0;
    const double squares = whole.length * whole.length * real(shape.prefill_requests);
    const double pairs = static_cast<double>(shape.prefill_attention);
    if (window_of(step) == 0 && pairs > squares) ratio *= pairs / squares;
    ms += ratio * prefill_curve_ms(i, shape.prefill_requests, whole.length);
    if (const auto* op = std::get_if<ContextAttention>(&step.op))
      ms += step.scale * around_attention_ms(*op, prompts, estimator_->system(), false,
                                             estimator_->settings().mode == DataMode::Sol);
  }
  return ms;
}

std::vector<OpShare> PassEstimate::shares(const StepShape& shape) const {
  std::vector<OpShare> out;
  const auto add = [&](const OpList& list, const OpShape& seen) {
    for (const OpStep& step : list) {
      const auto time = estimator_->time(step, seen);
      out.push_back({step.name, time ? *time : OpTime{ms_of(step, seen), 0.0, TimeSource::Sol}});
    }
  };
  const std::uint64_t decoded = std::uint64_t{shape.decode_requests} * shape.decode_tokens_each;
  const std::uint64_t fresh = shape.prefill_isl - shape.prefill_prefix;
  const bool prefills = shape.prefill_requests > 0 && fresh > 0;
  const Parts& base = prefills ? context_ : generation_;
  add(base.tokens, of_tokens((prefills ? fresh : 0) + decoded));
  add(base.sequences, of_sequences((prefills ? shape.prefill_requests : 0U) + decoded));
  for (const OpStep& step : context_.attention) {
    if (prefills) add({step}, alike(shape, window_of(step) > 0));
  }
  if (shape.decode_requests > 0)
    add(generation_.attention,
        of_decodes(shape.decode_requests, static_cast<double>(shape.decode_context) /
                                              static_cast<double>(shape.decode_requests)));
  return out;
}

std::vector<std::string> PassEstimate::misses() const {
  std::vector<std::string> out;
  const auto ask = [&](const OpList& list, const OpShape& shape) {
    for (const OpStep& step : list) {
      const auto time = estimator_->time(step, shape);
      if (!time && std::find(out.begin(), out.end(), time.error().message) == out.end())
        out.push_back(time.error().message);
    }
  };
  ask(context_.tokens, of_tokens(2048));
  ask(context_.sequences, of_sequences(1));
  ask(context_.attention, {.tokens = 2048, .batch = 1, .length = 2048.0});
  ask(generation_.tokens, of_tokens(32));
  ask(generation_.sequences, of_sequences(32));
  ask(generation_.attention, of_decodes(32, 2048.0));
  return out;
}

}  // namespace servecast::perf
