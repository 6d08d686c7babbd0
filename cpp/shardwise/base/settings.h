// SPDX-License-Identifier: Apache-2.0
//
// All switches of the package. They are environment variables, read once and only here:
//
//   SHARDWISE_LOG        0     1: each pass with its time; 2: also what it decided                        (to stderr)
//   SHARDWISE_DUMP_DIR         a folder for the program after each pass: 0001_jit_f/00_trace.mlir, …
//   SHARDWISE_VERIFY     0     1: verify the program after each pass
//   SHARDWISE_THREADS    0     threads of the pool, the caller's included; 0: one per processor of this process
//   SHARDWISE_TRACEBACK        full: tracebacks show the frames of Shardwise and NumPy, too
//   SHARDWISE_MPI_TIMEOUT
//                        0     seconds that a rank waits for others before it ends all ranks; 0: only warns, after 10
//
//   if (settings().verify) verify(graph);
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace shardwise {

struct Settings {
  int log = 0;
  std::string dump_dir;
  bool verify = false;
  int threads = 0;
  bool full_traceback = false;
  int mpi_timeout = 0;
};

// The table above as data, for the documentation.
struct SettingRow {
  std::string_view name;
  std::string_view default_value;
  std::string_view help;
};
std::span<const SettingRow> settings_table();

const Settings& settings();

// The parser of `settings()`, with the environment as an argument. An error names the variable and its value.
Settings read_settings(const std::function<const char*(const char* name)>& environment);

}  // namespace shardwise
