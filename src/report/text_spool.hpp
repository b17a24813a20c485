// SPDX-License-Identifier: Apache-2.0
// Text that is collected while the run goes on and written when it has ended: in memory up to a
// limit, then in an unnamed temporary file.
#pragma once

#include <cstdint>
#include <string>

#include "base/problem.hpp"
#include "report/report.hpp"
#include "report/spill_file.hpp"

namespace servecast::report {

class TextSpool {
 public:
  TextSpool(std::uint64_t in_memory_max, std::string directory);

  // The caller appends whole lines here and then calls settle().
  std::string& buffer() { return buffer_; }
  void settle();

  Result<void> write(const Write& write) const;
  const SpillFile& file() const { return file_; }

 private:
  std::uint64_t in_memory_max_;
  std::string buffer_;
  SpillFile file_;
};

}  // namespace servecast::report
