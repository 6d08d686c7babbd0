// SPDX-License-Identifier: Apache-2.0
//
// The nodes of PeakValues while they are found: what both values of a region and rows of its scans need.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/fusion_roles.h"
#include "shardwise/analysis/live_bytes.h"
#include "shardwise/analysis/live_ranges.h"
#include "shardwise/choice/memory/peak_values.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/rewrite/dce.h"

namespace shardwise {

class SavedNodes {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  SavedNodes(const Module& module, const LiveRanges& ranges, const LiveWalk& walk, const Hardware& hardware);

  const Module& module() const { return module_; }
  const LiveRanges& ranges() const { return ranges_; }
  PeakValues found = {};

  uint32_t add(const SavedNode& node, SavedValue value);
  // For a step with several results, which are computed again together: then they need this node alone.
  SavedValue of_step(const LiveStep& step, uint32_t level, std::vector<uint32_t> operands);

  uint32_t& of_home(ValueId home) { return of_home_[home.index]; }
  uint32_t of_home(ValueId home) const { return of_home_[home.index]; }  // kNone: it is there anyway
  static void need(std::vector<uint32_t>& operands, uint32_t node);      // once; not kNone

  bool is_view(ValueId value) const;
  ValueId memory_of(ValueId value) const;  // of a view, and of a view of one, the value that it is of
  bool is_constant(const LiveStep& step) const;

 private:
  const Module& module_;
  const LiveRanges& ranges_;
  const LiveWalk& walk_;
  const Hardware& hardware_;
  const ModuleExecutions executions_;
  const FusionRoles roles_;
  Effects effects_;
  std::vector<uint32_t> of_home_;
};

}  // namespace shardwise
