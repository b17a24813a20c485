// SPDX-License-Identifier: Apache-2.0
// 128-bit integers for exact sums. Not ISO C++, so this is the only header that spells the type.
#pragma once

namespace servecast {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

}  // namespace servecast
