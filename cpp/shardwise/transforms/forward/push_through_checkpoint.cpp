// SPDX-License-Identifier: Apache-2.0

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/transforms/forward/differentiate_forward.h"
#include "shardwise/transforms/forward/tangent_regions.h"
#include "shardwise/transforms/forward/tangent_walk.h"

namespace shardwise {

// It stays a checkpoint, whose gradient computes both again.
void push_through_checkpoint(TangentWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const RegionId original = module.regions(id)[0];
  std::vector<ValueId> operands(module.operands(id).begin(), module.operands(id).end());
  const size_t count = operands.size();
  Builder inner(module, module.add_region(), builder.loc());
  GraphCopy copy(module, module);
  std::vector<ValueId> wrt, tangents, results;
  for (size_t i = 0; i < count; ++i) {
    const ValueId argument = module.region(original).arguments[i];
    const Value known = module.value(argument);
    copy.map(argument, module.add_argument(inner.region(), known.type, known.loc));
    module.value(copy(argument)).sharding = known.sharding;
  }
  for (size_t i = 0; i < count; ++i) {
    const ValueId of_operand = walk.tangent(operands[i]);
    if (!of_operand) continue;
    const ValueId argument = copy(module.region(original).arguments[i]);
    wrt.push_back(argument);
    tangents.push_back(module.add_argument(inner.region(), module.value(argument).type, builder.loc()));
    operands.push_back(of_operand);
  }
  copy.ops(original, inner.region());
  for (const ValueId result : std::vector<ValueId>(module.region(original).results)) results.push_back(copy(result));
  const Tangents made = append_jvp(inner, results, wrt, tangents);
  const size_t result_count = results.size();
  for (size_t i = 0; i < result_count; ++i) results[i] = made.replaced(results[i]);
  for (size_t i = 0; i < result_count; ++i) {
    if (made.values[i]) results.push_back(made.values[i]);
  }
  module.region(inner.region()).results = results;
  const RegionId region = inner.region();
  const OpId joint =
      builder.create_op(*module.op(id).def, operands, module.op(id).attrs, types_of(module, results), {&region, 1});
  const std::vector<ValueId> values = list_of_results(module, joint);
  std::vector<ValueId> of_results(result_count);
  size_t next = result_count;
  for (size_t i = 0; i < result_count; ++i) {
    if (made.values[i]) of_results[i] = values[next++];
  }
  walk.put_in_place_of(id, values, of_results);
}

}  // namespace shardwise
