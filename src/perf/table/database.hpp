// SPDX-License-Identifier: Apache-2.0
// The measured tables of one system and engine version, from a store.
//
//   auto db = PerfDatabase::open("perfdata", system, {EngineKind::Vllm, "0.24.0"});
//   const Slices<Sites>& gemm = (*db)->gemm(Reach::All);
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catalog/kinds.hpp"
#include "perf/table/sidecars.hpp"
#include "perf/table/slices.hpp"
#include "perf/table/store.hpp"
#include "perf/table/util_grid.hpp"

namespace servecast::perf {

struct EngineVersion {
  catalog::EngineKind engine = catalog::EngineKind::Vllm;
  std::string version;
};

// From which versions a table is read.
enum class Reach : std::uint8_t {
  Own,  // the version that was asked for alone
  All,  // where it lacks a place, earlier versions, nearest first, then other engines' rows of
        // shared kernels
};

// Reads a table when it is first asked for; safe to share between threads.
class PerfDatabase {
 public:
  // Problems: "perfdata.no_tables", "perfdata.unknown_table" where the store has nothing of this
  // system and engine, "perfdata.corrupt" for the first table that cannot be read.
  static Result<std::shared_ptr<const PerfDatabase>> open(const std::filesystem::path& store,
                                                          const catalog::SystemCard& system,
                                                          const EngineVersion& version);
  ~PerfDatabase();

  const catalog::SystemCard& system() const { return system_; }
  const EngineVersion& version() const { return version_; }

  const Slices<Sites>& gemm(Reach reach) const;
  const Slices<Grid>& context_attention(Reach reach) const;
  const Slices<Grid>& generation_attention(Reach reach) const;
  const Slices<Grid>& encoder_attention(Reach reach) const;
  const Slices<Grid>& mla_context(Reach reach, bool module) const;
  const Slices<Grid>& mla_generation(Reach reach, bool module) const;
  const Slices<Curve>& mla_bmm(Reach reach) const;
  const Slices<Grid>& dsa_context(Reach reach) const;
  const Slices<Grid>& dsa_generation(Reach reach) const;
  const Slices<Curve>& experts(Reach reach, bool small_batches) const;
  const Slices<Curve>& all_reduce(Reach reach) const;
  const Slices<Curve>& nccl() const;
  const Slices<Grid>& compute_scale(Reach reach) const;
  const Slices<Grid>& scale_matrix(Reach reach) const;

  // The sources of a table in order of precedence. Empty where the store has none.
  std::vector<TableSource> sources(const std::string& table, Reach reach) const;

 private:
  struct Loaded;
  PerfDatabase(std::vector<StoredTable> tables, Sidecars sidecars, catalog::SystemCard system,
               EngineVersion version);
  struct Choice {
    const StoredTable* stored;
    std::vector<std::string> kernels;  // empty: all rows
  };
  std::vector<Choice> choices(const std::string& table, Reach reach) const;
  Sources load(const std::string& table, Reach reach) const;
  template <class Slice, class Build>
  const Slices<Slice>& once(std::unique_ptr<Slices<Slice>>& place, const Build& build) const;

  std::vector<StoredTable> tables_;
  Sidecars sidecars_;
  catalog::SystemCard system_;
  EngineVersion version_;
  mutable std::mutex mutex_;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace servecast::perf
