// SPDX-License-Identifier: Apache-2.0
//
// Where the values of a local program are read last, as the runtime runs it (runtime/plan/plan.h):
//
//   %2 = dot_general %0, %1            inputs %0, %1         dead %1
//   %3 = add %2, %b                    in the chain of %4
//   %4 = tanh %3                       inputs %2, %b         dead %2
//   %5 = while(%i = %4) … %0 …         inputs %4, then %0    dead %4, %0     %0: a capture
//
// A chain is one step. A step that nothing needs is none. A carry is one value, that of the loop's result, whatever the
// regions call it: `home`. What a block reads from around it is read by the step of the block.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/dce.h"

namespace shardwise {

// All values are homes.
struct LiveStep {
  OpId op;                                  // of a chain: the last one
  const ElementwiseChain* chain = nullptr;  // if it is one
  // Operands, those of a loop with the carries first, or the inputs of the chain; then captures, each once.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<ValueId> dead = {};  // nothing reads them after this step, and its block may free them
};

struct LiveBlock {
  std::vector<LiveStep> steps;
  std::vector<ValueId> results;
  std::vector<ValueId> dead = {};  // that it may free and does not read
};

class LiveRanges {
 public:
  // `chains` outlives it.
  LiveRanges(const Module& module, const ElementwiseChains& chains);

  const LiveBlock& of(RegionId region) const { return blocks_.at(region); }
  ValueId home(ValueId value) const { return homes_[value.index]; }

 private:
  void add_block(RegionId region);
  std::vector<ValueId> enter_loop(const OpView& op);
  void add_captures(LiveStep& step, const std::vector<RegionId>& regions) const;
  void drop_unneeded(LiveBlock& block);
  void find_dead(RegionId region, const std::vector<ValueId>& given);
  void find_dead_inside(const LiveStep& step);
  void own(const std::vector<ValueId>& values);
  void use(ValueId value, std::vector<ValueId>& dead);
  std::vector<ValueId> homes(std::span<const ValueId> values) const;

  const Module& module_;
  const ElementwiseChains& chains_;
  Effects effects_;
  std::vector<ValueId> homes_;  // by value
  std::vector<bool> in_chain_;  // by op
  std::unordered_map<RegionId, LiveBlock> blocks_;
  std::vector<uint32_t> owner_;  // by value: the last visited block that makes it, or may free it
  std::vector<bool> used_later_, needed_;
  uint32_t block_ = 0;
};

}  // namespace shardwise
