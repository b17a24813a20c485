// SPDX-License-Identifier: Apache-2.0
#include "scheduler/speculation.hpp"

#include <fmt/core.h>

#include <cmath>

#include "base/check.hpp"

namespace servecast::scheduler {
namespace {

constexpr std::uint64_t kAlways = UINT64_MAX;

std::uint64_t limit_of(double rate) {
  SERVECAST_CHECK(rate >= 0.0 && rate <= 1.0);
  return rate == 1.0 ? kAlways : static_cast<std::uint64_t>(rate * 0x1.0p64);
}

}  // namespace

double Speculation::expected_tokens() const {
  double expected = 1.0, reached = 1.0;
  for (const double rate : rates) {
    reached *= rate;
    expected += reached;
  }
  return expected;
}

Result<std::vector<double>> acceptance_rates(std::vector<double> given, std::uint32_t drafts) {
  Problems problems;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] >= 0.0 && given[i] <= 1.0) continue;
    problems.push_back(
        {.code = "speculation.acceptance_rate",
         .message = fmt::format("acceptance rate {} is {}; it must be from 0 to 1", i, given[i]),
         .place = {},
         .hint = "write the chance that a draft token is accepted when those before it were"});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  if (given.empty()) given = {0.85, 0.3};
  given.resize(drafts, 0.0);
  return given;
}

std::vector<double> rates_of_accepted(double accepted, std::uint32_t drafts) {
  SERVECAST_CHECK(accepted >= 0.0 && accepted <= drafts);
  std::vector<double> rates(drafts, 0.0);
  const double whole = std::floor(accepted);
  for (std::uint32_t i = 0; i < drafts; ++i) {
    if (i < whole) rates[i] = 1.0;
    if (i == whole) rates[i] = accepted - whole;
  }
  return rates;
}

AcceptanceSampler::AcceptanceSampler(const Speculation& speculation, std::uint64_t rank)
    : random_(speculation.seed + rank) {
  for (const double rate : speculation.rates) limits_.push_back(limit_of(rate));
}

std::uint32_t AcceptanceSampler::draw() {
  std::uint32_t tokens = 1;
  for (const std::uint64_t limit : limits_) {
    if (limit != kAlways && random_.next() >= limit) break;
    ++tokens;
  }
  return tokens;
}

}  // namespace servecast::scheduler
