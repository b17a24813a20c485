// SPDX-License-Identifier: Apache-2.0
// What is wrong with the user's input or with the outside world, as a value.
//
//   Result<Deployment> read(...);
//   if (auto d = read(...)) use(*d); else report(d.error());
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace servecast {

// Where the input is wrong. Line and column count from 1; 0 means unknown.
struct Place {
  std::string file;  // a path, or "--set" for an override
  int line = 0;
  int column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// What a Problem means for the process (product.md 6.1).
enum class Fault { Input = 2, Execution = 1, Resource = 3 };

struct Problem {
  std::string code;     // stable, for programs: "config.unknown_key"
  std::string message;  // what is wrong: field path, offending value, rule
  Place place;
  std::string hint;  // what to do, or the nearest accepted value
  Fault fault = Fault::Input;
};

using Problems = std::vector<Problem>;

// Every problem found, never empty in the error state.
template <class T>
using Result = tl::expected<T, Problems>;

inline tl::unexpected<Problems> fail(Problem problem) {
  Problems list;
  list.push_back(std::move(problem));
  return tl::unexpected(std::move(list));
}

// "file:3:7: message (hint)" in one printable line; parts that are unknown are left out.
std::string to_text(const Problem& problem);

}  // namespace servecast
