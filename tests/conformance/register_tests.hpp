// SPDX-License-Identifier: Apache-2.0
// Tests whose number is known only when the program starts: one per case on disk.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace servecast::test {

class CaseTest : public testing::Test {
 public:
  explicit CaseTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

inline void register_test(const std::string& suite, const std::string& name,
                          std::function<void()> body) {
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [body = std::move(body)]() -> CaseTest* { return new CaseTest(body); });
}

// Stands for the shared cases of an engine where this machine has none.
inline void register_absent(const std::string& suite) {
  register_test(suite, "all", [] {
    GTEST_SKIP() << "the shared conformance cases are not on this machine: neither beside "
                    "SERVECAST_DATA nor in ../shared/conformance";
  });
}

void register_shared_vllm_tests();
void register_shared_sglang_tests();
void register_text_cases();
void register_table_cases();

}  // namespace servecast::test
