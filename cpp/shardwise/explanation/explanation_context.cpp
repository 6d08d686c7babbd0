// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explanation_context.h"

#include "shardwise/base/settings.h"

namespace shardwise {

ExplanationContext::ExplanationContext(const Module& module, const Provenance& provenance)
    : module_(module), history_(module, provenance), replay_(module, history_) {
  if (settings().verify) replay_.verify();
  for (const Function& function : module.functions) collect(function.body, function.body);
  for (const auto& [op, edge] : provenance.edges) {
    for (const TensorRef& tensor : history_.tensors(op)) add(tensor.value, op);
  }
}

const std::vector<OpId>& ExplanationContext::ops_at(ValueId value) const {
  static const std::vector<OpId> kNone;
  const auto found = ops_at_.find(value);
  return found == ops_at_.end() ? kNone : found->second;
}

void ExplanationContext::collect(RegionId region, RegionId body) {
  for (const OpId op : module_.region(region).ops) {
    if (module_.op(op).def->traits.barrier) with_barriers_.insert(body);
    for (const ValueId operand : module_.operands(op)) add(operand, op);
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) add(module_.result(op, i), op);
    for (const RegionId inner : module_.regions(op)) collect(inner, body);
  }
}

// An op may have a value as several operands.
void ExplanationContext::add(ValueId value, OpId op) {
  std::vector<OpId>& ops = ops_at_[value];
  if (ops.empty() || ops.back() != op) ops.push_back(op);
}

}  // namespace shardwise
