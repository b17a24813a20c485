// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a Mooncake file holds, the reader answers with Problems or with a trace that keeps
// its rules.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace_rules.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace servecast::workload;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const TraceSource source{.path = "fuzz", .format = TraceFormat::Mooncake, .block_size = 4};
  check_trace_rules(text, source, {.kind = Load::Kind::TraceTimestamps});
  check_trace_rules(text, source, {.kind = Load::Kind::Concurrency});
  return 0;
}
