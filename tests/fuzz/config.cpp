// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a configuration holds, it is refused with places and paths, or it resolves to a
// document that resolves to itself.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "config/config.hpp"
#include "config/deployment.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace servecast;
  const config::Input input{.path = "fuzz.yaml",
                            .text = std::string(reinterpret_cast<const char*>(bytes), size),
                            .sets = {},
                            .seed = {}};
  const auto first = config::read(input);
  if (!first) {
    SERVECAST_CHECK(!first.error().empty());
    for (const Problem& problem : first.error())
      SERVECAST_CHECK(!problem.code.empty() && !problem.message.empty());
    return 0;
  }
  const std::string yaml = config::to_yaml(first->settings);
  const auto second = config::read({.path = "again.yaml", .text = yaml, .sets = {}, .seed = {}});
  SERVECAST_CHECK(second.has_value());
  SERVECAST_CHECK(config::to_yaml(second->settings) == yaml);
  const auto deployed = config::deploy(*first);
  SERVECAST_CHECK(deployed.has_value() || !deployed.error().empty());
  return 0;
}
