// SPDX-License-Identifier: Apache-2.0
//
// What can be said about an op only when it stands in a program, its values with their shardings:
//
//   %1 = sdy.all_gather [{"y"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]>      OpDef::verify: %0 has {"x", "y"} there
//   %2 = stablehlo.dot … {sdy.sharding_rule = …}                              the rule fits the op
//   sdy.reshard %0 …                                         the program is at a stage that may hold reshards (stage.h)
//   foo.print(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}     without results: one sharding, no dims
//
// The parser asks when it has read the whole text, the verifier again between passes.
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

bool needs_verification(const OpView& op);  // whether there is anything to ask
void verify_op(const OpView& op);           // ShardingError, naming the op

// The sharding of one value. ShardingError where it does not fit the type: a token has no dims and no axes.
void verify_sharding(const TensorSharding& sharding, const TensorType& type);

// Of an op without results, which has its shardings as an attribute: at most one, and that is of no tensor.
void verify_without_results(std::string_view op, const ShardingPerValue& shardings);

// What is handed on is one value, and a data-flow edge stands for all uses of it: ShardingError where its input has
// another user, or comes from an annotation.
class DataFlowEdgeUses {
 public:
  explicit DataFlowEdgeUses(const Module& module);
  void verify(OpId id) const;  // of any op; says something about edges only

 private:
  const Module& module_;
  std::vector<uint32_t> uses_;  // by value; empty without edges
};

}  // namespace shardwise
