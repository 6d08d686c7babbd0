// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/settings.h"

#include <array>
#include <cstdlib>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr std::array<SettingRow, 6> kTable{{
    {"SHARDWISE_LOG", "0", "1: each pass with its time; 2: also what it decided (to stderr)"},
    {"SHARDWISE_DUMP_DIR", "", "a folder for the program after each pass: 0001_jit_f/00_trace.mlir, …"},
    {"SHARDWISE_VERIFY", "0", "1: verify the program after each pass"},
    {"SHARDWISE_THREADS", "0", "threads of the pool, the caller's included; 0: one per processor of this process"},
    {"SHARDWISE_TRACEBACK", "", "full: tracebacks show the frames of Shardwise and NumPy, too"},
    {"SHARDWISE_MPI_TIMEOUT", "0", "seconds that a rank waits for others before it ends all ranks; 0: it only warns"},
}};

// An upper limit reports a typo before the system is asked for a million threads.
constexpr int kMostThreads = 1024;
constexpr int kLongestTimeout = 1'000'000;

int read_int(const char* name, const char* text, int largest) {
  // `SHARDWISE_LOG= python train.py` is how a shell unsets a variable for one command.
  if (text == nullptr || *text == '\0') return 0;
  const auto value = number_of<int>(text);
  if (!value || *value < 0 || *value > largest) {
    fail<Error>(name, str("must be an integer from 0 to ", largest), str("\"", text, "\""), "correct or unset it");
  }
  return *value;
}

bool read_choice(const char* name, const char* text, std::string_view choice) {
  if (text == nullptr || *text == '\0') return false;
  if (text == choice) return true;
  fail<Error>(name, str("must be \"", choice, "\" or empty"), str("\"", text, "\""), "correct or unset it");
}

}  // namespace

std::span<const SettingRow> settings_table() { return kTable; }

Settings read_settings(const std::function<const char*(const char* name)>& environment) {
  const auto read = [&](const char* name, int largest) { return read_int(name, environment(name), largest); };
  Settings result;
  result.log = read("SHARDWISE_LOG", 2);
  result.verify = read("SHARDWISE_VERIFY", 1) != 0;
  result.threads = read("SHARDWISE_THREADS", kMostThreads);
  result.full_traceback = read_choice("SHARDWISE_TRACEBACK", environment("SHARDWISE_TRACEBACK"), "full");
  result.mpi_timeout = read("SHARDWISE_MPI_TIMEOUT", kLongestTimeout);
  if (const char* folder = environment("SHARDWISE_DUMP_DIR")) result.dump_dir = folder;
  return result;
}

const Settings& settings() {
  // If the value is invalid, the initialization throws, and the next call tries again.
  static const Settings kSettings = read_settings([](const char* name) -> const char* { return std::getenv(name); });
  return kSettings;
}

}  // namespace shardwise
