// SPDX-License-Identifier: Apache-2.0
//
// Predicts the order of the shards of each value in memory, while a plan is made: find_merge prefers to merge the calls
// of a kernel along it.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/runtime/plan/merge.h"
#include "shardwise/runtime/plan/variation.h"

namespace shardwise {

class ShardHomes {
 public:
  // Shards of an argument of main are views of one array.
  ShardHomes(const Module& module, const Variation& variation);

  const std::vector<Homes>& all() const { return homes_; }  // by value
  void copy(ValueId from, ValueId to) { homes_[to.index] = homes_[from.index]; }
  // The arguments of a loop's regions, and its results. Rows lack the dim `dim` of their stacks.
  void enter_loop(const LoopParts& loop, size_t dim);
  void leave_loop(const LoopParts& loop, size_t dim);
  // A merged call leaves its shards adjacent along the factor.
  void add_merged(const OpView& op, const Merge& merge);
  // A chain keeps the order of its first full-size input.
  void add_chain(const OpView& op, std::span<const ValueId> inputs);

 private:
  const Module& module_;
  const Variation& variation_;
  std::vector<Homes> homes_;
};

}  // namespace shardwise
