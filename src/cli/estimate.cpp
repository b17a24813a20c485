// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "cli/commands.hpp"
#include "cli/estimate_report.hpp"
#include "cli/input_options.hpp"
#include "cli/static_estimate.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "config/setting.hpp"

namespace servecast::cli {
namespace {

// product.md 19.6: what is taken with --model.
constexpr std::uint32_t kInputTokens = 1024;
constexpr std::uint32_t kOutputTokens = 1024;
constexpr std::uint32_t kBatch = 128;

struct EstimateOptions {
  InputOptions input;
  std::string model, system, version;
  std::vector<std::pair<const char*, std::string>> fields;  // path in the configuration, value
  std::optional<std::uint32_t> input_tokens, output_tokens, batch;
  std::string format = "table";
  bool detail = false;
  bool print_config = false;
  bool quiet = false;
};

bool has_document(const InputOptions& input) {
  return !input.config.empty() || !input.quick.empty();
}

Result<void> check_words(const EstimateOptions& options) {
  if (has_document(options.input) || (!options.model.empty() && !options.system.empty())) return {};
  return fail({"cli.config",
               "a configuration is required, or a model and a system",
               {},
               "give --config PATH or --model NAME --system NAME"});
}

// The options that stand for fields become --set, before those of the user.
InputOptions input_of(const EstimateOptions& options) {
  InputOptions input = options.input;
  std::vector<std::string> sets;
  if (!has_document(input)) {
    input.quick = {options.model, options.system};
    input.quick_name = "--model";
  } else {
    if (!options.model.empty()) sets.push_back("engine.model=" + config::yaml_text(options.model));
    if (!options.system.empty())
      sets.push_back("engine.hardware=" + config::yaml_text(options.system));
  }
  if (!options.version.empty())
    sets.push_back("engine.backend_version=" + config::yaml_text(options.version));
  for (const auto& [path, value] : options.fields) {
    if (!value.empty()) sets.push_back(fmt::format("{}={}", path, value));
  }
  input.sets.insert(input.sets.begin(), sets.begin(), sets.end());
  return input;
}

std::optional<std::uint32_t> fixed(const workload::Length& length) {
  if (length.kind != workload::Length::Kind::Fixed) return std::nullopt;
  return length.fixed;
}

// The batch as fields of the configuration, so that predict can run what was estimated.
Result<config::Config> with_shape(InputOptions input, const EstimateOptions& options,
                                  const config::Config& read) {
  const bool by_default = !has_document(options.input);
  std::optional<std::uint32_t> isl = options.input_tokens, osl = options.output_tokens;
  const auto* source = std::get_if<workload::SyntheticSource>(&read.traffic.source);
  if (source != nullptr && !by_default) {
    if (!isl) isl = fixed(source->input);
    if (!osl) osl = fixed(source->output);
  }
  std::vector<std::string> sets;
  if (options.input_tokens || options.output_tokens || by_default) {
    sets.push_back(
        fmt::format("traffic.source={{type: synthetic, input_tokens: {}, output_tokens: {}}}",
                    isl.value_or(kInputTokens), osl.value_or(kOutputTokens)));
    if (source == nullptr) sets.push_back("traffic.stop={requests_per_load_unit: 10}");
  }
  if (options.batch || by_default) {
    const std::uint64_t ranks =
        std::uint64_t{read.engine.replicas} * read.engine.parallelism.attention_data;
    sets.push_back(fmt::format("traffic.load={{type: concurrency, concurrency: {}}}",
                               options.batch.value_or(kBatch) * ranks));
  }
  if (sets.empty()) return read;
  // What the user sets wins.
  input.sets.insert(input.sets.begin(), sets.begin(), sets.end());
  return read_config(input);
}

Exit show_estimate(const EstimateOptions& options) {
  if (const Result<void> words = check_words(options); !words) return print_problems(words.error());
  const InputOptions input = input_of(options);
  Result<config::Config> read = read_config(input);
  if (!read) return print_problems(read.error());
  const Result<config::Config> config = with_shape(input, options, *read);
  if (!config) return print_problems(config.error());
  if (options.print_config) return print_result(config::to_yaml(config->settings));
  const Result<Estimate> found = estimate(*config);
  if (!found) return print_problems(found.error());
  if (!options.quiet) {
    for (const std::string& line : found->warnings) print_warning(line);
  }
  const Detail detail = options.detail ? Detail::Full : Detail::Brief;
  if (options.format == "json") return print_result(estimate_json(*found, detail));
  return print_result(estimate_table(*found, detail));
}

void add_placement_options(CLI::App& app, EstimateOptions& options) {
  struct Field {
    const char* flag;
    const char* path;
    const char* help;
    const char* type;
  };
  static constexpr Field kFields[] = {
      {"--backend", "engine.backend", "The engine; vllm where nothing says", "vllm|sglang|trtllm"},
      {"--replicas", "engine.workers.aggregated.parallelism.replicas", "Workers", "N"},
      {"--tensor", "engine.workers.aggregated.parallelism.tensor", "Tensor ranks of a worker", "N"},
      {"--pipeline", "engine.workers.aggregated.parallelism.pipeline",
       "Pipeline stages of a worker", "N"},
      {"--attention-data", "engine.workers.aggregated.parallelism.attention_data",
       "Attention-data ranks of a worker", "N"},
      {"--moe-tensor", "engine.workers.aggregated.parallelism.moe_tensor",
       "Ranks that share each expert", "N"},
      {"--moe-expert", "engine.workers.aggregated.parallelism.moe_expert",
       "Ranks that experts are dealt to", "N"}};
  options.fields.reserve(std::size(kFields));
  for (const Field& field : kFields) {
    auto& [path, value] = options.fields.emplace_back(field.path, std::string());
    CLI::Option& option = *app.add_option(field.flag, value, field.help)->type_name(field.type);
    if (std::string_view(field.type).find('|') != std::string_view::npos)
      take_one_of(option, field.type);
  }
}

}  // namespace

void add_estimate(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<EstimateOptions>();
  CLI::App& app = *root.add_subcommand(
      "estimate", "Latencies, throughput and memory of one batch, and where the time goes");
  add_input_options(app, options->input);
  app.add_option("--model", options->model, "The model; with --system no file is needed")
      ->type_name("NAME");
  app.add_option("--system", options->system, "The system")->type_name("NAME");
  add_placement_options(app, *options);
  app.add_option("--backend-version", options->version, "Version of the engine, such as 0.19.0")
      ->type_name("VERSION");
  const auto count = [&](const char* flag, std::optional<std::uint32_t>& value, const char* help) {
    app.add_option(flag, value, help)
        ->type_name("N")
        ->check(CLI::Range(1U, 100'000'000U).description(""));
  };
  count("--isl", options->input_tokens, "Prompt tokens of each request; where nothing says, 1024");
  count("--osl", options->output_tokens, "Output tokens of each request; where nothing says, 1024");
  count("--batch", options->batch,
        "Requests of each attention-data rank; with --model 128 if not given");
  take_one_of(
      *app.add_option("--format", options->format, "What stdout shows")->capture_default_str(),
      "table|json");
  app.add_flag("--detail", options->detail,
               "Also bars and the measured effects that the times rest on");
  app.add_flag("--print-config", options->print_config,
               "Print the configuration that predict replays as this batch, and exit");
  app.add_flag("-q,--quiet", options->quiet, "No warnings on stderr");
  app.footer(
      "Examples:\n"
      "  servecast estimate --model Qwen/Qwen3-32B --system h200_sxm --tensor 4 --isl 4096 "
      "--batch 32\n"
      "  servecast estimate --model openai/gpt-oss-120b --system b200_sxm --batch 16 --detail\n"
      "  servecast estimate -c run.yaml --batch 8 --format json\n"
      "  servecast estimate --quick Qwen/Qwen3-8B l4 concurrency=1 --print-config > run.yaml\n"
      "\n"
      "Exit code 2 also means that the model or the batch does not fit into the GPUs: needed and\n"
      "available bytes are printed.");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return show_estimate(*options); };
  });
}

}  // namespace servecast::cli
