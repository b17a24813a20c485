// SPDX-License-Identifier: Apache-2.0
// The rules that a Spec must keep before anything is built from it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/problem.hpp"
#include "workload/spec.hpp"

namespace servecast::workload {

// Every rule broken, with the field's path in the message; empty when all is well.
Problems check_spec(const Spec& spec);

// The user's name of Load::per_second: "traffic.load.requests_per_second" or sessions.
std::string_view rate_field(const Spec& spec);

// Sessions that a synthetic source makes: the count, or max(1, per_load_unit * load) rounded half
// to even (product.md 9.4). requires: spec passed check_spec and its source is synthetic.
Result<std::uint32_t> resolve_count(const Spec& spec);

}  // namespace servecast::workload
