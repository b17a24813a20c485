// SPDX-License-Identifier: Apache-2.0
// A run's KV events written as a stream of batches, read back and followed.
#pragma once

#include <optional>
#include <string>

#include "cache/kv_wire.hpp"
#include "support/recording.hpp"

namespace servecast::test {

// What the stream tells otherwise than the recorded events; nothing when both agree.
std::optional<std::string> kv_stream_fault(const Recording& recording, cache::KvWireForm form);

}  // namespace servecast::test
