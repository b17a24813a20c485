// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "conformance/register_tests.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  servecast::test::register_shared_vllm_tests();
  servecast::test::register_shared_sglang_tests();
  servecast::test::register_text_cases();
  servecast::test::register_table_cases();
  return RUN_ALL_TESTS();
}
