// SPDX-License-Identifier: Apache-2.0
#include "scheduler/pass_log.hpp"

#include <gtest/gtest.h>

namespace servecast::scheduler {
namespace {

TEST(PassLog, KnowsTheEndOfEveryPassThatWasNotTrimmed) {
  PassLog log;
  for (std::int64_t pass = 0; pass < 100; ++pass) log.push({10 * pass});
  log.trim(40);
  for (std::uint64_t pass = 40; pass < 100; ++pass) {
    EXPECT_EQ(log.end(pass).ns, 10 * static_cast<std::int64_t>(pass));
  }
  log.push({7});
  EXPECT_EQ(log.end(100), Time{7});
}

TEST(PassLog, ATrimThatWouldGoBackChangesNothing) {
  PassLog log;
  for (std::int64_t pass = 0; pass < 10; ++pass) log.push({pass});
  log.trim(5);
  log.trim(3);
  EXPECT_EQ(log.end(5), Time{5});
  EXPECT_EQ(log.end(9), Time{9});
}

TEST(PassLog, MayForgetEverything) {
  PassLog log;
  log.push({1});
  log.push({2});
  log.trim(2);
  log.push({3});
  EXPECT_EQ(log.end(2), Time{3});
}

// A trim walks the live requests, so what could not be forgotten must not make it come every pass.
TEST(PassLog, WantsATrimOnlyAfterItHasDoubled) {
  PassLog log;
  std::int64_t pushed = 0;
  const auto push_until_trim = [&] {
    std::int64_t count = 0;
    while (!log.wants_trim()) {
      log.push({pushed++});
      ++count;
    }
    return count;
  };
  EXPECT_EQ(push_until_trim(), 4097);
  log.trim(0);  // a live request needs all of it
  EXPECT_EQ(push_until_trim(), 4097 + 1);
  log.trim(static_cast<std::uint64_t>(pushed));
  EXPECT_EQ(push_until_trim(), 4097);
}

}  // namespace
}  // namespace servecast::scheduler
