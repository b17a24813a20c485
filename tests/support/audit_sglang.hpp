// SPDX-License-Identifier: Apache-2.0
// An SGLang rank as its recorded passes tell it (engine-sglang.md S7, S8): who runs, who waits, how
// many tokens of each have their place. The parts of audit_sglang.cpp share it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/audit_laws.hpp"

namespace servecast::test {

struct SglangLife : Account {
  std::uint64_t id = 0;
  std::uint32_t input = 0, limit = 0;  // tokens of the prompt, and of the whole answer
  std::uint32_t generated = 0;         // tokens, also those that no pass has shown yet ...
  std::uint32_t unseen = 0;            // ... which are so many
  std::uint32_t computed = 0;          // tokens that have their place
  std::uint32_t tree_pages = 0;        // of the pages held, those in the tree
  std::uint64_t lease = 0;             // changes when it is admitted, preempted, or ends
  bool unfit = false;                  // will never run
  bool arrived = false;                // some pass could have seen it
  bool ended = false;

  std::uint32_t known() const { return input + generated; }
  std::uint32_t remaining() const { return limit - generated; }
};

// One request's part of a forward.
struct SglangRow {
  SglangLife* life = nullptr;
  std::uint64_t lease = 0;
  std::uint32_t from = 0, to = 0, tokens = 0;
  bool prefill = false, chunk = false, last = false;

  bool is_current() const { return life->lease == lease; }
};

struct SglangRank {
  std::vector<SglangLife*> arrivals;  // by arrival
  bool queue_is_told = true;          // what came at one instant came in that order
  std::vector<SglangLife*> waiting, running, unfit;
  SglangLife* chunked = nullptr;
  std::vector<SglangRow> flight;       // launched, not observed
  std::uint32_t leaving = 0;           // pages of canceled requests whose forward is in flight ...
  std::vector<SglangLife*> lingering;  // ... and those of them that are in one batch more
  // Pages held by requests and locked in the tree before the pass; nothing when not told.
  std::optional<std::uint32_t> held = 0;
  std::optional<std::uint32_t> free;  // pages, likewise
  double ratio = 0;
  bool ratio_may_be_new = false;  // the rank may have been idle (S7.9)
  SglangLife* failed = nullptr;   // ends with the pass
  std::uint64_t decodes = 0;      // observed decode forwards
  Time last_end;                  // of the pass before
  Time device_free;
};

class SglangAudit {
 public:
  SglangAudit(const replay::Deployment& deployment, const Recording& recording, Violations& v);
  void run(bool capped);

 private:
  using Pass = replay::PassRecord;
  using Parts = std::span<const Pass>;  // of one pass: one for each rank
  // What a prefill may still take (S7.3).
  struct Budget {
    double total = 0;
    bool total_known = false;
    std::uint64_t input = 0, chunk = 0;
    std::uint64_t pages = 0;  // that are there in any case, whatever hits lock
    std::uint32_t seats = 0;
    bool nobody_runs = false;
  };

  // audit_sglang.cpp
  void start_worker(std::uint32_t worker);
  bool order_is_told(const SglangRank& rank) const;
  void follow(Parts parts, Parts next);
  void time_together(Parts parts);
  void drop_canceled(std::uint32_t worker, std::uint32_t rank_index, Time now);
  void drop(SglangRank& rank, SglangLife& life);
  void take_arrivals(SglangRank& rank, const Pass& part);
  bool may_have_come(const SglangLife& life) const;
  void swap_arrivals(SglangRank& rank, SglangLife& came);
  void note_idle_group();
  void one(SglangRank& rank, const Pass& part, const Pass* next);
  void choose_ratio(SglangRank& rank, const Pass& part);
  void expect_ratio(SglangRank& rank, const Pass& part, double expected);
  double decayed(double ratio) const;
  void compare_shape(const Pass& part, std::span<const SglangRow> rows);
  void compare_pool(SglangRank& rank, const Pass& part);
  void note_flush(SglangRank& rank, const Pass& part, std::span<const SglangRow> seen);
  bool is_drained(const SglangRank& rank) const;
  void whole_run();

  // audit_sglang_prefill.cpp
  std::vector<SglangRow> prefill(SglangRank& rank, const Pass& part, const Pass* next);
  void admit_rows(SglangRank& rank, const Pass& part, Budget& left, std::vector<SglangRow>& rows);
  Budget budget(const SglangRank& rank) const;
  bool has_queue_order(const SglangRank& rank) const;
  void sort_queue(SglangRank& rank) const;
  void check_row(const SglangRank& rank, const Pass& part, const SglangRow& row, bool later,
                 Budget& left);
  void admit(SglangRank& rank, const Pass& part, SglangRow& row);
  void nobody_passed_over(const SglangRank& rank, const Pass& part, const Budget& left,
                          std::size_t rows);
  bool fits_cold(const SglangLife& life, const Budget& left, bool later) const;
  bool first_tokens_late(const SglangRank& rank, const Pass& part, const Pass* next,
                         std::span<const SglangRow> rows);
  std::optional<bool> told_late(const SglangLife& life, const Pass& shown) const;

  // audit_sglang_decode.cpp
  std::vector<SglangRow> decode(SglangRank& rank, const Pass& part, const Pass* next);
  std::size_t retract(SglangRank& rank, const Pass& part);
  bool makes_room(SglangRank& rank, const Pass& part, std::size_t victims);
  void take_back(SglangLife& life, const Pass& part, std::uint32_t blocks);
  std::uint32_t places_after(const SglangLife& life) const;
  std::uint64_t pages_needed(std::span<SglangLife* const> rows) const;
  std::optional<std::uint64_t> room(const SglangRank& rank) const;
  void compare_free(const SglangRank& rank, const Pass& part, std::uint64_t needed) const;
  void compare_rows(const Pass& part, std::span<const SglangRow> rows);
  void observe(SglangRank& rank, const Pass& part, std::span<SglangRow> rows);
  void expect_outputs(SglangRank& rank, const Pass& part, std::span<SglangRow* const> rows);
  void end(SglangRank& rank, SglangLife& life, const Pass& part);

  // audit_sglang_events.cpp
  void compare_index(bool capped);
  void compare_reuse();

  std::uint32_t pages(std::uint64_t tokens) const {
    return static_cast<std::uint32_t>((tokens + page_ - 1) / page_);
  }
  std::uint64_t in_pages(std::uint64_t tokens) const {
    return std::uint64_t{pages(tokens)} * page_;
  }
  std::uint32_t held_pages(const SglangRank& rank) const;
  bool gone_during(const SglangLife& life, const Pass& part) const;
  bool loses_somebody(const SglangRank& rank, const Pass& part) const;
  std::string where(const Pass& part) const;

  const replay::Deployment& deployment_;
  const Recording& recording_;
  Violations& v_;
  const scheduler::RankConfig& config_;
  const scheduler::SglangSettings& settings_;
  std::uint32_t page_, chunk_, burst_;
  std::uint32_t ahead_;  // tokens that have their place before they are computed (F-slot)
  double init_ratio_, min_ratio_, ratio_decay_;

  std::map<std::uint64_t, SglangLife> lives_;
  std::vector<SglangRank> ranks_;  // of the worker that is followed
  std::uint32_t countdown_ = 0;    // rounds that may not prefill (S12.3)
  std::uint64_t decode_rows_ = 0, decode_tokens_ = 0;
  std::uint64_t leases_ = 0;

  // A pass after which the events should tell the tree.
  struct Flush {
    std::uint32_t worker, rank;
    Time end;
    bool due, may_be_due;
    std::optional<std::uint64_t> tree_pages;
  };
  std::vector<Flush> flushes_;
};

}  // namespace servecast::test
