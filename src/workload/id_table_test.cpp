// SPDX-License-Identifier: Apache-2.0
#include "workload/id_table.hpp"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/random.hpp"

namespace servecast::workload {
namespace {

TEST(IdTable, NumbersIdsInFirstSeenOrder) {
  IdTable table;
  EXPECT_EQ(table.intern(UINT64_MAX), 0u);
  EXPECT_EQ(table.intern(0), 1u);
  EXPECT_EQ(table.intern(UINT64_MAX), 0u);
  EXPECT_EQ(table.intern(7), 2u);
  EXPECT_EQ(table.size(), 3u);
}

TEST(IdTable, AgreesWithAPlainMap) {
  IdTable table;
  std::unordered_map<std::uint64_t, std::uint32_t> model;
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t id = random.below(50'000) << 40;
    const auto expected = model.emplace(id, static_cast<std::uint32_t>(model.size())).first->second;
    ASSERT_EQ(table.intern(id), expected);
  }
}

TEST(IdTable, TakesNoMoreThanItsLimitButStillKnowsTheOld) {
  IdTable table(2);
  EXPECT_TRUE(table.intern(10));
  EXPECT_TRUE(table.intern(11));
  EXPECT_FALSE(table.intern(12));
  EXPECT_EQ(table.intern(11), 1u);
}

}  // namespace
}  // namespace servecast::workload
