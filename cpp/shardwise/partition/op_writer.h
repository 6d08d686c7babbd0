// SPDX-License-Identifier: Apache-2.0
//
// Creates ops of the assigned program, with their operands where the Choice takes them:
//
//   ops.add(dot, choice)            %1 = sdy.reshard %w … {cause = "operand 1 of dot_general"}
//                                   %2 = stablehlo.dot_general %x, %1
#pragma once

#include "shardwise/choice/choice.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/partition/version_writer.h"

namespace shardwise {

inline Cause operand_cause(const OpView& op, size_t i) {
  return {.kind = Cause::kOperand, .of = op.name(), .index = i};
}

class OpWriter {
 public:
  OpWriter(const Module& source, Builder& builder, VersionWriter& values, ProgramPlacements& placements)
      : builder_(builder), copy_(source, builder.module()), values_(values), placements_(placements) {}

  void add(const OpView& op, const OpChoice& choice);
  // An op with regions that are made already. Its results are not added.
  OpId create(const OpView& op, std::span<const ValueId> operands, std::span<const RegionId> regions);

 private:
  void write_method(OpId made, const OpChoice& choice);
  std::vector<ValueId> operands_of(const OpView& op, const OpChoice& choice);
  Cause cause_of_operand(const OpView& op, size_t i, PlacementId need);
  Cause cause_of_results(const OpView& op, const OpChoice& choice);
  LocId loc_of_gradient(const OpView& op, const OpChoice& choice);
  void add_narrowed(const OpView& op, size_t i, ValueId sum, PlacementId placement, const Cause& cause);
  Module& target() { return builder_.module(); }

  Builder& builder_;
  GraphCopy copy_;
  VersionWriter& values_;
  ProgramPlacements& placements_;
};

}  // namespace shardwise
