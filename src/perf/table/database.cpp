// SPDX-License-Identifier: Apache-2.0
#include "perf/table/database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

std::size_t at(Reach reach) {
  return static_cast<std::size_t>(reach);
}

void keep_kernels(MeasuredTable& table, const std::vector<std::string>& kernels) {
  const Column* kernel = table.find("kernel_source");
  if (kernels.empty() || kernel == nullptr) return;
  std::vector<std::size_t> kept;
  for (std::size_t row = 0; row < table.rows; ++row) {
    if (std::find(kernels.begin(), kernels.end(), kernel->text(row)) != kernels.end())
      kept.push_back(row);
  }
  for (Column& column : table.columns) {
    const auto pick = [&](auto& values) {
      if (values.empty()) return;
      for (std::size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
      values.resize(kept.size());
    };
    pick(column.whole);
    pick(column.real);
  }
  table.rows = kept.size();
}

bool lists(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

struct PerfDatabase::Loaded {
  template <class Slice>
  using ByReach = std::array<std::unique_ptr<Slices<Slice>>, 2>;
  ByReach<Sites> gemm;
  ByReach<Grid> context_attention, generation_attention, encoder_attention;
  std::array<ByReach<Grid>, 2> mla_context, mla_generation;  // operator, module
  ByReach<Curve> mla_bmm;
  ByReach<Grid> dsa_context, dsa_generation;
  std::array<ByReach<Curve>, 2> experts;  // all batches, small ones
  ByReach<Curve> all_reduce;
  std::unique_ptr<Slices<Curve>> nccl;
  ByReach<Grid> compute_scale, scale_matrix;
};

PerfDatabase::PerfDatabase(std::vector<StoredTable> tables, Sidecars sidecars,
                           catalog::SystemCard system, EngineVersion version)
    : tables_(std::move(tables)),
      sidecars_(std::move(sidecars)),
      system_(std::move(system)),
      version_(std::move(version)),
      loaded_(std::make_unique<Loaded>()) {}

PerfDatabase::~PerfDatabase() = default;

Result<std::shared_ptr<const PerfDatabase>> PerfDatabase::open(const std::filesystem::path& store,
                                                               const catalog::SystemCard& system,
                                                               const EngineVersion& version) {
  auto tables = stored_tables(store);
  if (!tables) return tl::unexpected(tables.error());
  std::erase_if(*tables, [&](const StoredTable& one) { return one.source.system != system.name; });
  const auto engine = to_string(version.engine);
  const bool known = std::any_of(tables->begin(), tables->end(), [&](const StoredTable& one) {
    return one.source.backend == engine && !earlier_version(version.version, one.source.version);
  });
  if (!known)
    return fail({.code = "perfdata.unknown_table",
                 .message = fmt::format("no measured table of {} {} or an earlier version on {}",
                                        engine, version.version, system.name),
                 .place = {.file = store.string()},
                 .hint = "'servecast perfdata list' names what there is"});
  // A table is unpacked when it is needed; whether it can be, is known now.
  for (const StoredTable& one : *tables) {
    if (const auto header = read_table_header(one.path); !header)
      return tl::unexpected(header.error());
  }
  auto sidecars = read_sources(store);
  if (!sidecars) return tl::unexpected(sidecars.error());
  return std::shared_ptr<const PerfDatabase>(
      new PerfDatabase(std::move(*tables), std::move(*sidecars), system, version));
}

std::vector<PerfDatabase::Choice> PerfDatabase::choices(const std::string& table,
                                                        Reach reach) const {
  const std::string engine(to_string(version_.engine));
  std::vector<Choice> own, others;
  for (const StoredTable& stored : tables_) {
    const TableSource& source = stored.source;
    if (source.table != table) continue;
    if (source.backend == engine) {
      const bool same = source.version == version_.version;
      const bool earlier = reach == Reach::All && is_version(source.version) &&
                           earlier_version(source.version, version_.version);
      if (same || earlier) own.push_back({&stored, {}});
      continue;
    }
    if (reach == Reach::Own || table == "custom_allreduce") continue;
    std::vector<std::string> kernels;
    for (const SharedKernel& shared : sidecars_.shared) {
      if (shared.table == table && lists(shared.engines, engine) &&
          lists(shared.engines, source.backend))
        kernels.push_back(shared.kernel);
    }
    if (!kernels.empty()) others.push_back({&stored, std::move(kernels)});
  }
  const auto newer = [](const Choice& a, const Choice& b) {
    return earlier_version(b.stored->source.version, a.stored->source.version);
  };
  std::stable_sort(own.begin(), own.end(), newer);
  std::stable_sort(others.begin(), others.end(), newer);
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

std::vector<TableSource> PerfDatabase::sources(const std::string& table, Reach reach) const {
  std::vector<TableSource> out;
  for (const Choice& choice : choices(table, reach)) out.push_back(choice.stored->source);
  return out;
}

Sources PerfDatabase::load(const std::string& table, Reach reach) const {
  Sources out;
  for (const Choice& choice : choices(table, reach)) {
    auto read = read_table(choice.stored->path);
    // Its header was read when the store was opened: somebody writes into the store while it is in
    // use.
    if (!read) continue;
    keep_kernels(*read, choice.kernels);
    out.push_back(std::move(*read));
  }
  return out;
}

template <class Slice, class Build>
const Slices<Slice>& PerfDatabase::once(std::unique_ptr<Slices<Slice>>& place,
                                        const Build& build) const {
  const std::lock_guard lock(mutex_);
  if (!place) place = std::make_unique<Slices<Slice>>(build());
  return *place;
}

const Slices<Sites>& PerfDatabase::gemm(Reach reach) const {
  return once(loaded_->gemm[at(reach)], [&] { return gemm_slices(load("gemm", reach), system_); });
}

const Slices<Grid>& PerfDatabase::context_attention(Reach reach) const {
  return once(loaded_->context_attention[at(reach)],
              [&] { return context_attention_slices(load("context_attention", reach)); });
}

const Slices<Grid>& PerfDatabase::generation_attention(Reach reach) const {
  return once(loaded_->generation_attention[at(reach)], [&] {
    return generation_attention_slices(load("generation_attention", reach), system_);
  });
}

const Slices<Grid>& PerfDatabase::encoder_attention(Reach reach) const {
  return once(loaded_->encoder_attention[at(reach)],
              [&] { return encoder_attention_slices(load("encoder_attention", reach)); });
}

const Slices<Grid>& PerfDatabase::mla_context(Reach reach, bool module) const {
  const char* table = module ? "mla_context_module" : "context_mla";
  return once(loaded_->mla_context[module ? 1 : 0][at(reach)],
              [&] { return mla_context_slices(load(table, reach)); });
}

const Slices<Grid>& PerfDatabase::mla_generation(Reach reach, bool module) const {
  const char* table = module ? "mla_generation_module" : "generation_mla";
  return once(loaded_->mla_generation[module ? 1 : 0][at(reach)],
              [&] { return mla_generation_slices(load(table, reach)); });
}

const Slices<Curve>& PerfDatabase::mla_bmm(Reach reach) const {
  return once(loaded_->mla_bmm[at(reach)], [&] { return mla_bmm_slices(load("mla_bmm", reach)); });
}

const Slices<Grid>& PerfDatabase::dsa_context(Reach reach) const {
  return once(loaded_->dsa_context[at(reach)],
              [&] { return dsa_context_slices(load("dsa_context_module", reach)); });
}

const Slices<Grid>& PerfDatabase::dsa_generation(Reach reach) const {
  return once(loaded_->dsa_generation[at(reach)],
              [&] { return dsa_generation_slices(load("dsa_generation_module", reach)); });
}

const Slices<Curve>& PerfDatabase::experts(Reach reach, bool small_batches) const {
  return once(loaded_->experts[small_batches ? 1 : 0][at(reach)],
              [&] { return expert_slices(load("moe", reach), small_batches); });
}

const Slices<Curve>& PerfDatabase::all_reduce(Reach reach) const {
  return once(loaded_->all_reduce[at(reach)],
              [&] { return all_reduce_slices(load("custom_allreduce", reach)); });
}

const Slices<Curve>& PerfDatabase::nccl() const {
  return once(loaded_->nccl, [&] {
    // One version of the library: the one that the system's tables assume, else the newest, which
    // comes last.
    const auto assumed = sidecars_.nccl_version.find(system_.name);
    const StoredTable* chosen = nullptr;
    for (const StoredTable& stored : tables_) {
      if (stored.source.table != "nccl") continue;
      chosen = &stored;
      if (assumed != sidecars_.nccl_version.end() && stored.source.version == assumed->second)
        break;
    }
    Sources sources;
    if (chosen != nullptr) {
      if (auto read = read_table(chosen->path)) sources.push_back(std::move(*read));
    }
    return nccl_slices(sources);
  });
}

const Slices<Grid>& PerfDatabase::compute_scale(Reach reach) const {
  return once(loaded_->compute_scale[at(reach)],
              [&] { return scale_slices(load("computescale", reach)); });
}

const Slices<Grid>& PerfDatabase::scale_matrix(Reach reach) const {
  return once(loaded_->scale_matrix[at(reach)],
              [&] { return scale_slices(load("scale_matrix", reach)); });
}

}  // namespace servecast::perf
