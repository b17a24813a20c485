// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>

#include "base/hash.hpp"
#include "workload/trace_builders.hpp"

namespace servecast::workload {
namespace {

using testing::HasSubstr;
using testing_tools::TemporaryFile;

std::string zipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Content {
  std::string text, sha256;
  std::optional<Problem> failure;
};

Content content_of(const std::string& bytes, std::size_t piece = 1000) {
  const TemporaryFile on_disk("trace", bytes);
  auto file = TraceFile::open(on_disk.path());
  Content content;
  std::string buffer(piece, '\0');
  while (const std::size_t count = file->read(buffer.data(), buffer.size())) {
    content.text.append(buffer, 0, count);
  }
  content.failure = file->failure();
  content.sha256 = file->sha256();
  return content;
}

std::string a_long_text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919LL) + "\n";
  return text;
}

TEST(TraceFile, GivesAPlainFileAsItIs) {
  const std::string text = a_long_text();
  const Content content = content_of(text);
  EXPECT_EQ(content.text, text);
  EXPECT_EQ(content.sha256, sha256_hex(text));
  EXPECT_FALSE(content.failure);
}

TEST(TraceFile, ReadsGzipByContentAndDigestsTheFileItself) {
  const std::string text = a_long_text(), bytes = zipped(text);
  const Content content = content_of(bytes);
  EXPECT_EQ(content.text, text);
  EXPECT_EQ(content.sha256, sha256_hex(bytes));
  EXPECT_FALSE(content.failure);
}

TEST(TraceFile, ReadsSeveralGzipMembersAsOneText) {
  const Content content = content_of(zipped("one\n") + zipped("") + zipped("two\n"), 3);
  EXPECT_EQ(content.text, "one\ntwo\n");
  EXPECT_FALSE(content.failure);
}

TEST(TraceFile, SaysWhenGzipIsCutOff) {
  const std::string bytes = zipped(a_long_text());
  for (const std::size_t size : {std::size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
    const Content content = content_of(bytes.substr(0, size));
    ASSERT_TRUE(content.failure) << size;
    EXPECT_THAT(content.failure->message, HasSubstr("ends early"));
  }
}

TEST(TraceFile, SaysWhenGzipIsDamaged) {
  std::string bytes = zipped(a_long_text());
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // in the checksum
  EXPECT_THAT(content_of(bytes).failure->message, HasSubstr("damaged"));
  EXPECT_THAT(content_of(zipped("a") + "rest").failure->message, HasSubstr("damaged"));
}

TEST(TraceFile, TakesShortFilesAsPlain) {
  EXPECT_EQ(content_of("").text, "");
  EXPECT_EQ(content_of("\x1F").text, "\x1F");
}

TEST(TraceFile, IsRefusedWhenMissingOrADirectory) {
  const auto missing = TraceFile::open("/nowhere/at/all.jsonl");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error()[0].place.file, "/nowhere/at/all.jsonl");
  EXPECT_EQ(missing.error()[0].message, "the trace cannot be read: No such file or directory");
  const auto directory = TraceFile::open(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error()[0].message, "the trace cannot be read: it is a directory");
}

}  // namespace
}  // namespace servecast::workload
