// SPDX-License-Identifier: Apache-2.0
// Names of a request's prefixes at every multiple of a unit of tokens, by which others find what
// was computed of them: real hashes in the reference mode, else names by provenance. A unit may be
// finer than a block (engine-vllm.md 1.1).
//
//   PrefixNames names(16, true);
//   names.extend(list, request);   // list[i] names the first (i + 1) * 16 tokens
#pragma once

#include <cstdint>
#include <vector>

#include "base/divider.hpp"
#include "scheduler/request.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::scheduler {

class PrefixNames {
 public:
  PrefixNames(std::uint32_t unit, bool real_hashes)
      : unit_(unit), real_hashes_(real_hashes), spelling_(unit) {}

  // Appends what the known tokens of the request name and `names` does not hold yet.
  void extend(std::vector<std::uint64_t>& names, const Request& request);

 private:
  Divider unit_;
  bool real_hashes_;
  Spelling spelling_;
};

}  // namespace servecast::scheduler
