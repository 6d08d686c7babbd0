// SPDX-License-Identifier: Apache-2.0
//
// The dtype of the addends that devices hold of a sum, until they are reduced (OpDef::addends):
//
//   addend_dtype(dot_general : … -> f16, 0)      f32: an addend may overflow where the whole sum does not
//   addend_dtype(dot_general : … -> bf16, 0)     bf16: rounded once, and folded in float32
//
// An op is created with wide addends in place of narrow sums:
//
//   dot_general : (f16, f16) -> f16      dot_general : (f16, f16) -> f32
//   reduce by add : f16 -> f16           convert to f32, reduce by add : f32 -> f32
#pragma once

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// The dtype in which addends are exact enough for a sum whose result has `dtype`.
DType wide_addend(DType dtype);
// The dtype in which an op leaves a result of a sum unreduced.
DType addend_dtype(const OpView& op, size_t result);

// The op on these operands, with results of its addend_dtype.
OpId create_with_wide_addends(Builder& builder, const OpView& op, std::span<const ValueId> operands);

}  // namespace shardwise
