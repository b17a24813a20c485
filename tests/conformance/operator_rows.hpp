// SPDX-License-Identifier: Apache-2.0
// Rows of tables/operators.yaml: physical bounds of single operators.
#pragma once

#include "conformance/case_yaml.hpp"

namespace servecast::test {

void check_operator(const Value& row);       // table `operator`
void check_measured(const Value& row);       // table `measured`
void check_measured_pass(const Value& row);  // table `measured_pass`
void check_dsa_pairs(const Value& row);      // table `dsa_pairs`

}  // namespace servecast::test
