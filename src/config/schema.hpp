// SPDX-License-Identifier: Apache-2.0
// The description of the configuration as documents. All come from the tables that decode, so none
// can drift.
#pragma once

#include <string>

#include "base/problem.hpp"
#include "config/outline.hpp"

namespace servecast::config {

// The whole configuration.
const Outline& outline();

// JSON Schema, draft 2020-12, indented.
std::string json_schema();
// The reference page in Markdown: one table per mapping, then what is known and refused.
std::string reference_page();
// What `explain FIELD` prints. A Problem names the nearest field.
Result<std::string> field_help(const std::string& path);

}  // namespace servecast::config
