// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_cost.h"

#include "shardwise/base/quantity.h"

namespace shardwise {

int64_t OpCost::flops() const { return saturated_sum(saturated_sum(matrix, vector), transcendental); }

int64_t OpCost::bytes() const {
  int64_t sum = 0;
  for (const int64_t bytes : touched) sum = saturated_sum(sum, bytes);
  return sum;
}

std::vector<TypeId> own_types(const OpView& op) {
  std::vector<TypeId> types;
  types.reserve(op.operand_count() + op.result_count());
  for (const ValueId operand : op.operands()) types.push_back(op.module().value(operand).type);
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(op.module().value(op.result(i)).type);
  return types;
}

}  // namespace shardwise
