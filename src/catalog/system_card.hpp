// SPDX-License-Identifier: Apache-2.0
// What a GPU system is. One file of data/systems/ per system; `source` and `licence` say where its
// values come from. SI units: bytes, bytes/s, FLOP/s, seconds, watts. Peaks are dense (no
// sparsity).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

namespace servecast::catalog {

// Tensor-core peak by operand type, FLOP/s. Nothing means that the GPU cannot run that type; it is
// never derived from another one.
struct PeakRates {
  std::optional<std::uint64_t> fp32;
  std::optional<std::uint64_t> bf16;
  std::optional<std::uint64_t> int8;
  std::optional<std::uint64_t> fp8;
  std::optional<std::uint64_t> fp4;
};

// A group of nodes joined by the fast network; beyond it the inter-rack rate holds.
struct Rack {
  std::uint32_t gpus = 0;
  std::uint64_t inter_rack_bytes_per_s = 0;  // per GPU and direction
  double inter_rack_latency_s = 0.0;
};

struct SystemCard {
  std::string name;
  std::uint64_t memory_bytes = 0;        // of one GPU
  std::uint64_t memory_bytes_per_s = 0;  // peak
  double memory_efficiency = 0.0;        // reached share of the peak in memory-bound operators
  double memory_latency_s = 0.0;         // fixed cost of a memory-bound operator
  PeakRates flops_per_s;
  std::uint32_t power_w = 0;        // limit of one GPU
  std::optional<std::uint32_t> sm;  // CUDA compute capability times 10; nothing on other GPUs
  std::uint32_t gpus_per_node = 0;  // joined by the intra-node rate
  std::uint64_t intra_node_bytes_per_s = 0;  // per GPU and direction, as are all link rates
  std::uint64_t inter_node_bytes_per_s = 0;
  std::uint64_t pcie_bytes_per_s = 0;
  double peer_latency_s = 0.0;  // of one point-to-point transfer
  std::optional<Rack> rack;
  // Memory that communication libraries hold, by number of tensor-parallel GPUs.
  std::map<std::uint32_t, std::uint64_t> reserve_collectives_bytes;
  std::uint64_t reserve_other_bytes = 0;  // driver, runtime, fragmentation
  bool measured = false;                  // measurements of this GPU stand behind some of our times
  std::string source;
  std::string licence;
};

// Problems as parse_model_card. Optional keys: the entries of flops_per_s except bf16, `sm`,
// `rack`, `measured`.
Result<SystemCard> parse_system_card(std::string_view json, std::string_view file);

// All cards of the program, in order of file name.
std::vector<SystemCard> systems();

// The card of exactly this name. Problems: "system.unknown", with the nearest name and all names.
Result<SystemCard> find_system(std::string_view name);

}  // namespace servecast::catalog
