// SPDX-License-Identifier: Apache-2.0
//
// Checks of an op that need the program around it, its values and their shardings:
//
//   %1 = sdy.all_gather [{"y"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]>      OpDef::verify: %0 has {"x", "y"} there
//   %2 = stablehlo.dot … {sdy.sharding_rule = …}                              the rule fits the op
//   sdy.reshard %0 …                                         the program is at a stage that may hold reshards (stage.h)
//   foo.print(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}     without results: one sharding, no dims
//
// The parser verifies after it has parsed the entire text, and the verifier again between passes.
#pragma once

#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

bool needs_verification(const OpView& op);  // whether there is anything to check
void verify_op(const OpView& op);           // ShardingError, naming the op

// Checks the sharding of one value. Throws ShardingError if it does not fit the type: a token has no dims and no axes.
void verify_sharding(const TensorSharding& sharding, const TensorType& type);

// Checks the part of a global value that a value holds. Throws ShardingError if its placement does not fit the global
// type, or the value's type is not that of a block.
void verify_part(const Module& module, ValueId value);

// For an op without results, whose shardings are an attribute: at most one sharding, without dims.
void verify_without_results(std::string_view op, const ShardingPerValue& shardings);

// A data-flow edge represents all uses of its input. Throws ShardingError if the input has another user, or if it comes
// from an annotation.
class DataFlowEdgeUses {
 public:
  explicit DataFlowEdgeUses(const Module& module);
  void verify(OpId id) const;  // accepts any op; checks edges only

 private:
  const Module& module_;
  std::optional<UseLists> uses_;  // none without edges
};

}  // namespace shardwise
