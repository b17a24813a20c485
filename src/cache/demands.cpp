// SPDX-License-Identifier: Apache-2.0
#include "cache/demands.hpp"

#include "base/check.hpp"

namespace servecast::cache {

std::uint32_t Demands::add(std::span<const std::uint64_t> names) {
  SERVECAST_CHECK(uses_.size() + names.size() < kNone && begins_.size() < kNever);
  const auto demand = static_cast<std::uint32_t>(begins_.size());
  begins_.push_back(static_cast<std::uint32_t>(uses_.size()));
  retired_.push_back(false);
  for (const std::uint64_t text : names) {
    const auto [found, is_new] = index_.emplace(text, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back({text, kNone, kNone});
    Name& name = names_[found->second];
    if (name.last != kNone && uses_[name.last].demand == demand) continue;
    const auto use = static_cast<std::uint32_t>(uses_.size());
    uses_.push_back({found->second, demand, kNone});
    if (name.last != kNone) uses_[name.last].later = use;
    if (name.first == kNone) name.first = use;
    name.last = use;
  }
  return demand;
}

void Demands::retire(std::uint32_t demand) {
  SERVECAST_CHECK(demand < retired_.size());
  if (retired_[demand]) return;
  retired_[demand] = true;
  const std::uint32_t end =
      demand + 1 < begins_.size() ? begins_[demand + 1] : static_cast<std::uint32_t>(uses_.size());
  for (std::uint32_t use = begins_[demand]; use < end; ++use) {
    Name& name = names_[uses_[use].name];
    if (name.first != use) continue;  // somebody asks for it before
    while (name.first != kNone && retired_[uses_[name.first].demand]) {
      name.first = uses_[name.first].later;
    }
    changes_.push_back(name.name);
  }
}

std::uint32_t Demands::next(std::uint64_t name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return kNever;
  const std::uint32_t first = names_[found->second].first;
  return first == kNone ? kNever : uses_[first].demand;
}

}  // namespace servecast::cache
