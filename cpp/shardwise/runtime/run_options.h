// SPDX-License-Identifier: Apache-2.0
//
// How a program runs, and the record of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/ids.h"

namespace shardwise {

// The record of one step of a run. A fused chain is one step, named after its last op.
struct StepTiming {
  std::string_view op;
  OpId id;  // in the local module
  LocId loc;
  int64_t fused_ops = 1;
  int64_t shards = 1;    // distinct shards computed
  int64_t start_ns = 0;  // since the start of the run
  int64_t duration_ns = 0;
  int64_t bytes = 0;  // of the results' shards
};

// Which branch of an op runs: the first one unless it is listed.
using BranchChoices = std::unordered_map<OpId, int64_t>;

struct RunOptions {
  bool faithful = false;             // computes every device separately
  bool poison = false;               // fills padding and new buffers with NaN or 0xA5, to detect reads of them
  std::vector<size_t> donated = {};  // arguments that the caller gives up, so that results may take their memory
  std::vector<StepTiming>* trace = nullptr;
  const BranchChoices* rehearsed_branches = nullptr;  // in a rehearsal (allocation_log.h)
  std::function<void()> between_ops = {};             // also called during long ops; may throw to stop the run (Ctrl-C)
};

}  // namespace shardwise
