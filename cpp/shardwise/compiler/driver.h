// SPDX-License-Identifier: Apache-2.0
//
// The one driver: `jit`, texts, the command line and `why` run passes with it.
//
//   CompileUnit unit(std::move(module), options);
//   run_passes(unit, pipeline());
//   *unit.module                   // the program after the last pass
//   unit.log[2].nanoseconds        // the time of the third pass; unit.log[2].steps: of each of its steps
//
// Each pass is checked (does it take a program at this stage?), timed, dumped (SHARDWISE_DUMP_DIR), verified
// (SHARDWISE_VERIFY) and logged (SHARDWISE_LOG). The module is moved from pass to pass, and copied only where somebody
// keeps a snapshot of it. An InternalError names the pass and a file with the program before it, which the driver makes
// again from the last snapshot.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/pass.h"

namespace shardwise {

using SharedModule = std::shared_ptr<const Module>;

struct PassRecord {
  std::string name;
  int64_t nanoseconds = 0;  // without copies
  int64_t ops = 0;          // of main, afterwards
  std::vector<PassRecord> steps = {};
};

// A program on its way through passes, with everything that they leave.
struct CompileUnit {
  // A module that others hold, too, is copied before the first pass.
  explicit CompileUnit(SharedModule program, const CompileOptions& options = {}) : module(std::move(program)) {
    context.options = options;
  }
  explicit CompileUnit(Module program, const CompileOptions& options = {})
      : CompileUnit(std::make_shared<Module>(std::move(program)), options) {}

  SharedModule module;
  PassContext context;
  std::vector<PassRecord> log;
  // Snapshots, where a hook kept them: the program before the passes that precede propagation, the one that propagation
  // was given, and stages after it.
  SharedModule given, global, propagated, resharded;
  SharedModule traced = {};  // the program that it was made of, before all passes; null where it is run in parts
  const Pass* propagated_by = nullptr;     // what made `propagated` of `global`
  std::filesystem::path dump_folder = {};  // empty: not chosen yet, or no dumps
  bool is_runnable = false;                // check_runnable has passed
  bool is_assigned = false;                // by a pass of this unit, or verify_assigned has passed
  bool has_origins = false;                // ops and values name those of the program that the first pass was given
};

struct Hooks {
  // After each step of a pass, and after the pass: then `step` is null.
  std::function<void(CompileUnit& unit, const Pass& pass, const Pass* step)> after = {};
  bool verify = false;  // after each pass, whatever SHARDWISE_VERIFY is
};

// Errors of the passes; ShardingError or UnsupportedError for a program that a pass does not take (checks.h).
void run_passes(CompileUnit& unit, std::span<const Pass> passes, const Hooks& hooks = {});

}  // namespace shardwise
