// SPDX-License-Identifier: Apache-2.0
#include "cli/quick.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "config/setting.hpp"

namespace servecast::cli {

const std::vector<QuickKey>& quick_keys() {
  static const std::vector<QuickKey> kKeys{
      {"input", "traffic.source.input_tokens"},
      {"output", "traffic.source.output_tokens"},
      {"concurrency", "traffic.load.concurrency"},
      {"requests", "traffic.stop"},
      {"rate", "traffic.load"},
      {"replicas", "engine.workers.aggregated.parallelism.replicas"},
      {"tensor", "engine.workers.aggregated.parallelism.tensor"},
      {"pipeline", "engine.workers.aggregated.parallelism.pipeline"},
      {"expert", "engine.workers.aggregated.parallelism.moe_expert"},
      {"context", "engine.context_length"}};
  return kKeys;
}

Result<config::Input> quick_input(const std::vector<std::string>& words) {
  SERVECAST_CHECK(words.size() >= 2);
  config::Input input{.path = "--quick", .text = {}, .sets = {}, .seed = {}};
  input.text = fmt::format(
      "traffic:\n  source: {{type: synthetic}}\n  load: {{type: concurrency}}\n  stop: "
      "{{requests_per_load_unit: 10}}\n"
      "engine:\n  model: {}\n  hardware: {}\n  workers: {{aggregated: {{}}}}\n",
      config::yaml_text(words[0]), config::yaml_text(words[1]));
  std::vector<std::string> names;
  for (const QuickKey& key : quick_keys()) names.emplace_back(key.name);
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    const auto key = std::find_if(quick_keys().begin(), quick_keys().end(),
                                  [&](const QuickKey& k) { return k.name == name; });
    if (name.find('.') != std::string::npos && equals != std::string::npos) {
      input.sets.push_back(words[i]);
    } else if (key == quick_keys().end() || equals == std::string::npos) {
      const auto nearest = nearest_name(name, names);
      return fail({"quick.key",
                   fmt::format("--quick: {} is none of {}=, nor a dotted path with a value",
                               words[i], fmt::join(names, "=, ")),
                   {},
                   nearest ? fmt::format("did you mean {}=?", *nearest) : ""});
    } else if (name == "requests") {
      input.sets.push_back(fmt::format("traffic.stop={{requests: {}}}", value));
    } else if (name == "rate") {
      input.sets.push_back(
          fmt::format("traffic.load={{type: poisson, requests_per_second: {}}}", value));
    } else {
      input.sets.push_back(fmt::format("{}={}", key->path, value));
    }
  }
  return input;
}

}  // namespace servecast::cli
