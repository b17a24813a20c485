// SPDX-License-Identifier: Apache-2.0
// Where the first msgpack object of untrusted bytes ends, found without keeping anything of it.
// Private to kv_wire_*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace servecast::cache::wire {

struct Structure {
  // Whole: everything that its arrays, maps and strings announce is there, the strings are UTF-8,
  // and it is not nested deeper than kKvNestingMax.
  enum class End : std::uint8_t { Whole, Incomplete, Fault };
  End end = End::Whole;
  std::size_t bytes = 0;   // Whole: of the object; Fault: before it
  std::string fault = {};  // what is wrong
};

Structure structure_of(std::string_view bytes);

}  // namespace servecast::cache::wire
