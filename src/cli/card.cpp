// SPDX-License-Identifier: Apache-2.0
// For developers: a card file of data/models/ from the config.json of a checkpoint, so that cards
// are made and not typed (tools/make-cards.sh).
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "catalog/hf_config.hpp"
#include "catalog/user_files.hpp"
#include "cli/commands.hpp"
#include "cli/terminal.hpp"

namespace servecast::cli {
namespace {

struct CardOptions {
  std::string config;
  std::string name;
  std::vector<std::string> aliases;
  std::string quant;
  std::string source;
  std::string licence;
};

Exit print_card(const CardOptions& options) {
  const Result<std::string> text = catalog::read_card_file(options.config);
  if (!text) return print_problems(text.error());
  std::optional<std::string_view> quant;
  if (!options.quant.empty()) quant = options.quant;
  Result<catalog::ModelCard> card = catalog::read_hf_config(*text, options.name, quant);
  if (!card) return print_problems(card.error());
  card->aliases = options.aliases;
  card->source = options.source;
  card->licence = options.licence;
  return print_result(catalog::to_json(*card));
}

}  // namespace

void add_card(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<CardOptions>();
  CLI::App& app =
      *root.add_subcommand("card", "Print a model card made of a config.json")->group("");
  app.add_option("config", options->config, "The config.json")->required();
  app.add_option("name", options->name, "Organisation and model")->required();
  app.add_option("--alias", options->aliases, "Another name of the checkpoint");
  app.add_option("--quant", options->quant, "Text of a hf_quant_config.json");
  app.add_option("--source", options->source, "Where the config.json comes from")->required();
  app.add_option("--licence", options->licence, "Licence of that")->required();
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return print_card(*options); };
  });
}

}  // namespace servecast::cli
