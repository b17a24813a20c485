// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_file.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace servecast::workload {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
// inflateInit2: the largest window, and 16 for a gzip header.
constexpr int kGzipWindow = 15 + 16;

}  // namespace

struct TraceFile::State {
  std::string path;
  std::FILE* file = nullptr;
  Sha256 digest;
  std::array<char, kChunkBytes> raw;
  std::size_t raw_begin = 0, raw_end = 0;
  bool started = false, at_end = false;
  bool gzip = false, in_member = false;
  z_stream stream{};
  std::optional<Problem> failure;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (gzip) inflateEnd(&stream);
    if (file != nullptr) std::fclose(file);
  }

  bool fill();
  void start();
  std::size_t copy(char* out, std::size_t capacity);
  std::size_t inflate_some(char* out, std::size_t capacity);
  void fail(Problem problem) {
    failure = std::move(problem);
    at_end = true;
    raw_begin = raw_end;
  }
};

// Adds bytes behind those that wait; false when none are left in the file.
bool TraceFile::State::fill() {
  if (at_end) return false;
  if (raw_begin == raw_end) raw_begin = raw_end = 0;
  const std::size_t count = std::fread(raw.data() + raw_end, 1, raw.size() - raw_end, file);
  digest.update({raw.data() + raw_end, count});
  raw_end += count;
  if (count > 0) return true;
  at_end = true;
  if (std::ferror(file) != 0) {
    fail({"trace.unreadable",
          fmt::format("reading the trace stopped: {}", std::strerror(errno)),
          {path},
          "",
          Fault::Execution});
  }
  return false;
}

void TraceFile::State::start() {
  started = true;
  while (raw_end < 2 && fill()) {
  }
  gzip = raw_end >= 2 && raw[0] == '\x1F' && raw[1] == '\x8B';
  if (!gzip) return;
  SERVECAST_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  in_member = true;
}

std::size_t TraceFile::State::copy(char* out, std::size_t capacity) {
  if (raw_begin == raw_end && !fill()) return 0;
  const std::size_t count = std::min(capacity, raw_end - raw_begin);
  std::memcpy(out, raw.data() + raw_begin, count);
  raw_begin += count;
  return count;
}

std::size_t TraceFile::State::inflate_some(char* out, std::size_t capacity) {
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(capacity);
  while (stream.avail_out == capacity) {
    if (raw_begin == raw_end && !fill()) {
      if (in_member && !failure) {
        fail({"trace.gzip", "the gzip stream ends early: the file is cut off", {path}, ""});
      }
      break;
    }
    if (!in_member) {
      SERVECAST_CHECK(inflateReset(&stream) == Z_OK);
      in_member = true;
    }
    stream.next_in = reinterpret_cast<Bytef*>(raw.data() + raw_begin);
    stream.avail_in = static_cast<uInt>(raw_end - raw_begin);
    const int code = inflate(&stream, Z_NO_FLUSH);
    raw_begin = raw_end - stream.avail_in;
    if (code == Z_STREAM_END) {
      in_member = false;
    } else if (code != Z_OK) {
      fail({"trace.gzip",
            fmt::format("the gzip stream is damaged: {}",
                        stream.msg != nullptr ? stream.msg : "unexpected bytes"),
            {path},
            ""});
      break;
    }
  }
  return capacity - stream.avail_out;
}

TraceFile::TraceFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceFile::TraceFile(TraceFile&&) noexcept = default;
TraceFile& TraceFile::operator=(TraceFile&&) noexcept = default;
TraceFile::~TraceFile() = default;

Result<TraceFile> TraceFile::open(const std::string& path) {
  const auto unreadable = [&](std::string_view why) {
    return servecast::fail({"trace.unreadable",
                            fmt::format("the trace cannot be read: {}", why),
                            {path},
                            "traffic.source.paths names one file"});
  };
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return unreadable("it is a directory");
  auto state = std::make_unique<State>();
  state->path = path;
  state->file = std::fopen(path.c_str(), "rb");
  if (state->file == nullptr) return unreadable(std::strerror(errno));
  return TraceFile(std::move(state));
}

std::size_t TraceFile::read(char* out, std::size_t capacity) {
  State& state = *state_;
  if (!state.started) state.start();
  if (state.failure || capacity == 0) return 0;
  return state.gzip ? state.inflate_some(out, capacity) : state.copy(out, capacity);
}

const std::optional<Problem>& TraceFile::failure() const {
  return state_->failure;
}

std::string TraceFile::sha256() {
  return state_->digest.hex();
}

}  // namespace servecast::workload
