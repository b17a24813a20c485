// SPDX-License-Identifier: Apache-2.0
// Compares the product's own report of a shared case with the summary of its reference result.
#pragma once

#include "conformance/shared_case.hpp"
#include "workload/workload.hpp"

namespace servecast::test {

// A distribution without samples and a rate without duration are null in the report (decisions.md
// 3a and 5), 0 in the reference.
void expect_reported(const SharedCase& shared, const workload::Workload& workload);

}  // namespace servecast::test
