// SPDX-License-Identifier: Apache-2.0
#include "catalog/user_files.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "catalog/hf_config.hpp"
#include "catalog/hf_json.hpp"

namespace servecast::catalog {
namespace {

constexpr std::uintmax_t kFileBytesMax = 64'000'000;

// Names no folder of the user's machine but the last.
std::string short_name(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path().filename();
  return parent.empty() || parent == "." || parent == ".."
             ? path.filename().string()
             : (parent / path.filename()).generic_string();
}

}  // namespace

bool names_a_file(const std::string& name) {
  for (const char* ending : {".json", ".yaml", ".yml"}) {
    if (name.ends_with(ending)) return true;
  }
  std::error_code ignored;
  return std::filesystem::is_regular_file(name, ignored);
}

Result<std::string> read_card_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream)
    return fail({"file.unreadable", "the file cannot be read", {.file = path}, ""});
  if (bytes > kFileBytesMax)
    return fail({"file.unreadable",
                 fmt::format("the file has {} bytes; at most {}", bytes, kFileBytesMax),
                 {.file = path},
                 ""});
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

Result<ModelCard> load_model(const std::string& path) {
  const Result<std::string> text = read_card_file(path);
  if (!text) return tl::unexpected(text.error());
  const HfJson root = parse_lenient(*text);
  if (root.is_object() && !root.contains("architectures") && root.contains("layers"))
    return parse_model_card(*text, path);
  const std::filesystem::path file(path);
  const std::string quant_path = (file.parent_path() / "hf_quant_config.json").string();
  std::optional<std::string> quant;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(quant_path, ignored)) {
    Result<std::string> read = read_card_file(quant_path);
    if (!read) return tl::unexpected(read.error());
    quant = *std::move(read);
  }
  Result<ModelCard> card = read_hf_config(
      *text, short_name(file), quant ? std::optional<std::string_view>(*quant) : std::nullopt);
  if (!card) {
    for (Problem& problem : card.error()) problem.place.file = path;
    return card;
  }
  card->source = path;
  card->licence = "the user's";
  return card;
}

Result<StepModel> load_step_model(const std::string& path) {
  const Result<std::string> text = read_card_file(path);
  if (!text) return tl::unexpected(text.error());
  return parse_step_model(*text, path);
}

}  // namespace servecast::catalog
