// SPDX-License-Identifier: Apache-2.0
#include "conformance/shared_files.hpp"

#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "perf/timers.hpp"

namespace servecast::test {

using nlohmann::json;
namespace fs = std::filesystem;

std::optional<fs::path> shared_folder(const std::string& engine) {
  const char* data = std::getenv("SERVECAST_DATA");
  const fs::path base =
      data != nullptr ? fs::path(data) / ".." : fs::path(SERVECAST_SOURCE_DIR) / ".." / "shared";
  fs::path folder = base / "conformance" / engine;
  if (!fs::is_directory(folder)) return std::nullopt;
  return folder;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string read_gzip(const fs::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot read " + path.string());
  std::string text;
  std::array<char, 65536> buffer;
  int count = 0;
  while ((count = gzread(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  if (count < 0) throw std::runtime_error("damaged: " + path.string());
  return text;
}

void each_line(const std::string& text, const std::function<void(const json&)>& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin)
      visit(json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                        text.begin() + static_cast<std::ptrdiff_t>(end)));
    begin = end + 1;
  }
}

std::optional<double> moment(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

std::shared_ptr<const perf::StepTimer> read_timer(const std::string& timing) {
  perf::FixedDurations fixed;
  if (std::sscanf(timing.c_str(), "fixed:%lf,%lf", &fixed.prefill_ms, &fixed.decode_ms) == 2)
    return perf::fixed_timer(fixed).value();
  if (timing != "polynomial") throw std::runtime_error("timing " + timing);
  return perf::polynomial_timer().value();
}

std::shared_ptr<const TraceFile> cut_trace(const fs::path& path, std::size_t block_tokens) {
  std::string text;
  each_line(read_text(path), [&](const json& line) {
    json row = line;
    json& ids = row.at("hash_ids");
    const std::size_t needed =
        (row.at("input_length").get<std::size_t>() + block_tokens - 1) / block_tokens;
    while (ids.size() > needed) ids.erase(ids.size() - 1);
    text += row.dump() + "\n";
  });
  return std::make_shared<const TraceFile>(text);
}

}  // namespace servecast::test
