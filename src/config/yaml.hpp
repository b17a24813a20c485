// SPDX-License-Identifier: Apache-2.0
// YAML text to a Value tree, strictly: one document, distinct keys, bounded size, depth and alias
// expansion. Anchors, aliases and merge keys are resolved here. JSON is read as well, being YAML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/problem.hpp"
#include "config/value.hpp"

namespace servecast::config {

inline constexpr std::size_t kDocumentBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kDepthMax = 64;
// Values in a document after aliases are expanded.
inline constexpr std::size_t kNodesMax = 100'000;

// Reads one document; an empty text is a null value. Places name `file`.
Result<Value> read_yaml(std::string_view text, const std::string& file);
// Reads a file whose top level must be one mapping.
Result<Value> read_yaml_file(const std::string& path);

}  // namespace servecast::config
