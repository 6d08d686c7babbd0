// SPDX-License-Identifier: Apache-2.0
//
// Creates ops of the assigned program, with their operands resharded to where the choice needs them:
//
//   ops.add_by_rule(dot, rule, choice)      %1 = sdy.reshard %w … {cause = "operand 1 of dot_general"}
//                                           %2 = stablehlo.dot_general %x, %1
#pragma once

#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/partition/op_choice.h"

namespace shardwise {

inline Cause operand_cause(const OpView& op, size_t i) {
  return {.kind = Cause::kOperand, .of = op.name(), .index = i};
}

class PlacedOps {
 public:
  PlacedOps(const Module& source, Builder& builder, PlacedValues& values, ProgramPlacements& placements)
      : builder_(builder), copy_(source, builder.module()), values_(values), placements_(placements) {}

  void add_by_rule(const OpView& op, const ShardingRule& rule, const OpChoice& choice);
  void add_replicated(const OpView& op);
  // An op with regions that are made already. Its results are not added.
  OpId create(const OpView& op, std::span<const ValueId> operands, std::span<const RegionId> regions);

 private:
  bool is_owned(const OpView& op, const OpChoice& choice) const;
  void add_narrowed(const OpView& op, size_t i, ValueId sum, PlacementId placement, const Cause& cause);
  Cause cause_of_operand(const OpView& op, const ShardingRule& rule, size_t i, PlacementId need);
  Module& target() { return builder_.module(); }

  Builder& builder_;
  GraphCopy copy_;
  PlacedValues& values_;
  ProgramPlacements& placements_;
};

}  // namespace shardwise
