// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cache/some_kv_batches.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using namespace std::string_literals;

// Bytes from hexadecimal digits; blanks are for the reader.
std::string bytes(std::string_view hex) {
  std::string out, digits;
  for (const char c : hex) {
    if (c != ' ') digits += c;
    if (digits.size() < 2) continue;
    out += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return out;
}

// realdata.md, cases 24 and 25, spelled by hand from the msgpack format.
const std::string kStoredArray =
    bytes("96 ab") + "BlockStored" + bytes("92 0b 0c  c0  98 0102030405060708  04  c0");
const std::string kStoredMap = bytes("86 a4") + "type" + bytes("ab") + "BlockStored" + bytes("ac") +
                               "block_hashes" + bytes("92 0b 0c b1") + "parent_block_hash" +
                               bytes("c0 a9") + "token_ids" + bytes("98 0102030405060708 aa") +
                               "block_size" + bytes("04 a7") + "lora_id" + bytes("c0");
const std::string kRemovedMap = bytes("83 a4") + "type" + bytes("ac") + "BlockRemoved" +
                                bytes("ac") + "block_hashes" + bytes("91 0c a6") + "medium" +
                                bytes("a3") + "GPU";

std::string array_batch(const std::string& event) {
  return bytes("92 cb3ff8000000000000 91") + event;
}
std::string map_batch(const std::string& event) {
  return bytes("82 a2") + "ts" + bytes("cb3ff8000000000000 a6") + "events" + bytes("91") + event;
}

const BlockStored kStored{
    .block_hashes = {11U, 12U}, .token_ids = {1, 2, 3, 4, 5, 6, 7, 8}, .block_size = 4};

KvBatch decoded(const std::string& payload) {
  KvWireDecoder decoder;
  const Result<KvBatch> batch = decoder.decode(payload);
  if (batch) return *batch;
  ADD_FAILURE() << to_text(batch.error().front());
  return {};
}

std::string refusal(const std::string& payload) {
  KvWireDecoder decoder;
  const Result<KvBatch> batch = decoder.decode(payload);
  return batch ? "accepted" : to_text(batch.error().front());
}

TEST(KvWire, ReadsTheSameStoreInAllFourCombinations) {  // bugs.md A22, realdata.md case 24
  const KvBatch want{.ts = 1.5, .events = {kStored}};
  EXPECT_EQ(decoded(array_batch(kStoredArray)), want);
  EXPECT_EQ(decoded(array_batch(kStoredMap)), want);
  EXPECT_EQ(decoded(map_batch(kStoredArray)), want);
  EXPECT_EQ(decoded(map_batch(kStoredMap)), want);
}

TEST(KvWire, ReadsTheSameRemovalInBothBatches) {  // realdata.md case 25
  const KvBatch want{.ts = 1.5, .events = {BlockRemoved{{12U}, "GPU", std::nullopt}}};
  EXPECT_EQ(decoded(array_batch(kRemovedMap)), want);
  EXPECT_EQ(decoded(map_batch(kRemovedMap)), want);
}

TEST(KvWire, WritesTheBytesOfTheFormat) {
  const KvBatch batch{.ts = 1.5, .events = {kStored}};
  for (const KvForm outer : {KvForm::Array, KvForm::Map}) {
    for (const KvForm inner : {KvForm::Array, KvForm::Map}) {
      std::string out = "before";
      append_batch(out, batch, {outer, inner});
      const std::string& event = inner == KvForm::Array ? kStoredArray : kStoredMap;
      EXPECT_EQ(out, "before" + (outer == KvForm::Array ? array_batch(event) : map_batch(event)));
    }
  }
}

TEST(KvWire, WritesNullInAnArrayOnlyBeforeAFieldThatIsSet) {
  BlockRemoved removed{.block_hashes = {7U}, .group_idx = 2};
  std::string out;
  append_batch(out, {.ts = 0, .events = {removed, AllBlocksCleared{}}, .data_parallel_rank = 3},
               {});
  EXPECT_EQ(out, bytes("93 cb0000000000000000 92 94 ac") + "BlockRemoved" +
                     bytes("91 07 c0 02 91 b0") + "AllBlocksCleared" + bytes("03"));
}

TEST(KvWire, RandomBatchesSurviveEveryForm) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const KvBatch batch = a_random_batch(random);
    for (const KvForm outer : {KvForm::Array, KvForm::Map}) {
      for (const KvForm inner : {KvForm::Array, KvForm::Map}) {
        std::string out;
        append_batch(out, batch, {outer, inner});
        KvWireDecoder decoder;
        const Result<KvBatch> again = decoder.decode(out);
        ASSERT_TRUE(again) << to_text(again.error().front());
        EXPECT_EQ(*again, batch) << round;
        EXPECT_THAT(decoder.notes().unknown_fields, IsEmpty());
      }
    }
  }
}

TEST(KvWire, TakesOneBatchAfterTheOtherOffAStream) {
  std::string stream;
  const KvBatch first{.ts = 1, .events = {kStored}},
      second{.ts = 2, .events = {AllBlocksCleared{}}};
  append_batch(stream, first, {});
  const std::size_t border = stream.size();
  append_batch(stream, second, {KvForm::Map, KvForm::Map});
  KvWireDecoder decoder;
  std::string_view rest = stream;
  EXPECT_EQ(*decoder.next(rest), first);
  EXPECT_EQ(decoder.offset(), border);
  EXPECT_EQ(*decoder.next(rest), second);
  EXPECT_EQ(*decoder.next(rest), std::nullopt);
  EXPECT_EQ(decoder.offset(), stream.size());
}

TEST(KvWire, ABatchThatIsNotWholeIsNotTaken) {
  const std::string whole = map_batch(kStoredMap);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    KvWireDecoder decoder;
    const std::string_view start = std::string_view(whole).substr(0, size);
    std::string_view rest = start;
    const auto batch = decoder.next(rest);
    ASSERT_TRUE(batch) << to_text(batch.error().front());
    EXPECT_EQ(*batch, std::nullopt);
    EXPECT_EQ(rest, start);
    EXPECT_EQ(refusal(std::string(start)),
              "batch at byte 0: the data ends within it, at byte " + std::to_string(size));
  }
}

TEST(KvWire, CountsWhatItDoesNotKnowAndReadsOn) {
  KvWireDecoder decoder;
  const std::string unknown_tag = bytes("92 a5") + "Moved" + bytes("01");
  const std::string more_fields = bytes("84 a4") + "type" + bytes("ac") + "BlockRemoved" +
                                  bytes("ac") + "block_hashes" + bytes("91 0c a6") + "colour" +
                                  bytes("81 a1") + "x" + bytes("c7 01 05 00") + bytes("07 c3");
  const std::string longer = bytes("96 ac") + "BlockRemoved" + bytes("91 0d c0 c0 01 02");
  std::string_view rest;
  const std::string stream =
      bytes("94 01 93") + unknown_tag + more_fields + longer + bytes("c0 a1") + "z";
  rest = stream;
  const auto batch = decoder.next(rest);
  ASSERT_TRUE(batch) << to_text(batch.error().front());
  EXPECT_EQ(**batch, (KvBatch{.ts = 1, .events = {BlockRemoved{{12U}}, BlockRemoved{{13U}}}}));
  EXPECT_THAT(decoder.notes().unknown_tags, ElementsAre(Pair("Moved", 1)));
  EXPECT_THAT(
      decoder.notes().unknown_fields,
      ElementsAre(Pair("BlockRemoved.(the integer 7)", 1), Pair("BlockRemoved.colour", 1),
                  Pair("BlockRemoved[4]", 1), Pair("BlockRemoved[5]", 1), Pair("batch[3]", 1)));
}

TEST(KvWire, ReadsHashesAsSignedAndUnsignedIntegersAndBytes) {
  const std::string event = bytes("92 ac") + "BlockRemoved" +
                            bytes("94 ff cf ffffffffffffffff cf 0000000100000001 c4 02 0b0c");
  const KvBatch batch = decoded(array_batch(event));
  const auto& hashes = std::get<BlockRemoved>(batch.events.at(0)).block_hashes;
  EXPECT_THAT(hashes, ElementsAre(KvHash(UINT64_MAX), KvHash(UINT64_MAX), KvHash(4294967297U),
                                  KvHash("\x0b\x0c"s)));
  EXPECT_EQ(to_text(hashes[3]), "0x0b0c");
}

TEST(KvWire, RefusesWhatBreaksARuleAndSaysWhere) {
  const auto event = [](std::string_view tag, std::string_view hex) {
    return array_batch(bytes("96") + static_cast<char>(0xa0 + tag.size()) + std::string(tag) +
                       bytes(hex));
  };
  EXPECT_EQ(refusal(event("BlockStored", "92 0b 0c c0 93 010203 04 c0")),
            "batch at byte 0: event 0 (BlockStored): token_ids has 3 tokens; 2 block_hashes of "
            "block_size 4 have 8");
  EXPECT_EQ(
      refusal(event("BlockStored", "91 0b c0 90 00 c0")),
      "batch at byte 0: event 0 (BlockStored): block_size must be at least 1, not the integer "
      "0");
  EXPECT_EQ(refusal(event("BlockStored", "92 0b c3 c0 90 04 c0")),
            "batch at byte 0: event 0 (BlockStored): block_hashes must be hashes: 64-bit integers "
            "or bytes, not true (element 1)");
  EXPECT_THAT(refusal(event("BlockStored", "91 0b c0 94 010203ff 04 c0")),
              HasSubstr("token_ids must be an integer from 0 to 4294967295, not the integer -1 "
                        "(element 3)"));
  EXPECT_THAT(refusal(event("BlockRemoved", "91 0b 05 c0 c0 c0")),
              HasSubstr("medium must be a string, not the integer 5"));
  EXPECT_THAT(refusal(array_batch(bytes("91 ab") + "BlockStored")),
              HasSubstr("block_hashes is missing: it must be an array"));
  EXPECT_THAT(refusal(array_batch(bytes("90"))), HasSubstr("event 0: its tag is missing"));
  EXPECT_THAT(refusal(array_batch(bytes("05"))),
              HasSubstr("event 0: must be an array or a map, not the integer 5"));
  EXPECT_THAT(refusal(bytes("92 cb7ff8000000000000 90")), HasSubstr("ts must be a finite number"));
  EXPECT_THAT(refusal(bytes("92 01 80")), HasSubstr("events must be an array, not a map of 0"));
  EXPECT_THAT(refusal(bytes("93 01 90 ff")), HasSubstr("data_parallel_rank must be an integer"));
  EXPECT_THAT(refusal(bytes("82 a2") + "ts" + bytes("01 a2") + "ts" + bytes("01")),
              HasSubstr("batch at byte 0: ts is given twice"));
  EXPECT_EQ(
      refusal("{\"type\":\"stored\"}\n"),
      "batch at byte 0: must be an array or a map, not the integer 123 (this looks like JSON; "
      "expected is msgpack)");
  EXPECT_THAT(refusal(array_batch(kStoredArray) + "x"), HasSubstr("1 bytes follow it"));
}

TEST(KvWire, RefusesHostileStructureWithoutBuildingIt) {
  EXPECT_EQ(refusal(array_batch(bytes("92 a2 c328 01"))),
            "batch at byte 0: a string that is not UTF-8 at byte 13");
  EXPECT_EQ(refusal(bytes("92 01 91 c1")),
            "batch at byte 0: a byte that msgpack has no meaning for at byte 3");
  EXPECT_THAT(refusal(std::string(1'000'000, '\x91')),
              HasSubstr("more than 32 arrays and maps within each other at byte 32"));
  // An array of four billion items, a map of as many, and two gigabytes of text, announced only.
  for (const char* announced : {"dd ffffffff", "df ffffffff", "db 7fffffff", "c6 ffffffff"}) {
    EXPECT_THAT(refusal(bytes("92 01") + bytes(announced) + "abc"), HasSubstr("ends within it"));
  }
  EXPECT_THAT(refusal(bytes("c6 7fffffff") + std::string(kKvBatchBytesMax, 'x')),
              HasSubstr("larger than 32 MiB"));
}

TEST(KvWire, MemoryOfUnknownNamesIsBounded) {
  KvWireDecoder decoder;
  for (int i = 0; i < 1000; ++i) {
    const std::string tag = "T" + std::to_string(1000 + i);
    std::string_view rest;
    const std::string batch = bytes("92 01 91 91 a5") + tag;
    rest = batch;
    ASSERT_TRUE(decoder.next(rest));
  }
  EXPECT_EQ(decoder.notes().unknown_tags.size(), kKvUnknownNamesMax + 1);
  EXPECT_EQ(decoder.notes().unknown_tags.at("(others)"), 1000 - kKvUnknownNamesMax);
}

TEST(KvWire, EveryChangedByteIsReadOrRefused) {
  std::string whole = map_batch(kStoredArray) + array_batch(kStoredMap) + map_batch(kRemovedMap);
  Random random(9);
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = whole;
    for (std::uint64_t n = 1 + random.next() % 3; n > 0; --n)
      changed[random.next() % changed.size()] = static_cast<char>(random.next());
    KvWireDecoder decoder;
    std::string_view rest = changed;
    for (;;) {
      const auto batch = decoder.next(rest);
      if (!batch) {
        EXPECT_THAT(batch.error().front().message, HasSubstr("batch at byte "));
        break;
      }
      if (!*batch) break;
      std::string again;
      append_batch(again, **batch, {});
      EXPECT_EQ(decoded(again), **batch);
    }
  }
}

}  // namespace
}  // namespace servecast::cache
