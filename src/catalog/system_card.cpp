// SPDX-License-Identifier: Apache-2.0
#include "catalog/system_card.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/check.hpp"
#include "base/text.hpp"
#include "catalog/embedded.hpp"
#include "catalog/json_fields.hpp"

namespace servecast::catalog {
namespace {

std::optional<std::uint64_t> rate(Fields& at, const char* key) {
  if (!at.has(key)) return std::nullopt;
  return at.whole(key);
}

std::map<std::uint32_t, std::uint64_t> reserves(Fields& at) {
  std::map<std::uint32_t, std::uint64_t> by_gpus;
  for (const std::string& key : at.keys()) {
    std::uint32_t gpus = 0;
    const auto end = std::from_chars(key.data(), key.data() + key.size(), gpus);
    if (end.ec != std::errc{} || end.ptr != key.data() + key.size()) continue;  // an unknown key
    by_gpus[gpus] = at.whole_or_zero(key.c_str());
  }
  if (!by_gpus.contains(1)) at.problem("card.missing_key", "1", "is missing");
  return by_gpus;
}

}  // namespace

Result<SystemCard> parse_system_card(std::string_view json, std::string_view file) {
  Problems problems;
  std::optional<Fields> root = Fields::parse(json, file, problems);
  if (!root) return tl::unexpected(std::move(problems));
  Fields& at = *root;
  SystemCard card;
  card.name = at.text("name");
  card.memory_bytes = at.whole("memory_bytes");
  card.memory_bytes_per_s = at.whole("memory_bytes_per_s");
  card.memory_efficiency = at.number("memory_efficiency");
  card.memory_latency_s = at.number("memory_latency_s");
  Fields flops = at.object("flops_per_s");
  card.flops_per_s = {.fp32 = rate(flops, "fp32"),
                      .bf16 = flops.whole("bf16"),
                      .int8 = rate(flops, "int8"),
                      .fp8 = rate(flops, "fp8"),
                      .fp4 = rate(flops, "fp4")};
  flops.finish();
  card.power_w = at.count("power_w");
  if (at.has("sm")) card.sm = at.count("sm");
  card.gpus_per_node = at.count("gpus_per_node");
  card.intra_node_bytes_per_s = at.whole("intra_node_bytes_per_s");
  card.inter_node_bytes_per_s = at.whole("inter_node_bytes_per_s");
  card.pcie_bytes_per_s = at.whole("pcie_bytes_per_s");
  card.peer_latency_s = at.number("peer_latency_s");
  if (at.has("rack")) {
    Fields rack = at.object("rack");
    card.rack = Rack{.gpus = rack.count("gpus"),
                     .inter_rack_bytes_per_s = rack.whole("inter_rack_bytes_per_s"),
                     .inter_rack_latency_s = rack.number("inter_rack_latency_s")};
    rack.finish();
  }
  Fields collectives = at.object("reserve_collectives_bytes");
  card.reserve_collectives_bytes = reserves(collectives);
  collectives.finish();
  card.reserve_other_bytes = at.whole_or_zero("reserve_other_bytes");
  if (at.has("measured")) card.measured = at.flag("measured");
  card.source = at.text("source");
  card.licence = at.text("licence");
  if (card.memory_efficiency <= 0.0 || card.memory_efficiency > 1.0)
    at.problem("card.wrong_value", "memory_efficiency", "must be above 0 and at most 1");
  at.finish();
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return card;
}

std::vector<SystemCard> systems() {
  std::vector<SystemCard> cards;
  for (const EmbeddedCard& embedded : embedded_systems()) {
    Result<SystemCard> card = parse_system_card(embedded.json, embedded.file);
    SERVECAST_CHECK(card.has_value());
    cards.push_back(*std::move(card));
  }
  return cards;
}

Result<SystemCard> find_system(std::string_view name) {
  std::vector<std::string> names;
  for (SystemCard& card : systems()) {
    if (card.name == name) return std::move(card);
    names.push_back(card.name);
  }
  const auto near = nearest_name(name, names);
  return fail({.code = "system.unknown",
               .message = fmt::format("system \"{}\" has no card; there are cards for {}", name,
                                      fmt::join(names, ", ")),
               .place = {},
               .hint = near ? fmt::format("did you mean {}?", *near) : std::string{}});
}

}  // namespace servecast::catalog
