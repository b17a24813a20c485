// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/divider.hpp"
#include "base/hash.hpp"
#include "base/problem.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/time.hpp"

namespace servecast {
namespace {

std::string printed(double value) {
  std::string out;
  append_double(out, value);
  return out;
}

TEST(Time, RoundsHalfAwayFromZero) {
  EXPECT_EQ(ns_from_ms(0.0000005), 1);
  EXPECT_EQ(ns_from_ms(-0.0000005), -1);
  EXPECT_EQ(ns_from_ms(16.622914), 16'622'914);
  EXPECT_FALSE(ns_from_ms(std::nan("")));
  EXPECT_FALSE(ns_from_ms(1e300));
  EXPECT_EQ(ns_from_ms(4.6e12), 4'600'000'000'000'000'000);  // the limit is inside
  EXPECT_FALSE(ns_from_ms(4.61e12));
}

TEST(Random, GivesThePublishedStream) {  // replay.md 10.1 and 32 case 5
  Random random(42);
  EXPECT_EQ(random.next(), 9713269763989775522ULL);
  EXPECT_EQ(random.next(), 10011513049433592189ULL);
  EXPECT_EQ(random.next(), 11740708795755607249ULL);
  Random units(42);
  EXPECT_DOUBLE_EQ(units.unit(), 0.5265574090027738);
  EXPECT_DOUBLE_EQ(units.unit(), 0.5427252099031439);
  EXPECT_DOUBLE_EQ(units.unit(), 0.6364650991438949);
  EXPECT_DOUBLE_EQ(units.unit(), 0.4059017582307767);
}

TEST(Random, GivesTheOutputPlanStream) {  // replay.md 32 case 5
  Random plan(0xD37A0A7E5EEDULL);
  for (const std::uint32_t word :
       {952584220U, 694593853U, 2967053780U, 2932165014U, 2184908278U, 3971079078U}) {
    EXPECT_EQ(plan.word(), word);
  }
}

TEST(Random, SeeksToAnyWord) {
  Random straight(7);
  std::vector<std::uint32_t> words(100);
  for (std::uint32_t& word : words) word = straight.word();
  for (const std::size_t index : {0U, 1U, 15U, 16U, 17U, 63U, 99U}) {
    Random jumped(7);
    jumped.seek(index);
    EXPECT_EQ(jumped.word(), words[index]) << index;
  }
}

TEST(Random, BoundedDrawsStayInsideAndReachAll) {
  Random random(1, "test");
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Hash, GivesThePublishedBlockHashes) {  // replay.md 32 case 1
  const std::array<std::uint32_t, 4> a{1, 2, 3, 4}, b{5, 6, 7, 8}, seven{7, 7, 7, 7}, zero{},
      one{1, 1, 1, 1};
  EXPECT_EQ(local_block_hash(a), 14643705804678351452ULL);
  EXPECT_EQ(local_block_hash(b), 16777012769546811212ULL);
  EXPECT_EQ(chained_block_hash(local_block_hash(a), local_block_hash(b)), 4945711292740353085ULL);
  EXPECT_EQ(local_block_hash(seven), 16259602842512645169ULL);
  EXPECT_EQ(chained_block_hash(local_block_hash(seven), local_block_hash(seven)),
            9812067070305159075ULL);
  const std::uint64_t second = chained_block_hash(local_block_hash(zero), local_block_hash(zero));
  EXPECT_EQ(local_block_hash(zero), 13277122834585657784ULL);
  EXPECT_EQ(local_block_hash(one), 17197628134376687251ULL);
  EXPECT_EQ(second, 5437929509326533641ULL);
  EXPECT_EQ(chained_block_hash(second, local_block_hash(one)), 8356413304355882789ULL);
}

TEST(Hash, TheBlockHashIsXxh3WithItsSeedAtEverySize) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t size = 0; size < 600; ++size) {
    EXPECT_EQ(local_block_hash(tokens), xxh3(tokens.data(), 4 * tokens.size(), 1337)) << size;
    tokens.push_back(size * 2654435761U);
  }
}

TEST(Hash, Sha256OfTheEmptyText) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Hash, Sha256InPiecesIsThatOfTheWhole) {
  Sha256 digest;
  for (const std::string_view piece : {"a", "", "bc"}) digest.update(piece);
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Divider, EqualsTheOperatorsForEveryKindOfNumber) {
  const std::vector<std::uint32_t> interesting = {0,         1,
                                                  2,         3,
                                                  5,         63,
                                                  64,        65,
                                                  2175,      2176,
                                                  2177,      65535,
                                                  65536,     (1u << 31) - 1,
                                                  1u << 31,  UINT32_MAX - 1,
                                                  UINT32_MAX};
  Random random(7);
  for (int run = 0; run < 20000; ++run) {
    std::uint32_t divisor = 0;
    while (divisor == 0)
      divisor = run % 2 == 0 ? interesting[random.below(interesting.size())]
                             : random.word() >> random.below(32);
    const std::uint32_t n = run % 3 == 0 ? interesting[random.below(interesting.size())]
                                         : random.word() >> random.below(32);
    const Divider divider(divisor);
    ASSERT_EQ(divider.quotient(n), n / divisor) << n << " / " << divisor;
    ASSERT_EQ(divider.remainder(n), n % divisor) << n << " / " << divisor;
    ASSERT_EQ(divider.ceiling(n), n / divisor + (n % divisor > 0 ? 1 : 0)) << n << " / " << divisor;
  }
}

TEST(Text, PrintsDoublesShortestAndMarked) {  // replay.md 24
  EXPECT_EQ(printed(1), "1.0");
  EXPECT_EQ(printed(-0.0), "-0.0");
  EXPECT_EQ(printed(0.1), "0.1");
  EXPECT_EQ(printed(16.622914), "16.622914");
  EXPECT_EQ(printed(9007199254740991.0), "9007199254740991.0");
  EXPECT_EQ(printed(1e16), "1e16");
  EXPECT_EQ(printed(2.5e-7), "2.5e-07");
}

TEST(Text, GroupsThousands) {
  EXPECT_EQ(grouped(0), "0.00");
  EXPECT_EQ(grouped(999.994), "999.99");
  EXPECT_EQ(grouped(1234.5), "1,234.50");
  EXPECT_EQ(grouped(-1234567.891), "-1,234,567.89");
  EXPECT_EQ(grouped(INFINITY), "N/A");
}

TEST(Text, FindsTheNearestName) {
  const std::vector<std::string> names{"traffic", "engine", "router"};
  EXPECT_EQ(nearest_name("engnie", names), "engine");
  EXPECT_EQ(nearest_name("trafic", names), "traffic");
  EXPECT_EQ(nearest_name("ENGINES", names), "engine");
  EXPECT_FALSE(nearest_name("optimizer", names));
  const std::vector<std::string> short_names{"a30", "day"};
  EXPECT_EQ(nearest_name("a3", std::vector<std::string>{"a3x"}),
            std::nullopt);  // half of it is wrong
  EXPECT_EQ(nearest_name("A31", short_names), "a30");
  EXPECT_FALSE(nearest_name("h999", short_names, 4));
  EXPECT_FALSE(nearest_name("nope", short_names, 4));
}

TEST(Text, ShowsNothingThatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f\n\t"), "a\\x1b[2Jb\\x7f\\n\\t");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\x9B\xFF\xC3"), "\\x9b\\xff\\xc3");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F \xE2\x9C\x93 \xF0\x9F\x98\x80 \\"),
            "gr\xC3\xBC\xC3\x9F \xE2\x9C\x93 \xF0\x9F\x98\x80 \\");
}

TEST(Text, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc...");
  EXPECT_EQ(printable("ab\xC3\xBC", 3), "ab...");
}

TEST(Problem, IsOneLineOfBoundedLength) {
  EXPECT_EQ(to_text({"x", "bad \x1b", {"a\n", 3, 7}, "try \x9b"}),
            "a\\n:3:7: bad \\x1b (try \\x9b)");
  EXPECT_LT(to_text({"x", std::string(1'000'000, 'a'), {}, ""}).size(), 5000U);
}

TEST(Problem, SaysPlaceMessageAndHint) {
  EXPECT_EQ(to_text({"x", "bad", {"a.yaml", 3, 7}, "try b"}), "a.yaml:3:7: bad (try b)");
  EXPECT_EQ(to_text({"x", "bad", {}, ""}), "bad");
}

}  // namespace
}  // namespace servecast
