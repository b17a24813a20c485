// SPDX-License-Identifier: Apache-2.0
// Which measured rows count, which only stand apart, and which do not, each with its reason
// (accuracy-notes.md 1).
//
//   std::vector<JudgedRow> judged = judge(std::move(rows), shipped_rules(), {});
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fit/drafts.hpp"
#include "fit/measured/measured.hpp"
#include "fit/named_rules.hpp"

namespace servecast::fit {

enum class Status : std::uint8_t {
  Use,           // counts in the headline errors
  Special,       // predicted, in a line of its own
  Unanswerable,  // counts as not covered
  Duplicate,     // the rest leave the denominator of coverage
  Excluded,
  Impossible,
  Disaggregated,
};
std::string_view to_string(Status status);  // "use", "special", ...
// Counts in the denominator of coverage.
inline bool is_counted(Status status) {
  return status <= Status::Unanswerable;
}

struct JudgedRow {
  MeasuredRow row = {};
  Status status = Status::Use;
  std::string reason = {};  // of any status but Use
  Drafts drafts = {};
  Protocol protocol = Protocol::Fixed;
  // Disaggregated: the number of prefill or of decode workers is missing; one each is assumed.
  bool assumed_pools = false;
  bool assumed_concurrency = false;  // the file had none; that of its batch is taken
};

// In the order of the rows, which of exact repetitions share a group: the index of the one that is
// kept, the row that fills most fields (the first of several). Rows repeat one another when
// lengths, concurrency, system, TTFT and TPOT are equal to the nanosecond and both times are there.
std::vector<std::size_t> twins_of(const std::vector<MeasuredRow>& rows);

// Judges by everything that needs no model card. A row without concurrency takes batch *
// attention_data and is Special.
std::vector<JudgedRow> judge(std::vector<MeasuredRow> rows, const std::vector<NamedRule>& rules,
                             const DraftOptions& options);

}  // namespace servecast::fit
