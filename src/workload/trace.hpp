// SPDX-License-Identifier: Apache-2.0
// A trace file in memory: compact rows in canonical order, and what its formats have in common. A
// format's reader turns lines into TraceRows; TraceBuilder checks them against each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "base/problem.hpp"
#include "base/time.hpp"
#include "workload/line_reader.hpp"
#include "workload/spec.hpp"
#include "workload/workload.hpp"

namespace servecast::workload {

// Lists by index, most of them empty; one that is empty throughout takes no memory.
template <class Item>
class ListTable {
 public:
  // requires: indexes ascend from call to call.
  void set(std::uint32_t index, std::span<const Item> list) {
    SERVECAST_CHECK(index >= ends_.size());
    ends_.resize(index, pool_.size());
    pool_.insert(pool_.end(), list.begin(), list.end());
    ends_.push_back(pool_.size());
  }
  std::span<const Item> at(std::uint32_t index) const {  // empty when none was set
    if (index >= ends_.size()) return {};
    const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::span(pool_).subspan(begin, ends_[index] - begin);
  }
  bool empty() const { return pool_.empty(); }

 private:
  std::vector<Item> pool_;
  std::vector<std::uint64_t> ends_;  // of each index's list in pool_
};

class NameTable {
 public:
  void set(std::uint32_t index, std::string_view text) { texts_.set(index, text); }
  std::string_view at(std::uint32_t index) const {
    const std::span<const char> text = texts_.at(index);
    return {text.data(), text.size()};
  }

 private:
  ListTable<char> texts_;
};

struct TraceSession {
  std::uint64_t first_turn = 0;   // in Trace::turns; also the creation ordinal of turn 0
  std::uint64_t plan_offset = 0;  // in words of the output plan
  Time arrival;
};

struct Trace {
  std::vector<Turn> turns;  // sessions in file order of their first rows, turns in file order
  std::vector<TraceSession>
      sessions;  // and one past the end, whose first_turn is the number of turns
  std::vector<std::uint32_t>
      order;  // session indexes by (arrival, index); empty when file order is that
  std::vector<std::uint32_t> ids;       // dense block ids of all prompts
  std::vector<std::uint32_t> authored;  // output tokens of the rows that bring them
  std::uint32_t block_size = 1;         // tokens per id
  bool cancels = false;                 // some turn has a cancel_after
  std::uint32_t input_tokens_max = 0, total_tokens_max = 0;
  NameTable session_names, request_names, metadata;
  ListTable<Image> images;  // by row
  Notes notes;

  std::uint32_t session_count() const { return static_cast<std::uint32_t>(sessions.size() - 1); }
};

// Problems of a file's rows: the first 20 as they are, the others as a count.
class RowProblems {
 public:
  static constexpr std::size_t kReportedMax = 20;
  explicit RowProblems(std::string path) : path_(std::move(path)) {}
  void add(std::uint64_t line, std::string code, std::string message, std::string hint = "");
  void add(Problem problem) {
    file_problems_.push_back(std::move(problem));
  }  // of the file as a whole
  bool empty() const { return count_ == 0 && file_problems_.empty(); }
  Place place(std::uint64_t line) const;
  Problems take();

 private:
  std::string path_;
  Problems rows_, file_problems_;
  std::uint64_t count_ = 0;
};

struct TraceRow {
  std::uint64_t line = 0;
  std::optional<std::string_view> session;  // nothing: a session of its own
  std::optional<std::int64_t> time_ns;      // as authored
  std::optional<std::int64_t> delay_ns;     // as authored
  std::string_view request_name, metadata;
  std::span<const Image> images;
  Turn turn;  // without delay and row, which the builder fills
};

class TraceBuilder {
 public:
  TraceBuilder(const TraceSource& source, const Load& load);

  // Rows must come in file order. A row with a problem of its own is announced by skip() when its
  // session is known, so that its followers are not taken for first turns.
  void add(const TraceRow& row);
  void skip(std::string_view session);
  std::vector<std::uint32_t>& ids() { return trace_.ids; }
  std::vector<std::uint32_t>& authored() { return trace_.authored; }
  Notes& notes() { return trace_.notes; }
  RowProblems& problems() { return problems_; }
  // requires: called once, after the last row.
  Result<Trace> finish();

 private:
  struct SessionState {
    std::uint32_t rows = 0;
    std::int64_t last_ns = 0;     // latest time of its rows
    std::int64_t arrival_ns = 0;  // as authored
  };
  std::uint32_t session_of(const std::optional<std::string_view>& name);
  bool set_time(const TraceRow& row, SessionState& session, Turn& turn);
  void order_by_session();
  void note_delta_suspects();
  bool move_times();
  void set_plan_offsets();
  std::optional<std::int64_t> sped_up(std::int64_t ns) const;

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  TraceSource source_;
  Load load_;
  Trace trace_;  // turns in file order until finish()
  RowProblems problems_;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> session_index_;
  std::vector<SessionState> sessions_;
  std::vector<std::uint32_t> session_of_row_;
  std::int64_t row_before_ns_ = 0;
  bool timed_ = false;
};

// Reads and checks the whole file.
Result<Trace> load_trace(const TraceSource& source, const Load& load);
// The same from a text in memory (plain, not gzip); source.path only names it in messages.
Result<Trace> parse_trace(std::string_view text, const TraceSource& source, const Load& load);

}  // namespace servecast::workload
