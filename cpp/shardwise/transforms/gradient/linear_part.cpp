// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/linear_part.h"

#include <algorithm>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/forward/push_forward.h"
#include "shardwise/transforms/gradient/differentiate.h"

namespace shardwise {
namespace {

// The ops behind the mark, which leaves the region with them.
std::vector<OpId> take_behind(Module& module, RegionId region, OpId mark) {
  std::vector<OpId>& ops = module.region(region).ops;
  const auto at = std::ranges::find(ops, mark);
  check_internal(at != ops.end(), "the mark is in the region");
  const std::vector<OpId> behind(at + 1, ops.end());
  ops.erase(at, ops.end());
  return behind;
}

bool is_constant(const Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  return op && module.op(op).operand_count == 0 && module.op(op).region_count == 0 &&
         module.op(op).def->traits.constant_like;
}

}  // namespace

void leave_region(Module& module, RegionId region, std::span<const ValueId> variables) {
  std::vector<ValueId>& arguments = module.region(region).arguments;
  std::erase_if(arguments, [&](ValueId argument) { return std::ranges::find(variables, argument) != variables.end(); });
  for (uint32_t i = 0; i < arguments.size(); ++i) module.value(arguments[i]).index = i;
}

OpId mark_end(Builder& builder) { return builder.module().value(build_zeros(builder, {DType::kBool, {}})).op; }

LinearPart take_linear_part(Builder& builder, OpId mark, std::span<const ValueId> variables,
                            std::span<const ValueId> results, std::span<const ValueId> like) {
  Module& module = builder.module();
  std::unordered_set<ValueId> unknown(variables.begin(), variables.end());
  std::vector<OpId> moved;
  for (const OpId op : take_behind(module, builder.region(), mark)) {
    // A checkpoint computes values again behind a barrier: they belong to the gradient, and must not be kept.
    const bool depends = module.op(op).def->passes_through() ||
                         reads_any(module, op, [&](ValueId value) { return unknown.contains(value); });
    if (!depends) {
      module.region(builder.region()).ops.push_back(op);
      continue;
    }
    moved.push_back(op);
    for (const ValueId result : results_of(module, op)) unknown.insert(result);
  }

  LinearPart part{.region = module.add_region(), .captured = {}};
  Builder inner(module, part.region, builder.loc());
  std::vector<ValueId> returned;
  for (size_t i = 0; i < results.size(); ++i) {
    returned.push_back(results[i] ? results[i] : build_zeros(inner, TensorType(module.type(like[i]))));
  }
  GraphCopy copy(module, module);
  Redirection own(module);
  const std::unordered_set<OpId> inside(moved.begin(), moved.end());
  std::vector<ValueId> read = returned;
  for (const OpId op : moved) visit_reads(module, op, [&](ValueId value) { read.push_back(value); });
  std::unordered_set<ValueId> known;
  for (const ValueId value : read) {
    // Values of a region inside are visited, too; they are not around.
    if (unknown.contains(value) || !known.insert(value).second) continue;
    RegionId at = region_of(module, value);
    bool is_own = at == part.region;
    while (at && !is_own) {
      const OpId owner = module.region(at).op;
      is_own = owner && inside.contains(owner);
      at = owner ? module.op(owner).parent : RegionId{};
    }
    if (is_own) continue;
    if (is_constant(module, value)) {
      copy.op(module.value(value).op, part.region);
      own.add(value, copy(value));
      continue;
    }
    part.captured.push_back(value);
    own.add(value, module.add_argument(part.region, module.value(value).type, builder.loc()));
  }
  for (const ValueId variable : variables) {
    own.add(variable, module.add_argument(part.region, module.value(variable).type, builder.loc()));
  }
  for (const OpId op : moved) {
    own.apply(op);
    module.op(op).parent = part.region;
    module.region(part.region).ops.push_back(op);
  }
  for (ValueId& result : returned) result = own(result);
  module.region(part.region).results = returned;
  leave_region(module, builder.region(), variables);
  return part;
}

RegionId transpose_linear_part(Module& module, RegionId region, size_t captured, LocId loc) {
  Builder target(module, module.add_region(), loc);
  Builder scratch(module, module.add_region(), loc);
  GraphCopy copy(module, module);
  const std::vector<ValueId> arguments = module.region(region).arguments;
  std::vector<ValueId> variables, outputs, cotangents;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_captured = i < captured;
    const RegionId to = is_captured ? target.region() : scratch.region();
    copy.map(arguments[i], module.add_argument(to, module.value(arguments[i]).type, loc));
    if (!is_captured) variables.push_back(copy(arguments[i]));
  }
  copy.ops(region, scratch.region());
  for (const ValueId result : std::vector<ValueId>(module.region(region).results)) {
    outputs.push_back(copy(result));
    cotangents.push_back(module.add_argument(target.region(), module.value(result).type, loc));
  }
  Gradients gradients = append_vjp_without_zeros(scratch, outputs, cotangents, variables);
  move_needed_ops(target, scratch.region(), gradients.values);
  for (size_t i = 0; i < variables.size(); ++i) {
    ValueId& gradient = gradients.values[i];
    if (!gradient) gradient = build_zeros(target, TensorType(module.type(variables[i])));
  }
  module.region(target.region()).results = gradients.values;
  return target.region();
}

}  // namespace shardwise
