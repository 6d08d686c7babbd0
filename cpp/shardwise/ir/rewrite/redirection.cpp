// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {

ValueId Redirection::operator()(ValueId value) const {
  // A target may have been redirected itself, a -> b -> c.
  for (auto it = targets_.find(value); it != targets_.end(); it = targets_.find(value)) value = it->second;
  return value;
}

void Redirection::apply(OpId op) const {
  if (empty()) return;
  for (uint32_t i = 0; i < module_.op(op).operand_count; ++i) {
    const ValueId operand = module_.operands(op)[i];
    if (const ValueId by = (*this)(operand); by != operand) module_.set_operand(op, i, by);
  }
  for (uint32_t r = 0; r < module_.op(op).region_count; ++r) {
    const RegionId region = module_.regions(op)[r];
    for (const OpId inner : module_.region(region).ops) apply(inner);
    for (uint32_t i = 0; i < module_.region(region).results.size(); ++i) {
      const ValueId result = module_.region(region).results[i];
      if (const ValueId by = (*this)(result); by != result) module_.set_region_result(region, i, by);
    }
  }
}

}  // namespace shardwise
