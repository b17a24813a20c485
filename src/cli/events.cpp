// SPDX-License-Identifier: Apache-2.0
// `servecast events FILE`: what a recorded stream of KV events tells, and what is resident after
// it.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/kv_events_text.hpp"
#include "cli/kv_stream.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "report/text_spool.hpp"

namespace servecast::cli {
namespace {

struct EventsOptions {
  std::string file;
  std::string format = "table";
};

// The lines are kept until the whole stream was read, so that a broken one prints nothing.
Exit convert(const EventsOptions& options) {
  report::TextSpool lines(report::kSpooledBytesInMemoryMax, {});
  cache::KvWireDecoder decoder;
  const Result<void> read = read_kv_stream(options.file, decoder, [&](const cache::KvBatch& batch) {
    append_event_lines(lines.buffer(), batch);
    lines.settle();
  });
  if (!read) return print_problems(read.error());
  if (auto problem = lines.file().problem()) return print_problems({*std::move(problem)});
  Exit exit = Exit::Success;
  const Result<void> written = lines.write([&](std::string_view text) {
    if (exit == Exit::Success) exit = print_result(text);
  });
  return written ? exit : print_problems(written.error());
}

Exit tell(const EventsOptions& options) {
  KvStreamFacts facts{.file = options.file};
  cache::KvWireDecoder decoder;
  const Result<void> read = read_kv_stream(options.file, decoder, [&](const cache::KvBatch& batch) {
    if (facts.batches++ == 0) facts.first_ts = batch.ts;
    facts.last_ts = batch.ts;
    facts.index.apply(batch);
  });
  if (!read) return print_problems(read.error());
  facts.bytes = decoder.offset();
  facts.notes = decoder.notes();
  return print_result(options.format == "json" ? json_of(facts) : table_of(facts));
}

}  // namespace

void add_events(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<EventsOptions>();
  CLI::App& app =
      *root.add_subcommand("events", "Tell what a recorded stream of vLLM KV cache events holds");
  app.add_option("file", options->file, "The stream: batches in msgpack, one after the other")
      ->required();
  take_one_of(
      *app.add_option("--format", options->format,
                      "What stdout shows; json lists every resident block; jsonl: one event "
                      "a line")
           ->capture_default_str(),
      "table|json|jsonl");
  app.footer(
      "Examples:\n"
      "  servecast predict -c run.yaml --capture-kv-events --kv-events-format msgpack-map\n"
      "  servecast events servecast-output/kv-events.msgpack\n"
      "  servecast events servecast-output/kv-events.msgpack --format jsonl");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) {
      return options->format == "jsonl" ? convert(*options) : tell(*options);
    };
  });
}

}  // namespace servecast::cli
