// SPDX-License-Identifier: Apache-2.0
// Rows that are known to be wrong or special and that no general rule finds: data/hygiene, each
// entry with its reason and source (accuracy-notes.md 1.9, 1.10).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "fit/measured/measured.hpp"
#include "perf/placement.hpp"

namespace servecast::fit {

struct NamedRule {
  enum class Verdict : std::uint8_t { Exclude, Special };
  std::vector<std::string> ids = {};  // patterns: * is any text
  Verdict verdict = Verdict::Exclude;
  std::string reason = {};
  std::string source = {};
  // Bounds of the rows meant, inclusive.
  std::optional<std::uint32_t> concurrency_min, concurrency_max, tensor_min, tensor_max,
      input_tokens, output_tokens;
};

bool matches(std::string_view pattern, std::string_view text);
bool applies(const NamedRule& rule, const MeasuredRow& row);

// One file of data/hygiene. Problems: an unknown key, a rule without ids, verdict or reason.
Result<std::vector<NamedRule>> parse_rules(std::string_view json, const std::string& file);
// All of the program.
std::vector<NamedRule> shipped_rules();

}  // namespace servecast::fit
