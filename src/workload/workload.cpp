// SPDX-License-Identifier: Apache-2.0
#include "workload/workload.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "workload/arrivals.hpp"
#include "workload/generated.hpp"
#include "workload/spec_check.hpp"
#include "workload/trace.hpp"

namespace servecast::workload {
namespace {

// Walks a trace in order of arrival, or of the file.
class TraceWalk {
 public:
  explicit TraceWalk(const Trace& trace) : trace_(&trace) {}
  bool next(Session& session);

 private:
  const Trace* trace_;
  std::uint32_t position_ = 0;
};

bool TraceWalk::next(Session& session) {
  if (position_ == trace_->session_count()) return false;
  const std::uint32_t index = trace_->order.empty() ? position_ : trace_->order[position_];
  ++position_;
  const TraceSession& stored = trace_->sessions[index];
  session.index = index;
  session.first_request = stored.first_turn;
  session.plan_offset = stored.plan_offset;
  session.arrival = stored.arrival;
  session.group = 0;
  session.shared_tokens = 0;
  const auto turns = trace_->turns.begin();
  session.turns.assign(turns + static_cast<std::ptrdiff_t>(stored.first_turn),
                       turns + static_cast<std::ptrdiff_t>(trace_->sessions[index + 1].first_turn));
  session.ids.clear();
  return true;
}

}  // namespace

struct Workload::Plan {
  std::variant<Generated, Trace> source;
  Load load{};
  Duration cancel_after = kForever;
  Notes no_notes{};  // of a synthetic source
  const Generated* generated() const { return std::get_if<Generated>(&source); }
  const Trace* trace() const { return std::get_if<Trace>(&source); }
};

struct Workload::Cursor::State {
  std::shared_ptr<const Plan> plan;  // what the walk reads
  std::variant<GeneratedWalk, TraceWalk> walk;
  std::optional<Arrivals> arrivals;  // synthetic, open loop
};

Workload::Workload() {
  const LengthDraw nothing{Length{}};
  plan_ = std::make_shared<const Plan>(
      Plan{.source = Generated{.input = nothing, .output = nothing}, .load = {}, .no_notes = {}});
}
Workload::Workload(Workload&&) noexcept = default;
Workload& Workload::operator=(Workload&&) noexcept = default;
Workload::~Workload() = default;

bool Workload::closed_loop() const {
  return plan_->load.kind == Load::Kind::Concurrency;
}

std::uint32_t Workload::concurrency() const {
  return plan_->load.concurrency;
}

bool Workload::accumulating() const {
  const Generated* generated = plan_->generated();
  return generated != nullptr && generated->block_size > 0;
}

bool Workload::single_turn() const {
  return request_count() == session_count();
}

bool Workload::has_authored_outputs() const {
  return !authored_tokens().empty();
}

std::uint64_t Workload::session_count() const {
  if (const Trace* trace = plan_->trace()) return trace->session_count();
  return plan_->generated()->sessions;
}

std::uint64_t Workload::request_count() const {
  if (const Trace* trace = plan_->trace()) return trace->turns.size();
  return std::uint64_t{plan_->generated()->sessions} * plan_->generated()->turns;
}

std::uint32_t Workload::input_tokens_max() const {
  if (const Trace* trace = plan_->trace()) return trace->input_tokens_max;
  return plan_->generated()->input_tokens_max;
}

std::uint32_t Workload::total_tokens_max() const {
  if (const Trace* trace = plan_->trace()) return trace->total_tokens_max;
  return plan_->generated()->total_tokens_max;
}

std::uint32_t Workload::trace_block_size() const {
  if (const Trace* trace = plan_->trace()) return trace->ids.empty() ? 1 : trace->block_size;
  return accumulating() ? plan_->generated()->block_size : 1;
}

std::span<const std::uint32_t> Workload::ids() const {
  if (const Trace* trace = plan_->trace()) return trace->ids;
  return {};
}

std::span<const std::uint32_t> Workload::authored_tokens() const {
  if (const Trace* trace = plan_->trace()) return trace->authored;
  return {};
}

bool Workload::may_cancel() const {
  const Trace* trace = plan_->trace();
  return plan_->cancel_after != kForever || (trace != nullptr && trace->cancels);
}

Duration Workload::cancel_after() const {
  return plan_->cancel_after;
}

bool Workload::has_images() const {
  const Trace* trace = plan_->trace();
  return trace != nullptr && !trace->images.empty();
}

std::span<const Image> Workload::images(std::uint32_t row) const {
  if (const Trace* trace = plan_->trace()) return trace->images.at(row);
  return {};
}

const Notes& Workload::notes() const {
  if (const Trace* trace = plan_->trace()) return trace->notes;
  return plan_->no_notes;
}

std::string_view Workload::session_name(std::uint32_t session) const {
  if (const Trace* trace = plan_->trace()) return trace->session_names.at(session);
  return {};
}

std::string_view Workload::request_name(std::uint32_t row) const {
  if (const Trace* trace = plan_->trace()) return trace->request_names.at(row);
  return {};
}

std::string_view Workload::metadata(std::uint32_t row) const {
  if (const Trace* trace = plan_->trace()) return trace->metadata.at(row);
  return {};
}

Workload::Cursor::Cursor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workload::Cursor::Cursor(Cursor&&) noexcept = default;
Workload::Cursor& Workload::Cursor::operator=(Cursor&&) noexcept = default;
Workload::Cursor::~Cursor() = default;

bool Workload::Cursor::next(Session& session) {
  State& state = *state_;
  if (auto* walk = std::get_if<TraceWalk>(&state.walk)) return walk->next(session);
  if (!std::get<GeneratedWalk>(state.walk).next(session)) return false;
  if (state.arrivals) session.arrival = state.arrivals->next();
  return true;
}

Workload::Cursor Workload::cursor(bool spell) const {
  if (const Trace* trace = plan_->trace()) {
    return Cursor(
        std::make_unique<Cursor::State>(Cursor::State{plan_, TraceWalk(*trace), std::nullopt}));
  }
  Cursor::State state{plan_, GeneratedWalk(*plan_->generated(), spell), std::nullopt};
  if (!closed_loop()) state.arrivals.emplace(plan_->load);
  return Cursor(std::make_unique<Cursor::State>(std::move(state)));
}

namespace {

Result<std::variant<Generated, Trace>> build_source(const Spec& spec) {
  if (const auto* trace = std::get_if<TraceSource>(&spec.source)) {
    return load_trace(*trace, spec.load).map([](Trace&& loaded) {
      return std::variant<Generated, Trace>(std::move(loaded));
    });
  }
  const Result<std::uint32_t> count = resolve_count(spec);
  if (!count) return tl::unexpected(count.error());
  if (spec.load.kind != Load::Kind::Concurrency) {
    if (auto problem = check_arrivals(spec.load, rate_field(spec), *count))
      return fail(std::move(*problem));
  }
  const auto* sessions = std::get_if<SessionSource>(&spec.source);
  Result<Generated> generated =
      sessions != nullptr ? make_generated(*sessions, *count)
                          : make_generated(std::get<SyntheticSource>(spec.source), *count);
  if (!generated) return tl::unexpected(std::move(generated).error());
  return std::variant<Generated, Trace>(std::move(*generated));
}

}  // namespace

Result<Workload> build(const Spec& spec) {
  if (Problems problems = check_spec(spec); !problems.empty())
    return tl::unexpected(std::move(problems));
  auto source = build_source(spec);
  if (!source) return tl::unexpected(std::move(source).error());
  Duration cancel_after = kForever;
  if (spec.cancel_after_ms)
    cancel_after.ns = std::max<std::int64_t>(1, ns_from_ms(*spec.cancel_after_ms).value());
  Workload workload;
  workload.plan_ = std::make_shared<const Workload::Plan>(Workload::Plan{
      .source = std::move(*source), .load = spec.load, .cancel_after = cancel_after});
  return workload;
}

}  // namespace servecast::workload
