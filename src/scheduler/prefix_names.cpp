// SPDX-License-Identifier: Apache-2.0
#include "scheduler/prefix_names.hpp"

namespace servecast::scheduler {

void PrefixNames::extend(std::vector<std::uint64_t>& names, const Request& request) {
  const std::uint32_t full = unit_.quotient(request.known());
  while (names.size() < full) {
    const auto at = static_cast<std::uint32_t>(names.size());
    const std::uint64_t parent = at == 0 ? 0 : names.back();
    names.push_back(real_hashes_
                        ? spelling_.hash(request.content, request.prompt_tokens, at, parent).prefix
                        : provenance_name(request.content, at, unit_.divisor(), parent));
  }
}

}  // namespace servecast::scheduler
