// SPDX-License-Identifier: Apache-2.0
// Writes the artifacts of a prediction, all or none.
#pragma once

#include <string>
#include <vector>

#include "base/problem.hpp"
#include "cli/prediction.hpp"
#include "report/artifacts.hpp"

namespace servecast::cli {

Result<void> publish(report::OutputDirectory& directory, const Prepared& prepared,
                     Prediction& prediction, const Capture& capture, report::Manifest manifest);

}  // namespace servecast::cli
