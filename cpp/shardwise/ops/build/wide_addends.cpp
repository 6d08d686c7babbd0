// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/wide_addends.h"

#include <vector>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/addends.h"

namespace shardwise {

OpId create_with_wide_addends(Builder& builder, const OpView& op, std::span<const ValueId> operands) {
  Module& module = builder.module();
  const DType narrow = op.result_type().dtype, wide = addend_dtype(op, 0);
  const TypeId type = builder.context().tensor(wide, op.result_type().shape);
  const AttrsId attrs = op.module().op(op.id()).attrs;
  if (op.def().addends == Addends::kWideResult) return builder.create_op(op.def(), operands, attrs, {&type, 1});
  std::vector<ValueId> converted(operands.begin(), operands.end());
  for (ValueId& operand : converted) {
    if (module.type(operand).dtype != narrow) continue;  // indices
    const Value known = module.value(operand);
    operand = build_convert(builder, operand, wide);
    module.value(operand).sharding = known.sharding;
    module.value(operand).origin = known.origin;
  }
  const RegionId region = build_reducer_region(builder, Reducer::kSum, wide);
  return builder.create_op(op.def(), converted, attrs, {&type, 1}, {&region, 1});
}

}  // namespace shardwise
