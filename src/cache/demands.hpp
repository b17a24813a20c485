// SPDX-License-Identifier: Apache-2.0
// Which request asks for which prefix next, from a plan of all of them: what a clairvoyant eviction
// looks at (engine-vllm.md 15). A demand is what one request asks for; demands are numbered in the
// order in which they are added, and one that is retired will not be asked any more.
//
//   Demands demands;
//   demands.add(names_of_a_request);   // demand 0
//   demands.next(0x1234);              // the first demand to come that contains it, or kNever
//   demands.retire(0);
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace servecast::cache {

class Demands {
 public:
  static constexpr std::uint32_t kNever = UINT32_MAX;  // nobody asks any more

  // Returns the number of the demand. A name that stands twice counts once.
  std::uint32_t add(std::span<const std::uint64_t> names);
  // Has no effect on a demand that is retired. requires: add() returned this number.
  void retire(std::uint32_t demand);
  // The smallest number of a demand that is not retired and contains the name.
  std::uint32_t next(std::uint64_t name) const;

  // Names whose next() was changed by retire(), in the order of the changes. The list only grows,
  // so that each reader can go on where it stopped.
  const std::vector<std::uint64_t>& changes() const { return changes_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Use {  // of one name in one demand
    std::uint32_t name, demand;
    std::uint32_t later;  // the next use of the same name, or kNone
  };
  struct Name {
    std::uint64_t name;
    std::uint32_t first, last;  // uses; `first` is of no retired demand, or kNone
  };

  std::vector<Use> uses_;              // demand by demand
  std::vector<std::uint32_t> begins_;  // of each demand in uses_
  std::vector<bool> retired_;
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // into names_; never iterated
  std::vector<std::uint64_t> changes_;
};

}  // namespace servecast::cache
