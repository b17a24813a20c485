// SPDX-License-Identifier: Apache-2.0
// The one gate for grouped KV caches (engine-vllm.md 10.2, decisions.md 21): planning, search and
// replay ask it with the same settings and get the same answer. A pure function.
//
//   const GroupedGate gate = grouped_gate({.groups = groups, .prefix_match_unit = 2176, ...});
//   for (const GroupedRefusal& r : gate.refusals) f.refuse(r.field, r.message, r.hint);
//   if (gate.prefix_caching) run(GroupedBlocks(grouped_rules(settings)));
//   else run(GroupedBytes(groups, capacity_bytes));   // and show gate.cold_reason, if any
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/kv_groups.hpp"

namespace servecast::cache {

// One rule that the settings break.
struct GroupedRefusal {
  // Relative to kv_cache, as in "groups[2].page_size_bytes"; max_model_len and
  // max_num_batched_tokens are fields of the rank.
  std::string field;
  std::string message;  // goes on after the field: what it is, the rule, what is needed
  std::string hint;     // what to do; may be empty
};

struct GroupedGate {
  std::vector<GroupedRefusal> refusals = {};  // all of them, in the order of the groups and rules
  bool prefix_caching = false;                // it was asked for, is proven and nothing is refused
  // Prefix caching was asked for but no probe shows that the deployment does it (product.md 20.10),
  // so the rank runs cold.
  std::optional<std::string> cold_reason = {};
};

// Why prefix caching is not proven for grouped caches, or nothing. One rule for prediction, search
// and planning.
std::optional<std::string> unproven_prefix_caching(const std::optional<ProbeEvidence>& evidence);

// requires: settings.max_num_batched_tokens > 0; max_model_len and prefix_match_unit, if given, >
// 0.
GroupedGate grouped_gate(const GroupedSettings& settings);

}  // namespace servecast::cache
