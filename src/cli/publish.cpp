// SPDX-License-Identifier: Apache-2.0
#include "cli/publish.hpp"

#include <utility>

#include "cli/interrupt.hpp"
#include "config/setting.hpp"

namespace servecast::cli {
namespace {

using report::Write;
using Produce = std::function<Result<void>(const Write&)>;

Result<void> interrupted() {
  return fail(
      {"run.interrupted", "interrupted while writing; nothing was kept", {}, "", Fault::Execution});
}

}  // namespace

report::Names names_of(const workload::Workload& workload) {
  return {.request = [&](std::uint32_t row) { return workload.request_name(row); },
          .session = [&](std::uint32_t session) { return workload.session_name(session); },
          .metadata = [&](std::uint32_t row) { return workload.metadata(row); },
          .sessions = workload.accumulating() && !workload.single_turn()};
}

Result<void> publish(const report::OutputOptions& where, const Prepared& prepared,
                     Prediction& prediction, const Capture& capture,
                     const report::Manifest& manifest) {
  // Outlives the directory, which cleans up before a noted signal ends the process.
  const DeferSignals deferred;
  report::OutputDirectory directory(where);
  if (Result<void> usable = directory.check(); !usable) return usable;
  const auto stage = [&](std::string_view name, const Produce& produce) -> Result<void> {
    if (DeferSignals::was_signalled()) return interrupted();
    return directory.stage(name, produce);
  };
  const auto stage_text = [&](std::string_view name, const std::string& text) {
    return stage(name, [&](const Write& write) -> Result<void> {
      write(text);
      return {};
    });
  };
  Result<void> done = stage_text("prediction.json", report::prediction_json(prediction.report));
  if (done) done = stage_text("resolved-input.yaml", config::to_yaml(prepared.config.settings));
  if (done && capture.requests)
    done = stage("requests.jsonl", [&](const Write& write) {
      return report::write_requests(*prediction.collector, names_of(prepared.workload), write);
    });
  if (done && capture.passes)
    done = stage("passes.jsonl", [&](const Write& write) {
      return report::write_passes(*prediction.collector, write);
    });
  if (done && capture.kv_events)
    done = stage(
        capture.kv_events_wire ? "kv-events.msgpack" : "kv-events.jsonl",
        [&](const Write& write) { return report::write_kv_events(*prediction.collector, write); });
  if (done && DeferSignals::was_signalled()) done = interrupted();
  if (!done) return done;
  return directory.commit(manifest);
}

}  // namespace servecast::cli
