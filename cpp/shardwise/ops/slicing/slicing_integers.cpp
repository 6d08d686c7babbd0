// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/slicing/slicing.h"

namespace shardwise {

KnownIntegers integers_of_slice(IntegersContext& context) {
  const OpView& op = context.op();
  const Dims &start = dims_attr(op, "start_indices"), &strides = dims_attr(op, "strides");
  Dims at = context.at();
  for (size_t d = 0; d < at.size(); ++d) {
    if (op.result_type().shape[d] == 1) at[d] = 0;
    if (at[d] != kAnyPlace) at[d] = start[d] + at[d] * strides[d];
  }
  KnownIntegers known = context.operand(0, at);
  if (known.dim < 0) return known;
  const auto d = static_cast<size_t>(known.dim);
  const int64_t step = known.line->strides()[0];
  NdArray line(known.line->dtype(), {op.result_type().shape[d]}, {step * strides[d]},
               known.line->data() + start[d] * step, known.line->owner());
  return context.along(std::move(line), known.dim);
}

// At one place of its dim, a concatenation is one of its operands.
KnownIntegers integers_of_concatenate(IntegersContext& context) {
  const OpView& op = context.op();
  const auto dim = static_cast<size_t>(op.attrs().get_int("dimension"));
  Dims at = context.at();
  if (at[dim] == kAnyPlace && op.operand_count() != 1) {
    KnownIntegers all = context.operand(0, at);
    for (size_t i = 1; i < op.operand_count(); ++i) {
      const KnownIntegers known = context.operand(i, at);
      all = {.low = std::min(all.low, known.low), .high = std::max(all.high, known.high)};
    }
    return all;
  }
  size_t i = 0;
  for (; at[dim] != kAnyPlace && at[dim] >= op.operand_type(i).shape[dim]; ++i)
    at[dim] -= op.operand_type(i).shape[dim];
  return context.operand(i, at);
}

}  // namespace shardwise
