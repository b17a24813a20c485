// SPDX-License-Identifier: Apache-2.0
#include "report/kv_batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/report.hpp"

namespace servecast::report {
namespace {

using nlohmann::json;
using testing::SizeIs;

replay::KvEventRecord stored(std::int64_t at_ms, std::uint64_t hash) {
  replay::KvEventRecord record;
  record.at = Time{at_ms * 1'000'000};
  record.stored = true;
  record.blocks = {{hash, 1}};
  record.tokens = {5, 6, 7, 4'000'000'000};
  return record;
}

replay::KvEventRecord removed(std::int64_t at_ms, std::uint64_t hash) {
  replay::KvEventRecord record;
  record.at = Time{at_ms * 1'000'000};
  record.blocks = {{hash, 0}};
  return record;
}

std::string stream(cache::KvWireForm form, const std::vector<replay::KvEventRecord>& records) {
  Collector collector({.keep_kv_events = true, .kv_events_wire = form});
  for (const auto& record : records) collector.on_kv_event(record);
  std::string bytes;
  EXPECT_TRUE(write_kv_events(collector, [&](std::string_view piece) { bytes += piece; }));
  return bytes;
}

// By another library's reader.
std::vector<json> objects_of(std::string_view bytes) {
  std::vector<json> objects;
  std::istringstream in{std::string(bytes)};
  while (in.peek() != std::istringstream::traits_type::eof())
    objects.push_back(json::from_msgpack(in, false));
  return objects;
}

TEST(KvBatches, AreReadByAnotherReaderOneAfterTheOther) {
  auto child = stored(1500, UINT64_MAX);
  child.has_parent = true;
  child.parent = 9;
  using enum cache::KvForm;
  EXPECT_EQ(objects_of(stream({Array, Array}, {removed(1500, 8), child, removed(2000, 9)})),
            (std::vector<json>{json::parse(R"([1.5, [["BlockRemoved", [8], "GPU"],
                ["BlockStored", [18446744073709551615], 9, [5, 6, 7, 4000000000], 4, null, "GPU"]],
                0])"),
                               json::parse(R"([2.0, [["BlockRemoved", [9], "GPU"]], 0])")}));
  EXPECT_EQ(objects_of(stream({Map, Map}, {stored(1500, 9)})),
            (std::vector<json>{json::parse(R"({"ts": 1.5, "data_parallel_rank": 0, "events": [
                {"type": "BlockStored", "block_hashes": [9], "parent_block_hash": null,
                 "token_ids": [5, 6, 7, 4000000000], "block_size": 4, "lora_id": null,
                 "medium": "GPU"}]})")}));
}

TEST(KvBatches, ABatchIsOneRankAtOneInstant) {
  std::vector<replay::KvEventRecord> records;
  for (const std::uint32_t worker : {0, 0, 1, 1}) {
    for (const std::uint32_t rank : {0, 1}) {
      records.push_back(stored(10, 1));
      records.back().worker = worker;
      records.back().rank = rank;
      records.back().ranks = 2;
    }
  }
  records.push_back(records.back());
  records.push_back(records.back());
  records.back().at = Time{11'000'000};
  std::vector<json> ranks;
  for (const json& batch : objects_of(stream({}, records))) ranks.push_back(batch.at(2));
  EXPECT_EQ(ranks, (std::vector<json>{0, 1, 0, 1, 2, 3, 2, 3, 3}));
}

TEST(KvBatches, ALongBatchEnds) {
  auto large = stored(10, 1);
  large.tokens.assign(kKvBatchTokensMax, 1);
  EXPECT_THAT(objects_of(stream({}, {large, stored(10, 3)})), SizeIs(2));
}

TEST(KvBatches, NoEventsAreNoBatch) {
  EXPECT_EQ(stream({}, {}), "");
}

TEST(KvBatches, AreTheSameThroughATemporaryFile) {
  std::vector<replay::KvEventRecord> records;
  for (int i = 0; i < 100; ++i) records.push_back(stored(i / 3, 1));
  Collector small({.keep_kv_events = true,
                   .kv_events_wire = cache::KvWireForm{},
                   .spooled_bytes_in_memory_max = 50});
  for (const auto& record : records) small.on_kv_event(record);
  std::string bytes;
  EXPECT_TRUE(write_kv_events(small, [&](std::string_view piece) { bytes += piece; }));
  EXPECT_EQ(bytes, stream({}, records));
}

}  // namespace
}  // namespace servecast::report
