// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/addends.h"

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {

DType wide_addend(DType dtype) {
  const bool is_narrow = is_float(dtype) && item_size(dtype) <= 2 && dtype != DType::kBF16;
  return is_narrow ? DType::kF32 : dtype;
}

DType addend_dtype(const OpView& op, size_t result) {
  const DType dtype = op.result_type(result).dtype;
  switch (op.def().addends) {
    case Addends::kNarrow: break;
    case Addends::kWideResult: return wide_addend(dtype);
    case Addends::kWideOperands: return op_reducer(op) == Reducer::kSum ? wide_addend(dtype) : dtype;
  }
  return dtype;
}

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
