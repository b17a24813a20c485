// SPDX-License-Identifier: Apache-2.0
// Files of measurements as judged rows.
#pragma once

#include <string>
#include <vector>

#include "base/problem.hpp"
#include "fit/hygiene.hpp"

namespace servecast::fit {

// `mapping`: a file that says which column is which field; empty: the header tells the layout.
// Judged by the rules of the program. Problems of the files, with line and column.
Result<std::vector<JudgedRow>> read_rows(const std::string& path, const std::string& mapping,
                                         const DraftOptions& drafts);

}  // namespace servecast::fit
