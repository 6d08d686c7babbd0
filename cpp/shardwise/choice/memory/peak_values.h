// SPDX-License-Identifier: Apache-2.0
//
// The values that are alive at the peak of a local program's memory, as values that are kept or computed again
// (saved_values.h):
//
//   %w1 = all_gather %0          made before the peak, and read after it: kept, or gathered again from %0
//   %h = dot_general %x, %w1     kept (4 MiB), or computed again from %x and %w1
//   …                            <- the peak
//   %dw = dot_general %h, %dy
//
//   %ys, %h = scan %ws, %x       %ys: what the scan behind the peak reads of each trip. A value of the first scan's
//   …                            body is kept as rows of a stack, or computed again in the second one's body from rows
//   … = scan %ws, %ys, %dy       that both read: two scans with as many trips along one dim meet row by row
//
// Values that are alive at the peak in any case have no node: those that the op at the peak reads, arguments that the caller
// holds, and constants. Inside of loops and branches the values of each region around the peak count.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/analysis/live_ranges.h"
#include "shardwise/choice/memory/saved_values.h"
#include "shardwise/ir/module.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

// The steps of a local program, in the order of a run.
struct LiveSteps {
  explicit LiveSteps(const Module& module);
  ElementwiseChains chains;
  LiveRanges ranges;
};

enum class SavedKind : uint8_t {
  kStep,        // made by a step of the region
  kArgument,    // of the region
  kStepItself,  // of a step with several results, which are computed again together
  kRow,         // made in each trip of a scan; kept as rows of a stack
  kRowOfStack,  // a row that a scan reads; another scan may read it, too
};

struct SavedNode {
  SavedKind kind = SavedKind::kStep;
  uint32_t level = 0;
  ValueId value;                // a home; of a row: of the body of `scan`
  OpId scan = {};               // of a row
  LoopParts::Input input = {};  // of kRowOfStack
  bool is_saved = false;        // it is alive at the peak
  bool is_view = false;
};

// A region around the peak, and the step of it at the peak.
struct PeakLevel {
  RegionId region;
  size_t at = 0;
  // The node of a value of a scan's body, and of the rows of a stack that a scan in front of the peak makes.
  std::unordered_map<ValueId, uint32_t> rows = {}, stacks = {};
};

struct PeakValues {
  std::vector<PeakLevel> levels;  // from main to the innermost one
  std::vector<SavedNode> nodes;
  SavedValues values;       // by node
  int64_t saved_bytes = 0;  // of nodes that are alive at the peak
};

}  // namespace shardwise
