// SPDX-License-Identifier: Apache-2.0
// Whatever stands after --set, the answer is Problems or a configuration.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "config/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace servecast;
  const config::Input input{
      .path = "fuzz.yaml",
      .text = "engine: {model: Qwen/Qwen3-8B, hardware: l4, workers: {aggregated: {}}}",
      .sets = {std::string(reinterpret_cast<const char*>(bytes), size)},
      .seed = {}};
  const auto config = config::read(input);
  SERVECAST_CHECK(config.has_value() || !config.error().empty());
  return 0;
}
