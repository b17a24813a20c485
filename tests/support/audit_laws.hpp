// SPDX-License-Identifier: Apache-2.0
// What the parts of the audit share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
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

// What the passes of a run say of one request.
struct Account {
  const replay::RequestRecord* record = nullptr;  // none: it did not end
  std::vector<Time> tokens;
  std::vector<Time> steps;  // that gave tokens, one or more each
  Time first_admit = kNever;
  std::uint32_t admissions = 0, preemptions = 0, reused = 0, reused_first = 0;

  void admit(Time at, std::uint32_t reused_tokens);
  void give(Time at, std::uint32_t count);
};

// Whether the records, the counters and the gap table say the same as the accounts
// (audit_accounts.cpp). The first holds only when every pass that began was also recorded.
void compare_accounts(const replay::Deployment& deployment, const Recording& recording,
                      std::span<const std::pair<std::uint64_t, const Account*>> accounts,
                      Violations& v);
void compare_gaps(const Recording& recording,
                  std::span<const std::pair<std::uint64_t, const Account*>> accounts, bool capped,
                  Violations& v);

// The passes of a run of SGLang ranks, and what their KV events should tell (audit_sglang.cpp).
void audit_sglang(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v);

// The KV events of a run (audit_events.cpp).
void audit_events(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v);

}  // namespace servecast::test
