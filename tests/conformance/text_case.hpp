// SPDX-License-Identifier: Apache-2.0
// A text case: an engine, a few requests, and facts that must come out (style of cases/*.yaml,
// explained in README.md). The same case is spelled as a trace and run in every mode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_groups.hpp"
#include "conformance/case_yaml.hpp"
#include "replay/simulation.hpp"
#include "support/recording.hpp"

namespace servecast::test {

struct CaseRequest {
  double at_ms = 0;
  std::optional<std::uint32_t> after;  // next turn of the session of that request
  double delay_ms = 0;                 // after the turn before ended
  std::uint32_t prompt = 0;            // tokens
  std::uint32_t output = 0;
  std::int32_t priority = 0;
  std::optional<double> cancel_after_ms;
  std::string extra_key;          // adapter or tenant; empty: none
  std::uint32_t same_tokens = 0;  // leading tokens that equal those of request `same_as`
  std::uint32_t same_as = 0;
  std::vector<std::uint64_t> ids;            // trace block ids; empty: own content, then `same_as`
  std::vector<std::uint32_t> output_tokens;  // authored
  std::vector<workload::Image> images;
};

struct TextCase {
  std::string name;
  replay::Deployment deployment;
  std::uint32_t trace_block_tokens = 0;
  bool respell = false;  // the trace block was not asked for: also run with blocks of one token
  std::optional<std::uint32_t> concurrency;
  std::optional<Time> cap;
  std::vector<CaseRequest> requests;
  std::vector<Value> expect;
};

TextCase read_text_case(const Value& document);
// The `engine` of a case.
void read_engine(const Value& engine, replay::Deployment& out);

// `groups: [{name: full, kind: attention, block: 16, page: 1000}]`; an item with `count: 4` is four
// groups.
std::vector<cache::KvGroup> read_groups(const Value& list);

// The requests as Mooncake rows, one per line, with blocks of `block_tokens` tokens.
std::string mooncake_text(const TextCase& text_case, std::uint32_t block_tokens);

// The run is to end with a problem: `expect: [{problem: CODE, says: TEXT}]`.
bool expects_a_problem(const TextCase& text_case);

// Every expectation that a run breaks, as "file:12: request 1: tokens_reused is 8, expected 12".
// The run must have captured requests, passes and KV events.
std::vector<std::string> broken_expectations(const TextCase& text_case, const Recording& run);

}  // namespace servecast::test
