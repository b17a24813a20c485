// SPDX-License-Identifier: Apache-2.0
// One value of the resolved configuration and where it comes from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "config/value.hpp"

namespace servecast::config {

struct Setting {
  std::string path = {};  // dotted: "engine.workers.aggregated.scheduler.max_sequences"
  std::optional<std::string> yaml = {};  // the value as canonical YAML; nothing when it is not set
  Origin origin = Origin::Default;
  Place place = {};            // of a value that the file or --set gave
  std::string_view help = {};  // one sentence
};

using Settings = std::vector<Setting>;

// Text as a YAML scalar: plain when every YAML reader takes it for the same text, else in double
// quotes.
std::string yaml_text(std::string_view text);

// The settings as one YAML document. Reading it gives the same settings again.
std::string to_yaml(const Settings& settings);
// One line a value with its origin: "engine.model: Qwen/Qwen3-8B   # run.yaml:3:10".
std::string explained(const Settings& settings);

}  // namespace servecast::config
