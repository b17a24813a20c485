// SPDX-License-Identifier: Apache-2.0
#include "fit/solver.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <thread>

namespace servecast::fit {
namespace {

using catalog::Coefficient;
using catalog::Effect;

// Rows of one curve share their errors, so that each counts as a fraction of an independent
// measurement. Chosen so that groups that a fit has not seen come out best; TTFT is the noisier of
// the two (accuracy-notes.md 1.7, 10).
constexpr double kTpotWeight = 20.0;
constexpr double kTtftWeight = 6.6;
// The user's own server, measured where it is to be predicted: its rows say more than those of
// others.
constexpr double kOwnWeight = 8.0;
constexpr double kOwnScale = 2.0;
// Residuals beyond which a row counts less (Cauchy).
constexpr double kTpotScale = 0.05;
constexpr double kTtftScale = 0.15;
constexpr double kStepMax = 0.4;  // of a logarithm in one iteration
constexpr double kConverged = 0.005;

std::string key_of(const Effect& effect) {
  std::string key(catalog::to_string(effect.coefficient));
  for (const auto& [label, value] : effect.when) {
    key += '|';
    key += catalog::to_string(label);
    key += '=';
    key += value;
  }
  return key;
}

// Adds the effects of the deviations that the rows have and the model lacks, in order of their
// keys.
void expand(const std::vector<const FitRow*>& rows, catalog::StepModel& model) {
  std::map<std::string, Effect> fresh;
  for (const catalog::Deviation& deviation : model.deviations) {
    for (const FitRow* row : rows) {
      Effect effect{.coefficient = deviation.coefficient,
                    .prior = 1.0,
                    .prior_spread = deviation.spread,
                    .factor = 1.0,
                    .spread = deviation.spread};
      for (const catalog::Label label : deviation.by)
        effect.when.emplace_back(label, row->labels[label]);
      std::sort(effect.when.begin(), effect.when.end());
      fresh.emplace(key_of(effect), std::move(effect));
    }
  }
  for (const Effect& known : model.effects) fresh.erase(key_of(known));
  for (auto& [key, effect] : fresh) model.effects.push_back(std::move(effect));
}

// Effects of one row, by coefficient.
using RowEffects = std::array<std::vector<Eigen::Index>, catalog::kCoefficients>;

RowEffects effects_of(const FitRow& row, const catalog::StepModel& model) {
  RowEffects effects;
  for (std::size_t i = 0; i < model.effects.size(); ++i) {
    const Effect& effect = model.effects[i];
    if (effect.applies(row.labels))
      effects[static_cast<std::size_t>(effect.coefficient)].push_back(static_cast<Eigen::Index>(i));
  }
  return effects;
}

// Logarithms of predicted over measured, and what each coefficient's logarithm changes in them.
struct Residuals {
  double ttft = 0.0, tpot = 0.0;
  std::array<double, catalog::kCoefficients> ttft_by{}, tpot_by{};
};

Residuals residuals_of(const FitRow& row, const RowEffects& effects,
                       const catalog::StepModel& model) {
  constexpr double kStep = 1.05;
  const double step = std::log(kStep);
  perf::Coefficients coefficients(model, row.labels);
  const Times at = predicted(row, coefficients);
  Residuals r{.ttft = std::log(at.ttft_ms / row.ttft_ms.value_or(at.ttft_ms)),
              .tpot = std::log(at.tpot_ms / row.tpot_ms.value_or(at.tpot_ms))};
  for (std::size_t c = 0; c < catalog::kCoefficients; ++c) {
    if (effects[c].empty()) continue;
    const auto which = static_cast<Coefficient>(c);
    const double value = coefficients[which];
    coefficients.set(which, value * kStep);
    const Times moved = predicted(row, coefficients);
    coefficients.set(which, value);
    r.ttft_by[c] = std::log(moved.ttft_ms / at.ttft_ms) / step;
    r.tpot_by[c] = std::log(moved.tpot_ms / at.tpot_ms) / step;
  }
  return r;
}

double cauchy(double residual, double scale) {
  const double ratio = residual / scale;
  return 1.0 / (1.0 + ratio * ratio);
}

struct Priors {
  Eigen::VectorXd log_mean, precision;
};

Priors priors_of(const catalog::StepModel& model, Prior prior) {
  const auto count = static_cast<Eigen::Index>(model.effects.size());
  Priors priors{Eigen::VectorXd(count), Eigen::VectorXd(count)};
  for (Eigen::Index i = 0; i < count; ++i) {
    const Effect& effect = model.effects[static_cast<std::size_t>(i)];
    const bool tables = prior == Prior::Tables;
    const double spread = tables ? effect.prior_spread : effect.spread;
    priors.log_mean[i] = std::log(tables ? effect.prior : effect.factor);
    priors.precision[i] = 1.0 / (spread * spread);
  }
  return priors;
}

// Normal equations of one iteration: half the second derivative, and half the first, of the sum of
// squares.
struct Equations {
  Eigen::MatrixXd hessian;
  Eigen::VectorXd gradient;

  // A residual whose derivative by effect j is `by` of the coefficient that j belongs to.
  void add(double residual, double weight, const RowEffects& effects,
           const std::array<double, catalog::kCoefficients>& by) {
    for (std::size_t a = 0; a < catalog::kCoefficients; ++a) {
      if (by[a] == 0.0) continue;
      for (const Eigen::Index i : effects[a]) {
        gradient[i] += weight * residual * by[a];
        for (std::size_t b = 0; b < catalog::kCoefficients; ++b) {
          if (by[b] == 0.0) continue;
          for (const Eigen::Index j : effects[b]) hessian(i, j) += weight * by[a] * by[b];
        }
      }
    }
  }
};

template <class Work>
void in_parallel(std::size_t count, unsigned threads, const Work& work) {
  const auto part = [&](unsigned first) {
    for (std::size_t i = first; i < count; i += std::max(threads, 1U)) work(i);
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

Times predicted(const FitRow& row, const perf::Coefficients& coefficients) {
  Times times = engine_times(row.features, perf::pass_cost_of(row.placement, coefficients));
  times.ttft_ms = client_ttft_ms(row.features.load, times, coefficients);
  return times;
}

catalog::StepModel fit_model(const std::vector<const FitRow*>& rows,
                             const catalog::StepModel& model, const FitOptions& options) {
  catalog::StepModel fitted = model;
  expand(rows, fitted);
  std::vector<RowEffects> effects;
  for (const FitRow* row : rows) effects.push_back(effects_of(*row, fitted));
  const Priors priors = priors_of(fitted, options.prior);
  Eigen::VectorXd logs = priors.log_mean;
  const auto set_factors = [&] {
    for (Eigen::Index i = 0; i < logs.size(); ++i)
      fitted.effects[static_cast<std::size_t>(i)].factor = std::exp(logs[i]);
  };
  set_factors();

  Equations equations;
  std::vector<Residuals> residuals(rows.size());
  const bool own = options.prior == Prior::Fitted;
  const double tpot_weight = kTpotWeight * (own ? kOwnWeight : 1.0);
  const double ttft_weight = kTtftWeight * (own ? kOwnWeight : 1.0);
  const double tpot_scale = kTpotScale * (own ? kOwnScale : 1.0);
  const double ttft_scale = kTtftScale * (own ? kOwnScale : 1.0);
  const auto set_up = [&] {
    in_parallel(rows.size(), options.threads,
                [&](std::size_t i) { residuals[i] = residuals_of(*rows[i], effects[i], fitted); });
    equations.hessian = priors.precision.asDiagonal();
    equations.gradient = priors.precision.cwiseProduct(logs - priors.log_mean);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Residuals& r = residuals[i];
      if (rows[i]->tpot_ms)
        equations.add(r.tpot, tpot_weight * cauchy(r.tpot, tpot_scale), effects[i], r.tpot_by);
      if (rows[i]->ttft_ms && !rows[i]->special)
        equations.add(r.ttft, ttft_weight * cauchy(r.ttft, ttft_scale), effects[i], r.ttft_by);
    }
  };
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    set_up();
    Eigen::MatrixXd damped = equations.hessian;
    damped.diagonal() *= 1.01;
    const Eigen::VectorXd step =
        damped.ldlt().solve(-equations.gradient).cwiseMax(-kStepMax).cwiseMin(kStepMax);
    logs += step;
    set_factors();
    if (step.cwiseAbs().maxCoeff() < kConverged) break;
  }
  set_up();
  const Eigen::MatrixXd covariance =
      equations.hessian.ldlt().solve(Eigen::MatrixXd::Identity(logs.size(), logs.size()));
  for (Eigen::Index i = 0; i < logs.size(); ++i) {
    Effect& effect = fitted.effects[static_cast<std::size_t>(i)];
    effect.spread = std::sqrt(std::max(covariance(i, i), 1e-8));
    effect.rows = static_cast<std::uint32_t>(std::count_if(
        rows.begin(), rows.end(), [&](const FitRow* row) { return effect.applies(row->labels); }));
  }
  return fitted;
}

}  // namespace servecast::fit
