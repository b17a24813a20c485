// SPDX-License-Identifier: Apache-2.0
// Rows of the table kv_events: payloads of KV event batches, what they say and what they leave
// resident.
#pragma once

#include "conformance/case_yaml.hpp"

namespace servecast::test {

// `payloads` are bytes as hexadecimal digits and 'text'; blanks are for the reader.
void check_kv_events(const Value& row);

}  // namespace servecast::test
