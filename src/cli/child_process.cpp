// SPDX-License-Identifier: Apache-2.0
#include "cli/child_process.hpp"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

extern char** environ;  // tidy: mutable-static (POSIX's own, only read)

namespace servecast::cli {
namespace {

tl::unexpected<Problems> failed(const std::string& program, const std::string& what) {
  return fail({"process.failed", fmt::format("{}: {}", program, what), {}, "", Fault::Execution});
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t size = read(descriptor, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& arguments) {
  SERVECAST_CHECK(!arguments.empty());
  const std::string& program = arguments.front();
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return failed(program, std::strerror(errno));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (spawned != 0) {
    close(ends[0]);
    return failed(program, std::strerror(spawned));
  }
  std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return failed(program, fmt::format("died of signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    return failed(program, fmt::format("ended with exit code {}", WEXITSTATUS(status)));
  return text;
}

}  // namespace servecast::cli
