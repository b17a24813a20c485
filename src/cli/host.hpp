// SPDX-License-Identifier: Apache-2.0
// Facts about this machine and this process, for manifest.json and the terminal only.
#pragma once

#include <cstdint>
#include <string>

namespace servecast::cli {

std::string utc_now();  // ISO 8601
std::uint64_t peak_rss_bytes();
double cpu_seconds();   // of this process, user and system
void pin_to_one_cpu();  // the last one that this process may use; nothing when the system refuses

}  // namespace servecast::cli
