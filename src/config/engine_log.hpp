// SPDX-License-Identifier: Apache-2.0
// The KV capacity that an engine counted itself, from its log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.hpp"

namespace servecast::config {

// Of one rank; at least one is there.
struct LoggedCapacity {
  std::optional<std::uint64_t> tokens;
  std::optional<std::uint64_t> blocks;  // of the engine's own size
};

// Finds the lines of vLLM ("GPU KV cache size: 2,560,976 tokens", "# GPU blocks: 2588"), SGLang
// ("KV Cache is allocated. ... #tokens: 509157") and TensorRT-LLM ("... for max tokens in paged KV
// cache (123456)"). `file` names the log in Problems: "capacity.log" when there is no such line, or
// two lines of one kind disagree.
Result<LoggedCapacity> capacity_of_log(std::string_view text, const std::string& file);

// The same of a file, at most 1 GB. Problem "file.unreadable".
Result<LoggedCapacity> read_capacity_log(const std::string& path);

}  // namespace servecast::config
