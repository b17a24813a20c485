// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/layout.hpp"

#include <algorithm>

namespace servecast::fit {
namespace {

using Text = std::string*(MeasuredRow&);
using Whole = std::optional<std::uint32_t>*(MeasuredRow&);
using Real = std::optional<double>*(MeasuredRow&);

Field text(std::string_view name, Text* of) {
  return {name, FieldKind::Text, of, nullptr, nullptr};
}
Field whole(std::string_view name, Whole* of) {
  return {name, FieldKind::Whole, nullptr, of, nullptr};
}
Field measured(std::string_view name, Real* of) {
  return {name, FieldKind::Measured, nullptr, nullptr, of};
}
Field real(std::string_view name, Real* of) {
  return {name, FieldKind::Real, nullptr, nullptr, of};
}

#define SERVECAST_FIELD(kind, name, member) kind(name, [](MeasuredRow& row) { return &row.member; })
#define SERVECAST_WIDTHS(prefix, member)                                      \
  SERVECAST_FIELD(whole, prefix "workers", member.workers),                   \
      SERVECAST_FIELD(whole, prefix "tensor", member.tensor),                 \
      SERVECAST_FIELD(whole, prefix "pipeline", member.pipeline),             \
      SERVECAST_FIELD(whole, prefix "attention_data", member.attention_data), \
      SERVECAST_FIELD(whole, prefix "moe_tensor", member.moe_tensor),         \
      SERVECAST_FIELD(whole, prefix "moe_expert", member.moe_expert)

std::vector<Field> make_fields() {
  return {SERVECAST_FIELD(text, "id", id),
          SERVECAST_FIELD(text, "model", model),
          SERVECAST_FIELD(text, "system", system),
          SERVECAST_FIELD(text, "engine", engine),
          SERVECAST_FIELD(text, "version", version),
          SERVECAST_FIELD(text, "precision", precision),
          SERVECAST_FIELD(text, "linear_precision", linear_precision),
          SERVECAST_FIELD(text, "expert_precision", expert_precision),
          SERVECAST_FIELD(text, "mode", mode),
          SERVECAST_FIELD(whole, "input_tokens", input_tokens),
          SERVECAST_FIELD(whole, "output_tokens", output_tokens),
          SERVECAST_FIELD(whole, "concurrency", concurrency),
          SERVECAST_FIELD(whole, "batch", batch),
          SERVECAST_FIELD(whole, "requests", requests),
          SERVECAST_FIELD(whole, "gpus", gpus),
          SERVECAST_FIELD(text, "rate", rate),
          SERVECAST_WIDTHS("", widths),
          SERVECAST_WIDTHS("prefill_", prefill),
          SERVECAST_WIDTHS("decode_", decode),
          SERVECAST_FIELD(measured, "ttft_ms", ttft_ms),
          SERVECAST_FIELD(measured, "ttft_p50_ms", ttft_p50_ms),
          SERVECAST_FIELD(measured, "tpot_ms", tpot_ms),
          SERVECAST_FIELD(measured, "e2e_ms", e2e_ms),
          SERVECAST_FIELD(measured, "output_tok_s_per_gpu", output_tok_s_per_gpu),
          SERVECAST_FIELD(text, "notes", notes),
          SERVECAST_FIELD(text, "protocol", protocol),
          SERVECAST_FIELD(whole, "nextn", nextn),
          SERVECAST_FIELD(real, "nextn_accepted", nextn_accepted),
          SERVECAST_FIELD(whole, "max_sequences", max_sequences),
          SERVECAST_FIELD(whole, "max_batched_tokens", max_batched_tokens),
          SERVECAST_FIELD(whole, "max_model_len", max_model_len),
          SERVECAST_FIELD(real, "memory_fraction", memory_fraction)};
}
#undef SERVECAST_WIDTHS
#undef SERVECAST_FIELD

// The columns of silicon_served.csv (realdata.md 2.1).
Layout silicon() {
  Layout layout{.name = "silicon",
                .columns = {{"id", "id"},
                            {"model", "model_path"},
                            {"system", "system"},
                            {"engine", "backend"},
                            {"version", "backend_version"},
                            {"precision", "precision"},
                            {"linear_precision", "gemm_quant_mode"},
                            {"expert_precision", "moe_quant_mode"},
                            {"mode", "mode"},
                            {"input_tokens", "isl"},
                            {"output_tokens", "osl"},
                            {"concurrency", "concurrency"},
                            {"batch", "batch_size"},
                            {"ttft_ms", "silicon_ttft_ms"},
                            {"tpot_ms", "silicon_tpot_ms"}},
                .constants = {},
                .factors = {}};
  for (const std::string prefix : {"", "prefill_", "decode_"}) {
    if (!prefix.empty()) layout.columns[prefix + "workers"] = prefix + "num_workers";
    layout.columns[prefix + "tensor"] = prefix + "tp_size";
    layout.columns[prefix + "pipeline"] = prefix + "pp_size";
    layout.columns[prefix + "attention_data"] = prefix + "attention_dp_size";
    layout.columns[prefix + "moe_tensor"] = prefix + "moe_tp_size";
    layout.columns[prefix + "moe_expert"] = prefix + "moe_ep_size";
  }
  return layout;
}

// The common columns of the other files (realdata.md 2.1).
Layout common() {
  return {.name = "common",
          .columns = {{"model", "model"},
                      {"system", "gpu"},
                      {"engine", "engine"},
                      {"version", "engine_version"},
                      {"precision", "precision"},
                      {"input_tokens", "isl"},
                      {"output_tokens", "osl"},
                      {"concurrency", "concurrency"},
                      {"gpus", "n_gpus"},
                      {"rate", "rate"},
                      {"tensor", "tp"},
                      {"pipeline", "pp"},
                      {"attention_data", "dp"},
                      {"moe_expert", "ep"},
                      {"ttft_ms", "ttft_ms"},
                      {"ttft_p50_ms", "ttft_p50_ms"},
                      {"tpot_ms", "tpot_ms"},
                      {"e2e_ms", "e2e_ms"},
                      {"output_tok_s_per_gpu", "out_tok_s_per_gpu"},
                      {"notes", "notes"}},
          .constants = {},
          .factors = {}};
}

bool has_column(const CsvTable& table, std::string_view name) {
  return std::any_of(table.header.fields.begin(), table.header.fields.end(),
                     [&](const CsvField& field) { return field.text == name; });
}

// Columns that only some versions of a file have: of the layout those that are there, and fields
// that stand under their own name.
Layout present(Layout layout, const CsvTable& table) {
  std::erase_if(layout.columns, [&](const auto& pair) { return !has_column(table, pair.second); });
  for (const Field& field : fields()) {
    const std::string name(field.name);
    if (!layout.columns.contains(name) && has_column(table, name)) layout.columns[name] = name;
  }
  return layout;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields = make_fields();
  return kFields;
}

const Field* find_field(std::string_view name) {
  for (const Field& field : fields()) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Result<Layout> layout_of(const CsvTable& table) {
  if (has_column(table, "model_path") && has_column(table, "backend"))
    return present(silicon(), table);
  if (has_column(table, "model") && has_column(table, "gpu") && has_column(table, "engine"))
    return present(common(), table);
  return fail(
      {"measured.layout",
       "the header is neither that of silicon_served.csv (model_path, backend, ...) nor the "
       "common one (model, gpu, engine, ...)",
       {table.file, table.header.line, 1},
       "say with --mapping which column is what"});
}

}  // namespace servecast::fit
