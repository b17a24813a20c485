// SPDX-License-Identifier: Apache-2.0
// Operators from measured tables. A miss where the tables hold nothing that answers.
#pragma once

#include "perf/ops/op_time.hpp"
#include "perf/ops/sol.hpp"
#include "perf/table/database.hpp"

namespace servecast::perf {

class TableTime {
 public:
  TableTime(const catalog::SystemCard& system, const PerfDatabase& database, bool parity)
      : system_(system), database_(database), parity_(parity) {}

  OpResult<OpTime> time(const Gemm& op, const OpShape& q) const;
  OpResult<OpTime> time(const ContextAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const GenerationAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const EncoderAttention& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaContext& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaGeneration& op, const OpShape& q) const;
  OpResult<OpTime> time(const MlaBmm& op, const OpShape& q) const;
  OpResult<OpTime> time(const DsaModule& op, const OpShape& q) const;
  OpResult<OpTime> time(const Experts& op, const OpShape& q) const;
  OpResult<OpTime> time(const CustomAllReduce& op, const OpShape& q) const;
  OpResult<OpTime> time(const Nccl& op, const OpShape& q) const;

 private:
  OpResult<OpTime> quantised_statically(const Gemm& op, const OpShape& q) const;
  double bound(const Op& op, const OpShape& q) const;  // NaN where there is none

  const catalog::SystemCard& system_;
  const PerfDatabase& database_;
  bool parity_;
};

// Rotary embedding, cache write and norms around prefill attention (perfmodel.md 4.3), in ms.
double around_attention_ms(const ContextAttention& op, const OpShape& q,
                           const catalog::SystemCard& system, bool parity, bool bound_only);

// Names of slices, as slices.hpp builds them.
std::string slice_of(const ContextAttention& op);
std::string slice_of(const GenerationAttention& op);
std::string slice_of(const EncoderAttention& op);
std::string slice_of(const MlaContext& op);
std::string slice_of(const MlaGeneration& op);
std::string slice_of(const DsaModule& op);
std::string slice_of(const Experts& op, std::string_view distribution);

std::string_view collective_name(Collective kind);

// Tokens that a rank's experts see.
std::int64_t expert_tokens(const Experts& op, const OpShape& q);

}  // namespace servecast::perf
