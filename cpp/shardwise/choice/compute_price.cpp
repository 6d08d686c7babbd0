// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/compute_price.h"

#include "shardwise/analysis/op_time.h"

namespace shardwise {

TypeId local_type(Context& context, TypeId type, PlacementId placement) {
  return placement ? context.tensor(context.type(type).dtype, context.placement(placement).local_shape()) : type;
}

Price compute_price(const OpView& op, const OpChoice& choice, const Hardware& hardware, uint64_t in_memory) {
  const Module& module = op.module();
  std::vector<TypeId> types;
  const auto add = [&](ValueId value, PlacementId placement) {
    types.push_back(local_type(module.context(), module.value(value).type, placement));
  };
  for (size_t i = 0; i < op.operand_count(); ++i) add(op.operand(i), choice.operands[i]);
  for (size_t i = 0; i < op.result_count(); ++i) add(op.result(i), choice.results[i]);
  const OpTime time = op_time(op, types, hardware, in_memory);
  return {.ps = time.ps_without_launch(), .work = time.flops};
}

}  // namespace shardwise
