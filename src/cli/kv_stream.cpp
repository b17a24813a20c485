// SPDX-License-Identifier: Apache-2.0
#include "cli/kv_stream.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace servecast::cli {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

tl::unexpected<Problems> unreadable(const std::string& path) {
  return fail({"kv_events.unreadable",
               fmt::format("cannot read the events: {}", std::strerror(errno)),
               {path, 0, 0},
               ""});
}

tl::unexpected<Problems> placed(Problems problems, const std::string& path) {
  for (Problem& problem : problems) problem.place.file = path;
  return tl::unexpected(std::move(problems));
}

}  // namespace

Result<void> read_kv_stream(const std::string& path, cache::KvWireDecoder& decoder,
                            const std::function<void(const cache::KvBatch&)>& visit) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return unreadable(path);
  std::string held;  // from the first batch that is not whole
  for (std::size_t piece = kPieceBytes;;) {
    const std::size_t before = held.size();
    held.resize(before + piece);
    const std::size_t got = std::fread(held.data() + before, 1, piece, file.get());
    if (std::ferror(file.get()) != 0) return unreadable(path);
    held.resize(before + got);
    std::string_view rest = held;
    for (;;) {
      const auto batch = decoder.next(rest);
      if (!batch) return placed(batch.error(), path);
      if (!*batch) break;
      visit(**batch);
    }
    if (got == 0) {
      if (rest.empty()) return {};
      return placed(decoder.decode(rest).error(), path);  // cut off: decode says where
    }
    // A batch is looked at again from its start, so that it has to grow by more than a constant.
    piece = rest.size() == held.size() ? held.size() : kPieceBytes;
    held.erase(0, held.size() - rest.size());
  }
}

}  // namespace servecast::cli
