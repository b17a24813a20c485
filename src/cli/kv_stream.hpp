// SPDX-License-Identifier: Apache-2.0
// A file of KV event batches, one msgpack object after the other (docs/reference/kv-events.md).
#pragma once

#include <functional>
#include <string>

#include "base/problem.hpp"
#include "cache/kv_wire.hpp"

namespace servecast::cli {

// Calls `visit` with every batch in order, holding one of them at a time. Problems name the file;
// what was visited before one stands.
Result<void> read_kv_stream(const std::string& path, cache::KvWireDecoder& decoder,
                            const std::function<void(const cache::KvBatch&)>& visit);

}  // namespace servecast::cli
