// SPDX-License-Identifier: Apache-2.0
#include "cli/kv_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/kv_events_text.hpp"

namespace servecast::cli {
namespace {

using namespace cache;
using ::testing::HasSubstr;

class KvStream : public testing::Test {
 protected:
  KvStream() : path_(testing::TempDir() + "kv_stream_" + std::to_string(::getpid())) {}
  ~KvStream() override { std::filesystem::remove(path_); }

  // The batches of a file with these bytes, or its problem.
  Result<std::vector<KvBatch>> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    KvWireDecoder decoder;
    std::vector<KvBatch> batches;
    const auto done =
        read_kv_stream(path_, decoder, [&](const KvBatch& batch) { batches.push_back(batch); });
    if (!done) return tl::unexpected(done.error());
    return batches;
  }

  std::string path_;
};

KvBatch a_batch(double ts, std::uint32_t tokens) {
  BlockStored stored{.block_hashes = {tokens}, .block_size = tokens};
  for (std::uint32_t i = 0; i < tokens; ++i) stored.token_ids.push_back(UINT32_MAX - i);
  return {.ts = ts, .events = {stored}};
}

TEST_F(KvStream, ReadsBatchesThatAreLongerThanThePiecesOfTheFile) {
  std::string bytes;
  std::vector<KvBatch> batches;
  for (const std::uint32_t tokens : {1U, 1'500'000U, 7U, 209'000U, 300'000U, 2U}) {
    batches.push_back(a_batch(static_cast<double>(batches.size()), tokens));
    append_batch(bytes, batches.back(), {.events = KvForm::Map});
  }
  const auto got = read(bytes);
  ASSERT_TRUE(got) << to_text(got.error().front());
  EXPECT_EQ(*got, batches);
}

TEST_F(KvStream, ProblemsNameTheFileAndTheByteInIt) {
  std::string bytes;
  append_batch(bytes, a_batch(1, 400'000), {});
  append_batch(bytes, a_batch(2, 400'000), {});
  const std::size_t border = bytes.size();
  append_batch(bytes, a_batch(3, 10), {});
  const auto cut = read(bytes.substr(0, bytes.size() - 1));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().front().place.file, path_);
  EXPECT_EQ(cut.error().front().message, "batch at byte " + std::to_string(border) +
                                             ": the data ends within it, at byte " +
                                             std::to_string(bytes.size() - 1));
  const auto wrong = read(bytes + "\x07");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().front().message,
              HasSubstr("batch at byte " + std::to_string(bytes.size()) + ": must be an array"));
}

TEST(KvEventLines, HoldEveryFieldThatIsSet) {
  BlockStored stored{.block_hashes = {std::string("\x0b\xff"), 7U},
                     .parent_block_hash = std::string("\x01"),
                     .token_ids = {1, 2},
                     .block_size = 1,
                     .lora_id = -4,
                     .medium = "CPU",
                     .lora_name = "a\"b",
                     .extra_keys = std::string("\x91\x05"),
                     .group_idx = 1,
                     .kv_cache_spec_kind = "window",
                     .kv_cache_spec_sliding_window = 9};
  std::string lines;
  append_event_lines(lines, {.ts = 1.5,
                             .events = {stored, BlockRemoved{{UINT64_MAX}}, AllBlocksCleared{}},
                             .data_parallel_rank = 2});
  EXPECT_EQ(lines,
            R"({"block_hashes":["0x0bff",7],"block_size":1,"data_parallel_rank":2,)"
            R"("extra_keys":"0x9105","group_idx":1,"kv_cache_spec_kind":"window",)"
            R"("kv_cache_spec_sliding_window":9,"lora_id":-4,"lora_name":"a\"b","medium":"CPU",)"
            R"("parent_block_hash":"0x01","token_ids":[1,2],"ts":1.5,"type":"BlockStored"})"
            "\n"
            R"({"block_hashes":[18446744073709551615],"data_parallel_rank":2,"ts":1.5,)"
            R"("type":"BlockRemoved"})"
            "\n"
            R"({"data_parallel_rank":2,"ts":1.5,"type":"AllBlocksCleared"})"
            "\n");
}

TEST(KvEventTable, ShowsTheFirstBlocksAndHowManyMore) {
  KvStreamFacts facts{.file = "f"};
  for (std::uint32_t i = 0; i < 3; ++i) {
    KvBatch batch = a_batch(0, 0);
    auto& stored = std::get<BlockStored>(batch.events[0]);
    stored.block_size = 1;
    stored.group_idx = i;
    stored.block_hashes.clear();
    for (std::uint64_t hash = 0; hash < 9; ++hash) stored.block_hashes.emplace_back(hash);
    facts.index.apply(batch);
  }
  const std::string table = table_of(facts);
  EXPECT_THAT(table,
              HasSubstr("\n   0  GPU           2                     1                     0\n"
                        "... 7 more: --format json lists all\n"));
}

}  // namespace
}  // namespace servecast::cli
