// SPDX-License-Identifier: Apache-2.0
// Measured tables of the shared sample, imported for this process.
#pragma once

#include <memory>
#include <string>

#include "perf/table/database.hpp"

namespace servecast::test {

// Why the sample cannot be used here; empty where it can.
std::string no_measured_tables();

// Imported once in a process. The tables of one system, engine and version, with what else its
// operators need. requires: no_measured_tables() is empty. Throws std::runtime_error where they
// cannot be imported.
std::shared_ptr<const perf::PerfDatabase> measured_tables(const std::string& system,
                                                          const perf::EngineVersion& version);

}  // namespace servecast::test
