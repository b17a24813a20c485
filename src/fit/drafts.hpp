// SPDX-License-Identifier: Apache-2.0
// Did a run speculate? Files seldom say so (accuracy-notes.md 1.2, 1.8).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fit/measured/measured.hpp"

namespace servecast::fit {

struct Drafts {
  enum class Source : std::uint8_t {
    None,      // the model has no draft heads that anybody uses
    Given,     // the row, the mapping or the command line says it
    Inferred,  // by the rule below
  };
  std::uint32_t count = 0;  // draft tokens of a verification
  double accepted = 0;      // of them, on average
  Source source = Source::None;
};
std::string_view to_string(Drafts::Source source);  // "none", "given", "inferred"

// Of so many draft tokens, where nobody says (accuracy-notes.md 2.2: 2.12 tokens a step with 3
// drafts, 1.70 with 1; between and beyond: a guess). 0 <= drafts <= 5.
double accepted_by_default(std::uint32_t drafts);

struct DraftOptions {
  std::optional<std::uint32_t> nextn = {};  // for rows that do not say
  std::optional<double> accepted = {};
};

// Labels every row; `twins[i]` is the group of exact repetitions that row i is in. The rule for
// DeepSeek-R1: rows that a DeepSeek-V3 row repeats ran without drafts, and so did V3 rows; other
// aggregated TensorRT-LLM rows ran with them in 1.2.0rc6.post3 and 1.1.0rc2.post2, except the
// slower of two rows of one configuration whose TPOT differs by 1.35 or more. Drafts are 3 up to 32
// requests a rank, else 1.
std::vector<Drafts> label_drafts(const std::vector<MeasuredRow>& rows,
                                 const std::vector<std::size_t>& twins,
                                 const DraftOptions& options);

}  // namespace servecast::fit
