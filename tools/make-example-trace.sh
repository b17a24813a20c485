#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes examples/traces/conversations.jsonl to stdout: a made-up trace in the Mooncake format. People talk to one of
# six assistants; a prompt holds the assistant's instructions, the whole conversation so far and a new question, so
# that its leading blocks repeat those of the turn before.
#
# Whole-number arithmetic below 2^53 and a generator of its own: every awk writes the same bytes.
set -eu
export LC_ALL=C

awk '
  function draw(low, high) {  # a whole number in [low, high]; minimal standard generator
    state = (state * 16807) % 2147483647
    return low + state % (high - low + 1)
  }
  function skewed(low, high) {  # mostly small, sometimes large
    return low + int(draw(0, high - low) * draw(0, high - low) / (high - low))
  }
  BEGIN {
    state = 20240607; block = 512; next_id = 0
    for (assistant = 0; assistant < 6; ++assistant) {
      instructions[assistant] = draw(1, 4) * block
      for (b = 0; b < instructions[assistant] / block; ++b) instruction_id[assistant, b] = next_id++
    }
    for (conversation = 0; conversation < 50; ++conversation) {
      time = draw(0, 110000)
      assistant = draw(0, 5)
      tokens = instructions[assistant]
      full = tokens / block
      for (b = 0; b < full; ++b) id[b] = instruction_id[assistant, b]
      for (turn = 0; turn < 4; ++turn) {
        tokens += skewed(60, 4000)
        output = skewed(20, 700)
        for (; full < int(tokens / block); ++full) id[full] = next_id++
        ids = ""
        for (b = 0; b < full; ++b) ids = ids (b ? ", " : "") id[b]
        if (tokens % block) ids = ids (full ? ", " : "") next_id++  # a partly filled block is nobody elses
        printf "%d\t%d\t{\"timestamp\": %d, \"input_length\": %d, \"output_length\": %d, \"hash_ids\": [%s]}\n",
               time, row++, time, tokens, output, ids
        tokens += output
        time += draw(8000, 45000)
      }
    }
  }' | sort -t "$(printf '\t')" -k1,1n -k2,2n | cut -f3-
