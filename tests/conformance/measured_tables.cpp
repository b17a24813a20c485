// SPDX-License-Identifier: Apache-2.0
#include "conformance/measured_tables.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "perf/table/import.hpp"
#include "perf/table/parquet.hpp"

namespace servecast::test {
namespace {

namespace fs = std::filesystem;

fs::path sample() {
  const char* data = std::getenv("SERVECAST_DATA");
  return data == nullptr ? fs::path() : fs::path(data) / "perf/systems";
}

// A store of one system and engine version and of the collectives' library, gone when it goes.
struct Store {
  fs::path path;
  Store(const std::string& system, const std::string& engine, const std::string& version) {
    path = fs::temp_directory_path() /
           ("servecast_tables_" + std::to_string(getpid()) + "_" + system + engine + version);
    const fs::path in = path / "in/data";
    for (const auto& entry : fs::recursive_directory_iterator(sample() / "data" / system)) {
      if (entry.path().extension() != ".parquet") continue;
      const fs::path relative = entry.path().lexically_relative(sample() / "data");
      const std::string text = relative.string();
      const bool own = text.find("/" + engine + "/" + version + "/") != std::string::npos;
      if (!own && text.find("/nccl/") == std::string::npos) continue;
      fs::create_directories((in / relative).parent_path());
      fs::create_symlink(entry.path(), in / relative);
    }
    fs::create_symlink(sample() / (system + ".yaml"), path / "in" / (system + ".yaml"));
    const auto report = perf::import_tables(path / "in", path / "out");
    if (!report) throw std::runtime_error(to_text(report.error().front()));
    if (!report->refused.empty()) throw std::runtime_error(to_text(report->refused.front()));
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() { fs::remove_all(path); }
};

std::shared_ptr<const perf::PerfDatabase> opened(const std::string& system,
                                                 const perf::EngineVersion& version) {
  const Store store(system, std::string(to_string(version.engine)), version.version);
  const auto card = catalog::find_system(system);
  if (!card) throw std::runtime_error(to_text(card.error().front()));
  const auto database = perf::PerfDatabase::open(store.path / "out", *card, version);
  if (!database) throw std::runtime_error(to_text(database.error().front()));
  // Tables are unpacked when they are asked for, and the store goes: ask now.
  const perf::PerfDatabase& db = **database;
  for (const perf::Reach reach : {perf::Reach::Own, perf::Reach::All}) {
    db.gemm(reach);
    db.context_attention(reach);
    db.generation_attention(reach);
    db.encoder_attention(reach);
    db.mla_bmm(reach);
    db.dsa_context(reach);
    db.dsa_generation(reach);
    db.all_reduce(reach);
    db.compute_scale(reach);
    db.scale_matrix(reach);
    for (const bool part : {false, true}) {
      db.mla_context(reach, part);
      db.mla_generation(reach, part);
      db.experts(reach, part);
    }
  }
  db.nccl();
  return *database;
}

}  // namespace

std::string no_measured_tables() {
  if (sample().empty()) return "SERVECAST_DATA is not set";
  if (!fs::exists(sample() / "data")) return sample().string() + " is not there";
  if (!perf::can_read_parquet()) return "this build has no DuckDB";
  return {};
}

std::shared_ptr<const perf::PerfDatabase> measured_tables(const std::string& system,
                                                          const perf::EngineVersion& version) {
  const std::string engine(to_string(version.engine));
  static std::map<std::string, std::shared_ptr<const perf::PerfDatabase>> opened_before;
  auto& known = opened_before[system + " " + engine + " " + version.version];
  if (!known) known = opened(system, version);
  return known;
}

}  // namespace servecast::test
