// SPDX-License-Identifier: Apache-2.0
// What the parts of the audit share.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "support/recording.hpp"

namespace servecast::test {

// Collects broken laws, up to a limit.
inline constexpr std::size_t kViolationsMax = 20;

class Violations {
 public:
  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> law, Args&&... args) {
    if (holds || lines_.size() >= kViolationsMax) return;
    lines_.push_back(fmt::format(law, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// Tokens of which every reuse is a multiple.
inline std::uint64_t match_unit(const scheduler::RankConfig& rank) {
  if (rank.grouped) return rank.grouped->rules ? rank.grouped->rules->alignment.tokens : 1;
  return rank.state && rank.state->match_unit > 0 && rank.prefix_caching ? rank.state->match_unit
                                                                         : rank.block_tokens;
}

// The KV events of a run (audit_events.cpp).
void audit_events(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v);

}  // namespace servecast::test
