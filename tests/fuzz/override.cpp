// SPDX-License-Identifier: Apache-2.0
// Whatever stands after --set, the answer is Problems or a configuration. Each line is one --set;
// lines that begin with '#' are comments of the corpus.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/check.hpp"
#include "config/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace servecast;
  config::Input input{
      .path = "fuzz.yaml",
      .text = "engine: {model: Qwen/Qwen3-8B, hardware: l4, workers: {aggregated: {}}}",
      .sets = {},
      .seed = {}};
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes), size));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) input.sets.push_back(line);
  }
  const auto config = config::read(input);
  SERVECAST_CHECK(config.has_value() || !config.error().empty());
  return 0;
}
