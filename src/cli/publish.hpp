// SPDX-License-Identifier: Apache-2.0
// Writes the artifacts of a prediction, all or none.
#pragma once

#include <string>
#include <vector>

#include "base/problem.hpp"
#include "cli/prediction.hpp"
#include "report/artifacts.hpp"

namespace servecast::cli {

// What the trace calls its rows and sessions; keeps a reference to the workload.
report::Names names_of(const workload::Workload& workload);

// Checks the directory again. A signal while it writes ends the process with nothing of this run
// left behind.
Result<void> publish(const report::OutputOptions& where, const Prepared& prepared,
                     Prediction& prediction, const Capture& capture,
                     const report::Manifest& manifest);

}  // namespace servecast::cli
