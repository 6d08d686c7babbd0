// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/transforms/forward/differentiate_forward.h"
#include "shardwise/transforms/forward/tangent_regions.h"
#include "shardwise/transforms/forward/tangent_walk.h"

namespace shardwise {

// The tangent of a carry that the body returns unchanged is that of the operand, and no carry.
void push_through_loop(TangentWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const LoopParts parts = loop_parts(OpView(module, id));
  const RegionId body = module.add_region(), condition = module.add_region();
  Builder inner(module, body, builder.loc());
  GraphCopy copy(module, module), tested(module, module);
  std::vector<ValueId> operands, wrt, tangents, results;
  std::vector<size_t> moving;  // the carries with a tangent of their own
  const auto add_carry = [&](ValueId operand, ValueId like) {
    operands.push_back(operand);
    const Value known = module.value(like);
    return std::pair(module.add_argument(body, known.type, known.loc),
                     module.add_argument(condition, known.type, known.loc));
  };
  for (const LoopParts::Carry& carry : parts.carries) {
    const auto [argument, in_condition] = add_carry(carry.entry, carry.argument);
    copy.map(carry.argument, argument);
    tested.map(carry.tested, in_condition);
  }
  for (size_t i = 0; i < parts.carries.size(); ++i) {
    const LoopParts::Carry& carry = parts.carries[i];
    const ValueId of_entry = walk.tangent(carry.entry);
    if (!walk.is_active(carry.argument) || (carry.is_invariant() && !of_entry)) continue;
    wrt.push_back(copy(carry.argument));
    if (carry.is_invariant()) {
      tangents.push_back(of_entry);
      continue;
    }
    moving.push_back(i);
    tangents.push_back(add_carry(tangent_or_zeros(builder, of_entry, carry.argument), carry.argument).first);
  }
  walk.capture(id, wrt, tangents);

  copy.ops(parts.body, body);
  for (const LoopParts::Carry& carry : parts.carries) results.push_back(copy(carry.next));
  const Tangents next = append_jvp(inner, results, wrt, tangents);
  for (ValueId& result : results) result = next.replaced(result);
  for (const size_t i : moving) results.push_back(tangent_or_zeros(inner, next.values[i], parts.carries[i].argument));
  module.region(body).results = results;
  tested.ops(parts.condition, condition);
  module.region(condition).results = {tested(parts.predicate)};

  const RegionId regions[] = {condition, body};
  const OpId made = builder.create_op(*module.op(id).def, operands, module.op(id).attrs, {}, regions);
  const std::vector<ValueId> values = list_of_results(module, made);
  std::vector<ValueId> of_results(parts.carries.size());
  for (size_t i = 0; i < parts.carries.size(); ++i) {
    if (parts.carries[i].is_invariant()) of_results[i] = walk.tangent(parts.carries[i].entry);
  }
  for (size_t k = 0; k < moving.size(); ++k) of_results[moving[k]] = values[parts.carries.size() + k];
  walk.put_in_place_of(id, values, of_results);
}

}  // namespace shardwise
