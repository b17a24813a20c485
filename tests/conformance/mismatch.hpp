// SPDX-License-Identifier: Apache-2.0
// The first field in which a record differs from what was expected, in words.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "conformance/expectations.hpp"

namespace servecast::test {

// Remembers the first mismatch; later calls do nothing.
class Mismatch {
 public:
  using Rows = std::vector<std::vector<std::uint64_t>>;  // lists of numbers, one row each

  explicit Mismatch(std::string subject) : subject_(std::move(subject)) {}

  void moment(std::string_view name, Time actual, std::optional<double> expected) {
    if (actual == kNever && !expected) return;
    if (actual != kNever && expected && std::abs(to_ms(actual) - *expected) <= kToleranceMs) return;
    tell(name, actual == kNever ? "never" : fmt::format("{}", to_ms(actual)),
         expected ? fmt::format("{}", *expected) : "never");
  }
  void milliseconds(std::string_view name, Duration actual, double expected) {
    if (std::abs(to_ms(actual) - expected) <= kToleranceMs) return;
    tell(name, fmt::format("{}", to_ms(actual)), fmt::format("{}", expected));
  }
  template <class A, class B>
  void exact(std::string_view name, const A& actual, const B& expected) {
    if (std::cmp_equal(actual, expected)) return;
    tell(name, fmt::format("{}", actual), fmt::format("{}", expected));
  }
  void word(std::string_view name, std::string_view actual, std::string_view expected) {
    if (actual != expected) tell(name, std::string(actual), std::string(expected));
  }
  void rows(std::string_view name, const Rows& actual, const Rows& expected) {
    if (actual == expected) return;
    std::size_t i = 0;
    while (i < actual.size() && i < expected.size() && actual[i] == expected[i]) ++i;
    const auto at = [i](const Rows& list) {
      return i < list.size() ? fmt::format("[{}]", fmt::join(list[i], ", "))
                             : "the end of the list";
    };
    tell(fmt::format("{}[{}]", name, i), at(actual), at(expected));
  }
  // A number that both compute in doubles.
  void number(std::string_view name, double actual, double expected) {
    if (!close(actual, expected))
      tell(name, fmt::format("{}", actual), fmt::format("{}", expected));
  }
  void moments(std::string_view name, const std::vector<Time>& actual,
               const std::vector<double>& expected) {
    exact(fmt::format("number of {}", name), actual.size(), expected.size());
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
      moment(fmt::format("{}[{}]", name, i), actual[i], expected[i]);
  }
  std::optional<std::string> take() { return std::move(found_); }

 private:
  void tell(std::string_view name, const std::string& actual, const std::string& expected) {
    if (found_) return;
    found_ = fmt::format("{}: {} is {}, expected {}", subject_, name, actual, expected);
  }
  std::string subject_;
  std::optional<std::string> found_;
};

}  // namespace servecast::test
