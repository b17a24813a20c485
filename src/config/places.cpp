// SPDX-License-Identifier: Apache-2.0
#include "config/places.hpp"

#include <algorithm>

namespace servecast::config {
namespace {

// Is `path` the field at `above`, or inside of it?
bool is_within(std::string_view path, std::string_view above) {
  return path.starts_with(above) &&
         (path.size() == above.size() || path[above.size()] == '.' || path[above.size()] == '[');
}

}  // namespace

Place place_of(const Config& config, std::string_view path) {
  for (const Setting& setting : config.settings) {
    if (!setting.place.file.empty() && is_within(setting.path, path)) return setting.place;
  }
  const std::size_t dot = path.find_last_of(".[");
  return dot == std::string_view::npos ? Place{} : place_of(config, path.substr(0, dot));
}

Problems placed(Problems problems, const Config& config) {
  for (Problem& problem : problems) {
    if (!problem.place.file.empty()) continue;
    const std::string_view message = problem.message;
    problem.place = place_of(config, message.substr(0, message.find_first_of(" :,")));
  }
  return problems;
}

}  // namespace servecast::config
