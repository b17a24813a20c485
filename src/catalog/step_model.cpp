// SPDX-License-Identifier: Apache-2.0
#include "catalog/step_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/check.hpp"
#include "catalog/embedded.hpp"
#include "catalog/json_fields.hpp"

namespace servecast::catalog {
namespace {

constexpr std::array<std::string_view, kCoefficients> kCoefficientNames{
    "host_ms_per_pass",    "launch_ms_per_layer",
    "ms_per_sequence",     "linear_memory_share",
    "linear_flops_share",  "expert_memory_share",
    "expert_flops_share",  "kv_memory_share",
    "prefill_flops_share", "collective_ms",
    "link_share",          "prefill_launch_ms_per_layer",
    "speculation_launch",  "data_parallel_latency",
    "client_ms",           "client_ms_per_token",
    "flush_passes",        "cold_start_ms",
    "intake_ms",
};
constexpr std::array<std::string_view, kLabels> kLabelNames{
    "kind",   "attention", "generation", "engine",          "version", "network",
    "linear", "experts",   "formats",    "expert_parallel", "source",  "system",
};

template <class E, std::size_t N>
std::optional<E> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* const at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<E>(at - names.begin());
}

Coefficient read_coefficient(Fields& at) {
  const std::string name = at.text("coefficient");
  const auto known = coefficient_from(name);
  if (!known && !name.empty())
    at.problem("card.wrong_value", "coefficient", fmt::format("is {}; no coefficient", name));
  return known.value_or(Coefficient::HostPerPass);
}

double positive(Fields& at, const char* key) {
  const double number = at.number(key);
  constexpr double kMin = 1e-9, kMax = 1e9;
  if (number >= kMin && number <= kMax) return number;
  at.problem("card.wrong_value", key, "must be from 1e-9 to 1e9");
  return 1.0;
}

Effect read_effect(Fields& at) {
  Effect effect{.coefficient = read_coefficient(at)};
  Fields when = at.object("when");
  for (const std::string& key : when.keys()) {
    const auto label = label_from(key);
    // Left to finish() when no label: it names the nearest one.
    if (label && when.has(key.c_str()))
      effect.when.emplace_back(*label, when.any_text(key.c_str()));
  }
  std::sort(effect.when.begin(), effect.when.end());
  for (const std::string_view name : kLabelNames) (void)when.has(std::string(name).c_str());
  when.finish();
  effect.prior = positive(at, "prior");
  effect.prior_spread = positive(at, "prior_spread");
  effect.factor = at.has("factor") ? positive(at, "factor") : effect.prior;
  effect.spread = at.has("spread") ? positive(at, "spread") : effect.prior_spread;
  if (at.has("rows")) effect.rows = at.count_or_zero("rows");
  at.finish();
  return effect;
}

Deviation read_deviation(Fields& at) {
  Deviation deviation{.coefficient = read_coefficient(at)};
  for (const std::string& name : at.texts("by")) {
    if (const auto label = label_from(name))
      deviation.by.push_back(*label);
    else
      at.problem("card.wrong_value", "by", fmt::format("has {}; no label", name));
  }
  deviation.spread = positive(at, "spread");
  at.finish();
  return deviation;
}

Interval read_interval(Fields& at) {
  Interval interval{.support = at.text("support"), .ttft = 1.0, .tpot = 1.0};
  interval.ttft = at.number("ttft");
  interval.tpot = at.number("tpot");
  at.finish();
  return interval;
}

// Lists become lines of one object each, so that a new fit shows as changed lines.
template <class T, class Print>
std::string list(const std::vector<T>& items, Print print) {
  std::string text;
  for (const T& item : items)
    text += fmt::format("{}\n    {}", text.empty() ? "" : ",", print(item));
  return text.empty() ? "[]" : fmt::format("[{}\n  ]", text);
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string print(const Effect& effect) {
  std::string when;
  for (const auto& [label, value] : effect.when)
    when += fmt::format("{}{}: {}", when.empty() ? "" : ", ", json_text(to_string(label)),
                        json_text(value));
  return fmt::format(
      R"({{"coefficient": {}, "when": {{{}}}, "prior": {:.6g}, "prior_spread": {:.6g}, )"
      R"("factor": {:.6g}, "spread": {:.4g}, "rows": {}}})",
      json_text(to_string(effect.coefficient)), when, effect.prior, effect.prior_spread,
      effect.factor, effect.spread, effect.rows);
}

std::string print(const Deviation& deviation) {
  std::string by;
  for (const Label label : deviation.by)
    by += fmt::format("{}{}", by.empty() ? "" : ", ", json_text(to_string(label)));
  return fmt::format(R"({{"coefficient": {}, "by": [{}], "spread": {:.6g}}})",
                     json_text(to_string(deviation.coefficient)), by, deviation.spread);
}

std::string print(const Interval& interval) {
  return fmt::format(R"({{"support": {}, "ttft": {:.4g}, "tpot": {:.4g}}})",
                     json_text(interval.support), interval.ttft, interval.tpot);
}

}  // namespace

std::string_view to_string(Coefficient coefficient) {
  return kCoefficientNames[static_cast<std::size_t>(coefficient)];
}
std::optional<Coefficient> coefficient_from(std::string_view name) {
  return from_name<Coefficient>(kCoefficientNames, name);
}
std::string_view to_string(Label label) {
  return kLabelNames[static_cast<std::size_t>(label)];
}
std::optional<Label> label_from(std::string_view name) {
  return from_name<Label>(kLabelNames, name);
}

bool Effect::applies(const LabelValues& labels) const {
  return std::all_of(when.begin(), when.end(),
                     [&](const auto& one) { return labels[one.first] == one.second; });
}

double StepModel::value(Coefficient coefficient, const LabelValues& labels) const {
  double product = 1.0;
  for (const Effect& effect : effects) {
    if (effect.coefficient == coefficient && effect.applies(labels)) product *= effect.factor;
  }
  return product;
}

Result<StepModel> parse_step_model(std::string_view json, std::string_view file) {
  Problems problems;
  std::optional<Fields> root = Fields::parse(json, file, problems);
  if (!root) return tl::unexpected(std::move(problems));
  StepModel model;
  model.source = root->text("source");
  model.licence = root->text("licence");
  for (Fields& at : root->objects("effects")) model.effects.push_back(read_effect(at));
  for (Fields& at : root->objects("deviations")) model.deviations.push_back(read_deviation(at));
  for (Fields& at : root->objects("intervals")) model.intervals.push_back(read_interval(at));
  model.groups = root->texts("groups");
  root->finish();
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return model;
}

std::string to_json(const StepModel& model) {
  const auto printed = [](const auto& item) { return print(item); };
  return fmt::format(
      "{{\n  \"source\": {},\n  \"licence\": {},\n  \"intervals\": {},\n  \"groups\": {},\n"
      "  \"deviations\": {},\n  \"effects\": {}\n}}\n",
      json_text(model.source), json_text(model.licence), list(model.intervals, printed),
      list(model.groups, [](const std::string& group) { return json_text(group); }),
      list(model.deviations, printed), list(model.effects, printed));
}

const StepModel& shipped_step_model() {
  static const StepModel model = [] {
    const EmbeddedCard& card = embedded_step_model();
    auto parsed = parse_step_model(card.json, card.file);
    SERVECAST_CHECK(parsed.has_value());
    return *std::move(parsed);
  }();
  return model;
}

}  // namespace servecast::catalog
