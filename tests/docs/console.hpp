// SPDX-License-Identifier: Apache-2.0
// The examples of a markdown page, so that a test can run them.
//
//   ```console            "$ command" lines, each with the output that it shows, if any
//   ```yaml night.yaml    a file that the reader is to write
//
// In shown output "..." stands for the rest of a line, or for any lines when it stands alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace servecast::docs {

struct Step {
  enum class Kind { Command, File };
  Kind kind = Kind::Command;
  int line = 0;                     // in the page, from 1
  std::string text;                 // the command; the content of a file
  std::string file;                 // name of the file
  std::vector<std::string> output;  // shown output; empty = not shown
  int output_first = 0;             // index of the first output line in the page, from 0
};

std::vector<Step> steps_of(std::string_view page);

bool line_matches(std::string_view shown, std::string_view real);
bool output_matches(const std::vector<std::string>& shown, const std::vector<std::string>& real);

// How a command of a page is treated, by its first word.
enum class Treatment {
  Run,      // servecast and the small tools around it
  Script,   // a script of the repository: it must exist and know the options shown
  Preset,   // cmake, ctest, programs of a build: the preset must exist
  Read,     // git, cd, export: left to the reader
  Unknown,  // the page must not show what nothing checks
};
Treatment treatment_of(const std::string& command);

std::vector<std::string> lines_of(std::string_view text);

}  // namespace servecast::docs
