// SPDX-License-Identifier: Apache-2.0
// One pass of a batch as it is, from operator lists: matrices, experts and collectives at the
// batch's tokens, prefill attention from its exact sum of pairs, decode attention at the mean
// context. What depends on few numbers is remembered, so that a pass costs the same whatever the
// estimator behind it costs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perf/ops/estimator.hpp"
#include "perf/ops/memo.hpp"
#include "perf/ops/op_lists.hpp"
#include "perf/step_timer.hpp"

namespace servecast::perf {

// What one operator contributes to a pass.
struct OpShare {
  std::string name;
  OpTime time;
};

class PassEstimate {
 public:
  // requires: lists and estimator are not those of parity mode.
  PassEstimate(std::shared_ptr<const Estimator> estimator, OpLists lists);
  ~PassEstimate();

  // Everything but decode attention of a batch that only decodes.
  double decode_base_ms(std::uint32_t requests, std::uint32_t tokens_each) const;
  // Prefill attention aside: prompts' new tokens and decodes as one batch.
  double prefill_base_ms(std::uint64_t tokens, std::uint64_t sequences) const;
  double prefill_attention_ms(const StepShape& shape) const;

  // Decode attention of a batch size: a curve over the mean context. Holds its last piece, so that
  // a run of passes pays for a new one only where it enters it.
  class DecodeCurve {
   public:
    double ms(double context) {
      if (context < from_ || context >= to_) move(context);
      return low_ + (context - from_) * slope_;
    }

   private:
    friend class PassEstimate;
    DecodeCurve(const PassEstimate& pass, Knots* knots, std::uint32_t requests)
        : pass_(pass), knots_(knots), requests_(requests) {}
    void move(double context);

    const PassEstimate& pass_;
    Knots* knots_;  // nothing for batches beyond those that are remembered
    std::uint32_t requests_;
    double from_ = 0.0, to_ = -1.0, low_ = 0.0, slope_ = 0.0;
  };
  DecodeCurve decode_curve(std::uint32_t requests) const;

  // Each operator of the pass, for reports. Not on the fast path.
  std::vector<OpShare> shares(const StepShape& shape) const;

  // Operators that no source answers at ordinary shapes; empty where the estimate can be used.
  std::vector<std::string> misses() const;

 private:
  struct Memory;
  double ms_of(const OpStep& step, const OpShape& shape) const;
  double decode_attention_ms(std::uint32_t requests, double context) const;
  double prefill_curve_ms(std::size_t step, std::uint32_t requests, double full) const;

  std::shared_ptr<const Estimator> estimator_;
  OpLists lists_;
  // The lists by how they are evaluated.
  struct Parts {
    OpList tokens, sequences, attention;
  };
  static Parts split(const OpList& list);
  Parts context_, generation_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace servecast::perf
