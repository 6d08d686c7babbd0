// SPDX-License-Identifier: Apache-2.0
//
// The dtype of the addends that devices hold of a sum, until they are reduced (OpDef::addends):
//
//   addend_dtype(dot_general : … -> f16, 0)      f32: an addend may overflow where the whole sum does not
//   addend_dtype(dot_general : … -> bf16, 0)     bf16: rounded once, and folded in float32
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The dtype in which addends are exact enough for a sum whose result has `dtype`.
DType wide_addend(DType dtype);
// The dtype in which an op leaves a result of a sum unreduced.
DType addend_dtype(const OpView& op, size_t result);

}  // namespace shardwise
