// SPDX-License-Identifier: Apache-2.0
// Reads the files that the shared reference results have in common. Each function throws
// std::runtime_error when a file is missing or damaged.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "perf/step_timer.hpp"
#include "support/trace_file.hpp"

namespace servecast::test {

// The folder of one engine's cases, if this machine has it: beside SERVECAST_DATA, else beside the
// sources.
std::optional<std::filesystem::path> shared_folder(const std::string& engine);

std::string read_text(const std::filesystem::path& path);
std::string read_gzip(const std::filesystem::path& path);
void each_line(const std::string& text, const std::function<void(const nlohmann::json&)>& visit);

// A time in milliseconds; null is none.
std::optional<double> moment(const nlohmann::json& value);

// "polynomial" or "fixed:10,2": ms of a pass that prefills and of one that decodes.
std::shared_ptr<const perf::StepTimer> read_timer(const std::string& timing);

// A trace as the product takes it: the reference ignores block ids beyond those that a prompt
// needs, the product refuses such rows (decisions.md 9b), so the surplus is left out.
std::shared_ptr<const TraceFile> cut_trace(const std::filesystem::path& path,
                                           std::size_t block_tokens);

}  // namespace servecast::test
