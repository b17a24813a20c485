// SPDX-License-Identifier: Apache-2.0
#include "workload/mooncake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "workload/trace_builders.hpp"

namespace servecast::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_tools::complaints;
using testing_tools::kClosed;
using testing_tools::kTimed;

TraceSource blocks_of(std::uint32_t block_size) {
  return {.path = "trace.jsonl", .block_size = block_size};
}

Trace parsed(std::string_view text, std::uint32_t block_size = 4, const Load& load = kTimed) {
  auto trace = parse_trace(text, blocks_of(block_size), load);
  if (trace) return std::move(*trace);
  ADD_FAILURE() << to_text(trace.error()[0]);
  Trace none;
  none.sessions.resize(1);
  return none;
}

// What is said of one row, which stands in line 1.
std::string complaint(const std::string& row, std::uint32_t block_size = 512) {
  const std::string text = complaints(row, blocks_of(block_size));
  EXPECT_EQ(text.substr(0, 3), "1: ");
  return text.size() < 3 ? text : text.substr(3);
}

std::vector<std::int64_t> arrivals_ms(const Trace& trace) {
  std::vector<std::int64_t> times;
  for (std::uint32_t s = 0; s < trace.session_count(); ++s) {
    times.push_back(trace.sessions[s].arrival.ns / 1'000'000);
  }
  return times;
}

TEST(Mooncake, ReadsRowsAndMakesIdsDenseInFirstSeenOrder) {
  const Trace trace = parsed(
      R"({"timestamp": 0, "input_length": 6, "output_length": 3, "hash_ids": [900, 18446744073709551615]})"
      "\n"
      R"({"timestamp": 27.5, "input_length": 8, "output_length": 0, "hash_ids": [900, 7]})");
  ASSERT_EQ(trace.turns.size(), 2u);
  EXPECT_THAT(trace.ids, ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(trace.turns[0].input_tokens, 6u);
  EXPECT_EQ(trace.turns[0].output_tokens, 3u);
  EXPECT_EQ(trace.turns[0].row, 0u);
  EXPECT_EQ(trace.turns[1].output_tokens, 0u);  // decisions.md 9: prefill only
  EXPECT_EQ(trace.turns[1].ids_first, 2u);
  EXPECT_EQ(trace.turns[1].ids_count, 2u);
  EXPECT_EQ(trace.sessions[1].arrival.ns, 27'500'000);
  EXPECT_EQ(trace.sessions[1].plan_offset, 3u);
  EXPECT_EQ(trace.input_tokens_max, 8u);
  EXPECT_EQ(trace.total_tokens_max, 9u);
  EXPECT_THAT(trace.notes.warnings, IsEmpty());
}

TEST(Mooncake, AcceptsTheOtherNamesOfFields) {
  const Trace trace = parsed(
      R"({"session_id":"s","created_time":5,"input_tokens":4,"output_tokens":2,"hash_ids":[1]})"
      "\n"
      R"({"session_id":"s","delay_ms":1.25,"input_tokens":8,"output_tokens":2,"hash_ids":[1,2]})");
  ASSERT_EQ(trace.turns.size(), 2u);
  EXPECT_EQ(trace.turns[1].delay.ns, 1'250'000);
}

TEST(Mooncake, RefusesBothNamesOfOneField) {
  EXPECT_EQ(complaint(R"({"input_length":4,"input_tokens":4,"output_length":1,"hash_ids":[1]})"),
            "input_length and input_tokens are two names of one field: give one");
}

TEST(Mooncake, TakesTheInputLengthFromTheIdsWhenItIsMissing) {  // replay.md 32 case 31
  EXPECT_EQ(
      parsed(R"({"timestamp":0,"output_length":1,"hash_ids":[1,2]})", 512).turns[0].input_tokens,
      1024u);
  EXPECT_EQ(complaint(R"({"timestamp":0,"input_length":1025,"output_length":1,"hash_ids":[1,2]})"),
            "hash_ids has 2 ids but an input of 1025 tokens in blocks of 512 needs 3");
}

TEST(Mooncake, WantsExactlyTheIdsThatTheInputNeeds) {  // bugs.md A33
  const auto row = [](const std::string& ids) {
    return R"({"timestamp":0,"input_length":1000,"output_length":1,"hash_ids":[)" + ids + "]}";
  };
  EXPECT_EQ(parsed(row("5,6"), 512).turns[0].ids_count, 2u);
  EXPECT_EQ(complaint(row("5")),
            "hash_ids has 1 ids but an input of 1000 tokens in blocks of 512 needs 2");
  EXPECT_EQ(complaint(row("5,6,7")),
            "hash_ids has 3 ids but an input of 1000 tokens in blocks of 512 needs 2");
}

TEST(Mooncake, EqualIdsOfAPartialLastBlockStayEqual) {  // bugs.md A35
  const std::string row =
      R"({"timestamp":0,"input_length":700,"output_length":1,"hash_ids":[11,12]})";
  const Trace trace = parsed(row + "\n" + row, 512);
  EXPECT_THAT(trace.ids, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(trace.turns[0].input_tokens, 700u);
  EXPECT_EQ(trace.turns[1].input_tokens, 700u);
}

TEST(Mooncake, ARowWithoutTimeComesAtZeroOrWithTheRowBefore) {  // bugs.md A32, decisions.md 9b
  const auto row = [](const std::string& time) {
    return "{" + time + R"("output_length":1,"hash_ids":[1]})" + "\n";
  };
  const Trace first = parsed(row("") + row(R"("timestamp":100,)"));
  EXPECT_THAT(arrivals_ms(first), ElementsAre(0, 100));
  EXPECT_EQ(first.notes.rows_without_time, 1u);
  const Trace later = parsed(row(R"("timestamp":100,)") + row("") + row(R"("timestamp":null,)") +
                             row(R"("timestamp":130,)"));
  EXPECT_THAT(arrivals_ms(later), ElementsAre(0, 0, 0, 30));
  EXPECT_EQ(later.notes.rows_without_time, 2u);
}

TEST(Mooncake, AuthoredTimesAreKept) {  // bugs.md A36
  std::string text;
  for (const char* time : {"0", "1000", "2000"}) {
    text += std::string(R"({"timestamp":)") + time + R"(,"output_length":1,"hash_ids":[1]})" + "\n";
  }
  EXPECT_THAT(arrivals_ms(parsed(text)), ElementsAre(0, 1000, 2000));
}

TEST(Mooncake, TheEarliestRowIsAtZeroUnlessTimesAreWantedAsGiven) {  // decisions.md 8
  const std::string text = R"({"timestamp":1700000000123,"output_length":1,"hash_ids":[1]})"
                           "\n"
                           R"({"timestamp":1700000000100,"output_length":1,"hash_ids":[1]})";
  const Trace moved = parsed(text);
  EXPECT_THAT(arrivals_ms(moved), ElementsAre(23, 0));
  EXPECT_THAT(moved.order, ElementsAre(1, 0));
  EXPECT_EQ(moved.notes.rows_out_of_order, 1u);
  TraceSource source = blocks_of(4);
  source.start_as_given = true;
  EXPECT_EQ(parse_trace(text, source, kTimed)->sessions[0].arrival.ns, 1'700'000'000'123'000'000);
}

TEST(Mooncake, EqualTimesKeepFileOrder) {
  std::string text;
  for (const int time : {5, 1, 5, 1, 5}) {
    text +=
        R"({"timestamp":)" + std::to_string(time) + R"(,"output_length":1,"hash_ids":[1]})" + "\n";
  }
  const Trace trace = parsed(text);
  EXPECT_THAT(trace.order, ElementsAre(1, 3, 0, 2, 4));
  EXPECT_EQ(trace.notes.rows_out_of_order, 2u);
}

TEST(Mooncake, ASpeedUpDividesArrivalsAndDelays) {
  const std::string text =
      R"({"session_id":"a","timestamp":10,"output_length":1,"hash_ids":[1]})"
      "\n"
      R"({"session_id":"b","timestamp":30,"output_length":1,"hash_ids":[2]})"
      "\n"
      R"({"session_id":"b","delay":9,"output_length":1,"hash_ids":[2,3],"cancel_after":7})";
  const Trace trace = parsed(text, 4, {.kind = Load::Kind::TraceTimestamps, .speedup = 4});
  EXPECT_EQ(trace.sessions[1].arrival.ns, 5'000'000);
  EXPECT_EQ(trace.turns[2].delay.ns, 2'250'000);
  EXPECT_EQ(trace.turns[2].cancel_after.ns, 7'000'000) << "patience is the client's own";
  EXPECT_TRUE(trace.cancels);
}

TEST(Mooncake, ASpeedUpThatLeavesTheClockIsRefused) {
  const auto trace =
      parse_trace(R"({"timestamp":0,"output_length":1,"hash_ids":[1]}
{"timestamp":1000,"output_length":1,"hash_ids":[1]})",
                  blocks_of(4), {.kind = Load::Kind::TraceTimestamps, .speedup = 1e-300});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error()[0].code, "workload.arrival_out_of_range");
}

TEST(MooncakeSessions, CollectTheirRowsInFileOrder) {
  const Trace trace = parsed(R"({"session_id":"a","timestamp":0,"output_length":5,"hash_ids":[1]}
{"timestamp":1,"output_length":7,"hash_ids":[9]}
{"session_id":"b","timestamp":2,"output_length":11,"hash_ids":[2]}
{"session_id":"a","timestamp":3,"output_length":13,"hash_ids":[1,3]}
{"session_id":"b","timestamp":40,"delay":4,"output_length":17,"hash_ids":[2,4]}
)");
  ASSERT_EQ(trace.session_count(), 3u);
  std::vector<std::uint32_t> outputs, rows;
  for (const Turn& turn : trace.turns) {
    outputs.push_back(turn.output_tokens);
    rows.push_back(turn.row);
  }
  EXPECT_THAT(outputs, ElementsAre(5, 13, 7, 11, 17));
  EXPECT_THAT(rows, ElementsAre(0, 3, 1, 2, 4));
  EXPECT_EQ(trace.sessions[1].first_turn, 2u);
  EXPECT_EQ(trace.sessions[2].first_turn, 3u);
  EXPECT_EQ(trace.sessions[1].plan_offset, 18u);
  EXPECT_EQ(trace.sessions[2].plan_offset, 25u);
  EXPECT_EQ(trace.session_names.at(0), "a");
  EXPECT_EQ(trace.session_names.at(1), "");
  EXPECT_EQ(trace.session_names.at(2), "b");
  EXPECT_EQ(trace.turns[1].delay.ns, 3'000'000);  // from the timestamps
  EXPECT_EQ(trace.turns[4].delay.ns, 4'000'000);  // an explicit delay wins
}

TEST(MooncakeSessions, ALaterTurnWithoutTimesFollowsAtOnce) {
  const Trace trace = parsed(R"({"session_id":"a","timestamp":5,"output_length":1,"hash_ids":[1]}
{"timestamp":90,"output_length":1,"hash_ids":[9]}
{"session_id":"a","output_length":1,"hash_ids":[1,2]}
{"session_id":"a","timestamp":95,"output_length":1,"hash_ids":[1,2,3]}
)");
  EXPECT_EQ(trace.turns[1].delay.ns, 0);
  EXPECT_EQ(trace.turns[2].delay.ns, 90'000'000);
  EXPECT_EQ(trace.notes.rows_without_time, 0u);
}

TEST(MooncakeSessions, ATimeThatDecreasesIsAnError) {
  EXPECT_EQ(complaints(R"({"session_id":"a","timestamp":5,"output_length":1,"hash_ids":[1]}
{"session_id":"a","timestamp":4.5,"delay":1,"output_length":1,"hash_ids":[1,2]}
)",
                       blocks_of(4)),
            "2: timestamp is 4.5 ms in session \"a\": must not be before the session's row before, "
            "which is at "
            "5 ms");
}

TEST(MooncakeSessions, ADelayBeforeTheFirstTurnIsAnError) {  // replay.md 32 case 31
  EXPECT_EQ(
      complaint(R"({"session_id":"a","timestamp":0,"delay":3,"output_length":1,"hash_ids":[1]})"),
      "delay is 3 ms: must be 0 or absent in the first row of a session");
  EXPECT_EQ(parsed(R"({"session_id":"a","timestamp":0,"delay":0,"output_length":1,"hash_ids":[1]})")
                .turns.size(),
            1u);
}

TEST(MooncakeSessions, ABadFirstRowDoesNotSpoilTheNext) {
  EXPECT_EQ(complaints(R"({"session_id":"a","timestamp":5,"output_length":-1,"hash_ids":[1]}
{"session_id":"a","delay":7,"output_length":1,"hash_ids":[1,2]}
)",
                       blocks_of(4)),
            "1: output_length is -1: must be a whole number from 0 to 4294967295");
}

TEST(MooncakeSessions, TurnsThatNeverRepeatTheTurnBeforeAreNoted) {
  const auto rows = [](const std::string& second) {
    return R"({"session_id":"a","timestamp":5,"input_length":6,"output_length":1,"hash_ids":[1,2]}
{"session_id":"a","timestamp":9,"input_length":8,"output_length":1,"hash_ids":[)" +
           second + "]}\n";
  };
  const Trace added = parsed(rows("3,4"));
  EXPECT_EQ(added.notes.rows_delta_suspect, 1u);
  ASSERT_EQ(added.notes.warnings.size(), 1u);
  EXPECT_THAT(added.notes.warnings[0], HasSubstr("whole prompt"));
  const Trace whole = parsed(rows("1,3"));  // the partial block may change its id
  EXPECT_EQ(whole.notes.rows_delta_suspect, 0u);
  EXPECT_THAT(whole.notes.warnings, IsEmpty());
}

TEST(Mooncake, KeepsNamesAndMetadataOfTheRowsThatHaveThem) {
  const Trace trace = parsed(R"({"timestamp":0,"output_length":1,"hash_ids":[1]}
{"request_id":"r-\"1\"","timestamp":0,"output_length":1,"hash_ids":[1],"strict_priority":3,"priority":-2,"policy_class":"a\\b\n"}
)");
  EXPECT_EQ(trace.request_names.at(0), "");
  EXPECT_EQ(trace.request_names.at(1), "r-\"1\"");
  EXPECT_EQ(trace.metadata.at(0), "");
  EXPECT_EQ(trace.metadata.at(1),
            R"({"policy_class":"a\\b\u000a","priority":-2,"strict_priority":3})");
}

TEST(Mooncake, KeepsTheImagesOfTheRowsThatHaveThem) {  // engine-sglang.md S10
  const Trace trace = parsed(R"({"timestamp":0,"output_length":1,"hash_ids":[1]}
{"timestamp":0,"output_length":1,"input_length":7,"hash_ids":[1,2],"images":[{"id":18446744073709551615,"start":0,"end":4,"bytes":9},{"end":7,"id":3,"bytes":1,"start":6}]}
{"timestamp":0,"output_length":1,"hash_ids":[1],"images":[]}
{"images":null,"timestamp":0,"output_length":1,"hash_ids":[1]}
)");
  EXPECT_THAT(trace.images.at(0), IsEmpty());
  EXPECT_THAT(trace.images.at(1),
              ElementsAre(Image{.identity = UINT64_MAX, .start = 0, .end = 4, .bytes = 9},
                          Image{.identity = 3, .start = 6, .end = 7, .bytes = 1}));
  EXPECT_THAT(trace.images.at(2), IsEmpty());
  EXPECT_THAT(trace.images.at(3), IsEmpty());
  EXPECT_EQ(trace.turns.size(), 4U);
  EXPECT_FALSE(trace.images.empty());
  EXPECT_TRUE(parsed(R"({"timestamp":0,"output_length":1,"hash_ids":[1]})").images.empty());
}

TEST(MooncakeErrors, NameTheImageAndItsField) {
  const auto with = [](const std::string& images) {
    return complaint(
        R"({"timestamp":0,"output_length":1,"input_length":8,"hash_ids":[1],"images":)" + images +
        "}");
  };
  const std::string good = R"([{"id":1,"start":0,"end":8,"bytes":1},)";
  EXPECT_EQ(with("7"), "images is 7: must be a list of images");
  EXPECT_EQ(with("[7]"), "images[0] is 7: must be an object with id, start, end and bytes");
  EXPECT_EQ(with(good + R"({"id":1,"start":0,"bytes":1}])"),
            "images[1].end is missing: an image needs it");
  EXPECT_EQ(with(good + R"({"id":-1,"start":0,"end":8,"bytes":1}])"),
            "images[1].id is -1: must be a whole number from 0 to 2^64 - 1");
  EXPECT_EQ(with(good + R"({"id":1,"start":0.5,"end":8,"bytes":1}])"),
            "images[1].start is 0.5: must be a whole number from 0 to 2^64 - 1");
  EXPECT_EQ(with(R"([{"id":1,"start":0,"end":8,"bytes":0}])"),
            "images[0].bytes is 0: must be a whole number from 1 to 2^64 - 1");
  EXPECT_EQ(with(R"([{"id":1,"start":0,"end":9,"bytes":1}])"),
            "images[0].end is 9: must be at most 8, the tokens of the prompt");
  EXPECT_EQ(with(R"([{"id":1,"start":4,"end":4,"bytes":1}])"),
            "images[0].start is 4: must be below its end, which is 4");
  EXPECT_EQ(with(R"([{"id":1,"start":0,"end":8,"bytes":1,"url":"x"}])"),
            "images[0].url is not a field of an image");
  EXPECT_EQ(with(R"([{"id":1,"id":2,"start":0,"end":8,"bytes":1}])"),
            "images[0].id is given twice");
}

TEST(Mooncake, HasOneExtraKeyForEachCombinationOfAdapterSaltAndKey) {  // bugs.md A11
  const std::string rows[] = {
      "",
      R"(,"lora_name":"a")",
      R"(,"lora_name":"b")",
      R"(,"cache_salt":"a")",
      R"(,"extra_key":"a")",
      R"(,"lora_name":"a","cache_salt":"a")",
      R"(,"lora_name":"a","cache_salt":"b","extra_key":"c")",
      R"(,"lora_name":"ab")",
  };
  std::string text;
  for (const std::string& row : rows)
    text += R"({"timestamp":0,"output_length":1,"hash_ids":[1])" + row + "}\n";
  text += R"({"extra_key":"c","cache_salt":"b","output_length":1,"hash_ids":[2],"lora_name":"a"})"
          "\n"
          R"({"timestamp":0,"output_length":1,"hash_ids":[1],"extra_key":null})";
  const Trace trace = parsed(text);
  ASSERT_EQ(trace.turns.size(), 10U);
  EXPECT_EQ(trace.turns[0].extra_key, 0U);
  std::set<std::uint64_t> keys;
  for (std::size_t i = 0; i < 8; ++i) keys.insert(trace.turns[i].extra_key);
  EXPECT_EQ(keys.size(), 8U);
  EXPECT_EQ(trace.turns[8].extra_key, trace.turns[6].extra_key);
  EXPECT_EQ(trace.turns[9].extra_key, 0U);
  EXPECT_THAT(trace.notes.warnings, IsEmpty());
  EXPECT_EQ(complaint(R"({"output_length":1,"hash_ids":[1],"extra_key":""})"),
            "extra_key is \"\": must be text that is not empty");
}

TEST(Mooncake, AuthoredOutputsTakeNoWordsOfThePlan) {  // replay.md 10.5
  const Trace trace = parsed(R"({"timestamp":0,"output_length":2,"hash_ids":[1]}
{"timestamp":0,"output_length":3,"output_token_ids":[7,8,4294967295],"hash_ids":[1]}
{"timestamp":0,"output_length":1,"hash_ids":[1]}
)");
  EXPECT_TRUE(trace.turns[1].authored);
  EXPECT_THAT(trace.authored, ElementsAre(7, 8, 4294967295));
  EXPECT_EQ(trace.sessions[2].plan_offset, 2u);
  EXPECT_EQ(complaint(R"({"timestamp":0,"output_length":3,"output_token_ids":[7],"hash_ids":[1]})"),
            "output_token_ids has 1 tokens but output_length is 3: must be equal");
  EXPECT_EQ(
      complaint(
          R"({"timestamp":0,"output_length":1,"output_token_ids":[4294967296],"hash_ids":[1]})"),
      "output_token_ids[0] is 4294967296: must be a whole number from 0 to 4294967295");
}

TEST(Mooncake, WarnsOnceOfAllUnknownKeys) {  // replay.md 11.7
  const Trace trace =
      parsed(R"({"timestamp":0,"output_length":1,"hash_ids":[1],"model":"x","tools":[]}
{"timestamp":0,"output_length":1,"hash_ids":[1],"tools":{},"extra":1}
)");
  EXPECT_THAT(
      trace.notes.warnings,
      ElementsAre("trace.jsonl: keys without meaning here are ignored: model, tools, extra"));
}

TEST(Mooncake, RowsWithoutIdsShareNothingAndAreNoted) {  // replay.md 11.7
  const Trace trace = parsed(R"({"timestamp":0,"input_length":9,"output_length":1}
{"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[1,2,3]}
)");
  EXPECT_EQ(trace.turns[0].ids_count, 0u);
  EXPECT_EQ(trace.turns[1].ids_count, 3u);
  EXPECT_THAT(trace.notes.warnings,
              ElementsAre("trace.jsonl: 1 rows have no hash_ids; their prompts share nothing"));
}

TEST(Mooncake, NeedsNoTimesInAClosedLoop) {
  const std::string text = R"({"output_length":1,"hash_ids":[1]})";
  EXPECT_EQ(parsed(text, 4, kClosed).turns.size(), 1u);
  EXPECT_EQ(parsed(text, 4, kClosed).notes.rows_without_time, 0u);
  EXPECT_EQ(complaints(text, blocks_of(4)),
            "no row has a timestamp: traffic.load.type trace_timestamps needs them");
}

TEST(Mooncake, AClosedLoopKeepsFileOrder) {
  const Trace trace = parsed(R"({"timestamp":9,"output_length":1,"hash_ids":[1]}
{"timestamp":3,"output_length":1,"hash_ids":[1]})",
                             4, kClosed);
  EXPECT_THAT(trace.order, IsEmpty());
  EXPECT_EQ(trace.notes.rows_out_of_order, 1u);
}

TEST(MooncakeErrors, NameFieldValueAndRule) {
  const auto with = [](const std::string& fields) { return "{" + fields + R"(,"hash_ids":[1]})"; };
  const std::string input_rule = ": must be a whole number from 1 to 4294967295";
  const std::string output_rule = ": must be a whole number from 0 to 4294967295";
  for (const char* value :
       {"0", "-5", "1.5", "4294967296", "1e3", "true", "\"7\"", "[]", "18446744073709551615"}) {
    EXPECT_EQ(
        complaint(with(std::string(R"("timestamp":0,"output_length":1,"input_length":)") + value)),
        "input_length is " + std::string(value == std::string_view("1e3") ? "1000.0" : value) +
            input_rule);
  }
  for (const char* value : {"-1", "0.25", "4294967296", "{}"}) {
    EXPECT_EQ(complaint(with(std::string(R"("timestamp":0,"output_length":)") + value)),
              "output_length is " + std::string(value) + output_rule);
  }
  EXPECT_EQ(complaint(R"({"timestamp":0,"hash_ids":[1]})"),
            "output_length is missing: a row needs it");
  EXPECT_EQ(complaint(R"({"timestamp":0,"output_length":1})"),
            "input_length and hash_ids are missing: a row needs one of them");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":-3)")),
            "timestamp is -3: must be milliseconds, zero or more and at most 4.6e12");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":"soon")")),
            "timestamp is \"soon\": must be milliseconds, zero or more and at most 4.6e12");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":4600000000001)")),
            "timestamp is 4600000000001: must be milliseconds, zero or more and at most 4.6e12");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"delay":-0.5)")),
            "delay is -0.5: must be milliseconds, zero or more and at most 4.6e12");
  for (const char* wrong : {"0", "-1", "true", "4600000000001"}) {
    EXPECT_EQ(
        complaint(with(R"("output_length":1,"timestamp":0,"cancel_after":)" + std::string(wrong))),
        "cancel_after is " + std::string(wrong) +
            ": must be milliseconds, more than zero and at most 4.6e12");
  }
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"priority":2147483648)")),
            "priority is 2147483648: must be a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"strict_priority":-1)")),
            "strict_priority is -1: must be a whole number from 0 to 4294967295");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"policy_class":5)")),
            "policy_class is 5: must be text that is not empty");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"session_id":17)")),
            "session_id is 17: must be text that is not empty");
  EXPECT_EQ(complaint(with(R"("output_length":1,"timestamp":0,"request_id":"")")),
            "request_id is \"\": must be text that is not empty");
}

TEST(MooncakeErrors, NotANumberAndInfinityAreNamedByTheirField) {
  const auto row = [](const std::string& value) {
    return R"({"timestamp":0,"hash_ids":[1],"input_length":)" + value + R"(,"output_length":1})";
  };
  for (const char* value : {"NaN", "Infinity", "-Infinity", "1e999", "-inf"}) {
    EXPECT_EQ(complaint(row(value)),
              "input_length is " + std::string(value) + ": must be a finite number");
  }
}

TEST(MooncakeErrors, IdsAreWholeNumbersOf64Bits) {
  const auto row = [](const std::string& ids) {
    return R"({"timestamp":0,"output_length":1,"hash_ids":)" + ids + "}";
  };
  const std::string rule = ": must be a whole number from 0 to 2^64 - 1";
  EXPECT_EQ(complaint(row("[1,-2]")), "hash_ids[1] is -2" + rule);
  EXPECT_EQ(complaint(row("[1.5]")), "hash_ids[0] is 1.5" + rule);
  EXPECT_EQ(complaint(row("[\"a\"]")), "hash_ids[0] is \"a\"" + rule);
  EXPECT_EQ(complaint(row("7")), "hash_ids is 7: must be a list of whole numbers");
  EXPECT_THAT(complaint(row("[]")), HasSubstr("0 hash_ids of 512 tokens make 0"));
  EXPECT_EQ(complaint(row("[18446744073709551616]")),
            "hash_ids is 18446744073709551616: the number is too large");
}

TEST(MooncakeErrors, ALengthFromIdsMustFit) {
  EXPECT_THAT(complaint(R"({"timestamp":0,"output_length":1,"hash_ids":[1,2]})", UINT32_MAX),
              HasSubstr("make 8589934590"));
}

TEST(MooncakeErrors, InputAndOutputTogetherMustFit) {
  EXPECT_EQ(complaint(R"({"timestamp":0,"input_length":4294967295,"output_length":1})"),
            "input and output together have 4294967296 tokens: must be at most 4294967295");
}

TEST(MooncakeErrors, ALineThatIsCutOffIsNamedByItsNumber) {
  EXPECT_EQ(complaints(R"({"timestamp":0,"output_length":1,"hash_ids":[1]}

{"timestamp":0,"output_le)",
                       blocks_of(4)),
            "3: the line ends inside its JSON object");
}

TEST(MooncakeErrors, LinesThatAreNoObjects) {
  EXPECT_EQ(complaint("[1,2]"), "the line is [1,2]: must be a JSON object");
  EXPECT_EQ(complaint("17"), "the line is 17: must be a JSON object");
  EXPECT_EQ(complaint(R"({"a":1} {"b":2})"), "the line is not one JSON object");
  EXPECT_EQ(complaint("{\"a\":\"\xFF\"}"), "the line is not UTF-8");
  EXPECT_EQ(complaint(R"({"a" 1})"), "the line is not one JSON object");
  EXPECT_EQ(complaint("hello"), "the line is not one JSON object");
  EXPECT_EQ(complaint(R"({"a":1} x)"), "the line is not one JSON object");
}

TEST(MooncakeErrors, NumbersThat64BitsCannotHoldAreNamed) {
  for (const std::string number : {"18446744073709551616", "-9223372036854775809"}) {
    EXPECT_EQ(complaint(R"({"timestamp":0,"output_length":1,"input_length":)" + number + "}"),
              "input_length is " + number + ": the number is too large");
  }
}

TEST(MooncakeErrors, KeysGivenTwice) {
  EXPECT_EQ(complaint(R"({"timestamp":0,"output_length":1,"output_length":1,"hash_ids":[1]})"),
            "output_length is given twice");
  EXPECT_EQ(complaint(R"({"timestamp":0,"output_length":1,"hash_ids":[1],"extra":1,"extra":1})"),
            "extra is given twice");
}

TEST(MooncakeErrors, AnEmptyFileIsAnError) {
  EXPECT_EQ(complaints("", blocks_of(4)), "the trace has no rows");
  EXPECT_EQ(complaints("\n \n", blocks_of(4)), "the trace has no rows");
}

TEST(MooncakeErrors, AreReportedForTwentyRowsAndCountedBeyond) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += "{\"output_length\":-1}\n";
  const auto trace = parse_trace(text, blocks_of(4), kTimed);
  ASSERT_FALSE(trace);
  ASSERT_EQ(trace.error().size(), 21u);
  EXPECT_EQ(trace.error()[19].place.line, 20);
  EXPECT_EQ(trace.error()[20].message, "5 more rows are wrong");
  text.clear();
  for (int i = 0; i < 20; ++i) text += "{\"output_length\":-1}\n";
  EXPECT_EQ(parse_trace(text, blocks_of(4), kTimed).error().size(), 20u);
}

TEST(MooncakeErrors, OneBadRowRefusesTheWholeFile) {
  EXPECT_EQ(complaints(R"({"timestamp":0,"output_length":1,"hash_ids":[1]}
{"timestamp":0,"output_length":1,"hash_ids":[]}
{"timestamp":0,"output_length":1,"hash_ids":[1]}
)",
                       blocks_of(4)),
            "2: input_length is missing and 0 hash_ids of 4 tokens make 0: must be from 1 to "
            "4294967295 tokens");
}

}  // namespace
}  // namespace servecast::workload
