// SPDX-License-Identifier: Apache-2.0
// A golden case: a terminal session with the files it needs, as text.
//
//   # A comment says what the case is about.
//   = run.yaml              the lines that follow with '|' are this file
//   | engine: {}
//   $ servecast predict -c run.yaml
//   ? 2                     the exit code; 0 when the line is missing
//   > text                  a line of stdout
//   ! text                  a line of stderr
//
// In expected lines '*' stands for any text. Commands run in order in one empty folder, by sh, with
// servecast on the path.
#pragma once

#include <string>
#include <vector>

namespace servecast::golden {

struct File {
  std::string name;
  std::string text;
};

struct Command {
  std::string line;
  int exit_code = 0;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

struct Transcript {
  std::vector<std::string> comments;
  std::vector<File> files;
  std::vector<Command> commands;
};

Transcript parse(const std::string& text);
std::string to_text(const Transcript& transcript);

// Does a line match an expected line with its wildcards?
bool matches(const std::string& expected, const std::string& line);

}  // namespace servecast::golden
