// SPDX-License-Identifier: Apache-2.0
#include "perf/table/store.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "perf/table/import.hpp"
#include "perf/table/parquet.hpp"

namespace servecast::perf {
namespace {

namespace fs = std::filesystem;

// A folder of this test alone, gone with it.
struct Folder {
  fs::path path =
      fs::path(testing::TempDir()) /
      ("servecast_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

Column whole(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name),
          .kind = Column::Kind::Whole,
          .whole = std::move(values),
          .real = {},
          .words = {}};
}

Column real(std::string name, std::vector<double> values) {
  return {.name = std::move(name),
          .kind = Column::Kind::Real,
          .whole = {},
          .real = std::move(values),
          .words = {}};
}

Column text(std::string name, std::vector<std::string> words, std::vector<std::int64_t> places) {
  return {.name = std::move(name),
          .kind = Column::Kind::Text,
          .whole = std::move(places),
          .real = {},
          .words = std::move(words)};
}

MeasuredTable gemm_table() {
  return {.source = {"h200_sxm", "gemm", "vllm", "0.24.0"},
          .rows = 3,
          .rows_skipped = 0,
          .columns = {text("gemm_dtype", {"fp8", "awq"}, {0, 1, 0}),
                      whole("m", {1, 70000, 5'000'000'000}), real("latency", {0.1, 0.25, 1.0 / 3}),
                      whole("beam_width", {1, 1, 1})}};
}

TEST(Store, GivesBackWhatWasWritten) {
  const Folder folder;
  const fs::path file = folder.path / "h200_sxm/gemm/vllm/0.24.0.table";
  ASSERT_TRUE(write_table(gemm_table(), file));
  const auto back = read_table(file);
  ASSERT_TRUE(back) << to_text(back.error().front());
  EXPECT_EQ(back->source, gemm_table().source);
  EXPECT_EQ(back->find("m")->whole, gemm_table().columns[1].whole);
  EXPECT_EQ(back->find("latency")->real, gemm_table().columns[2].real);
  EXPECT_EQ(back->find("gemm_dtype")->text(1), "awq");
  const auto stored = stored_tables(folder.path);
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->size(), 1U);
  EXPECT_EQ(stored->front().source, gemm_table().source);
}

TEST(Store, NoticesAChangedByte) {
  const Folder folder;
  const fs::path file = folder.path / "t.table";
  ASSERT_TRUE(write_table(gemm_table(), file));
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(-1, std::ios::end);
  bytes.put('\x55');
  bytes.close();
  const auto back = read_table(file);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().front().code, "perfdata.corrupt");
  EXPECT_EQ(back.error().front().place.file, file.string());
}

TEST(Store, SaysWhichFileIsNoTable) {
  const Folder folder;
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "x.table") << "{\"schema\": \"other\"}\n";
  EXPECT_EQ(read_table(folder.path / "x.table").error().front().code, "perfdata.corrupt");
  EXPECT_EQ(read_table(folder.path / "y.table").error().front().code, "perfdata.unreadable");
  EXPECT_EQ(stored_tables(folder.path / "none").error().front().code, "perfdata.no_tables");
}

TEST(Import, LeavesOutRowsThatNoLoaderTakes) {
  const auto table = cleaned(gemm_table(), "f");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows, 2U);
  EXPECT_EQ(table->rows_skipped, 1U);
  EXPECT_EQ(table->find("beam_width"), nullptr);
  EXPECT_EQ(table->find("m")->whole, (std::vector<std::int64_t>{1, 5'000'000'000}));
}

TEST(Import, LeavesOutEagerCollectivesButOnOneSystem) {
  MeasuredTable table{
      .source = {"h200_sxm", "custom_allreduce", "vllm", "0.24.0"},
      .rows = 2,
      .rows_skipped = 0,
      .columns = {text("backend", {"vllm_eager", "vllm_graph"}, {0, 1}), real("latency", {1, 2})}};
  EXPECT_EQ(cleaned(table, "f")->rows, 1U);
  table.source.system = "b60";
  EXPECT_EQ(cleaned(table, "f")->rows, 2U);
}

TEST(Import, LeavesOutPrefillsFasterThanTheGpu) {
  MeasuredTable table{
      .source = {"b200_sxm", "context_attention", "sglang", "0.5.10"},
      .rows = 2,
      .rows_skipped = 0,
      .columns = {whole("batch_size", {8, 8}), whole("isl", {16384, 16384}),
                  whole("num_heads", {64, 64}), whole("num_key_value_heads", {1, 1}),
                  whole("head_dim", {256, 256}), whole("window_size", {0, 0}),
                  text("attn_dtype", {"bfloat16"}, {0, 0}),
                  text("kv_cache_dtype", {"bfloat16"}, {0, 0}), real("latency", {2.145, 40.0})}};
  const auto clean = cleaned(table, "f");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->find("latency")->real, std::vector<double>{40.0});
  table.source.backend = "vllm";
  EXPECT_EQ(cleaned(table, "f")->rows, 2U);
}

TEST(Import, NamesTheBadRow) {
  MeasuredTable table = gemm_table();
  table.columns[2].real[1] = -1.0;
  const auto refused = cleaned(table, "a.parquet");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().front().place.file, "a.parquet");
  EXPECT_NE(refused.error().front().message.find("row 2, column latency: -1"), std::string::npos);
  table.source.table = "scale_matrix";  // differences may be zero, never less
  table.columns[2].real[1] = 0.0;
  EXPECT_TRUE(cleaned(table, "a.parquet"));
}

TEST(Import, ReadsParquetOfThePublicTables) {
  const char* data = std::getenv("SERVECAST_DATA");
  if (data == nullptr) GTEST_SKIP() << "SERVECAST_DATA is not set";
  if (!can_read_parquet()) GTEST_SKIP() << "this build has no DuckDB";
  const fs::path sample = fs::path(data) / "perf/systems/data";
  if (!fs::exists(sample)) GTEST_SKIP() << sample << " is not there";
  const Folder folder;
  const fs::path part = "a100_sxm/comm/vllm/0.14.0/custom_allreduce_perf.parquet";
  fs::create_directories((folder.path / "in" / part).parent_path());
  fs::copy_file(sample / part, folder.path / "in" / part);
  const auto report = import_tables(folder.path / "in", folder.path / "out");
  ASSERT_TRUE(report) << to_text(report.error().front());
  ASSERT_EQ(report->tables.size(), 1U);
  EXPECT_EQ(report->tables[0].rows, 69U);  // of 138: the other half is eager
  const auto table = read_table(folder.path / "out/a100_sxm/custom_allreduce/vllm/0.14.0.table");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find("message_size")->whole.size(), 69U);
}

TEST(Versions, AreOrderedNumberByNumber) {
  EXPECT_TRUE(earlier_version("0.9.0", "0.19.0"));
  EXPECT_TRUE(earlier_version("1.3.0rc9", "1.3.0rc10"));
  EXPECT_TRUE(earlier_version("1.3.0rc20", "1.3.0"));
  EXPECT_TRUE(earlier_version("0.5.6", "0.5.6.post2"));
  EXPECT_FALSE(earlier_version("2.23", "2.23.0"));
  EXPECT_FALSE(earlier_version("2.23.0", "2.23"));
  EXPECT_TRUE(earlier_version("nightly", "0.1"));
  EXPECT_FALSE(is_version("nightly"));
}

}  // namespace
}  // namespace servecast::perf
