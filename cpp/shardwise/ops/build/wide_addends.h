// SPDX-License-Identifier: Apache-2.0
//
// Creates ops whose narrow sums stay unreduced in a wider dtype:
//
//   dot_general : (f16, f16) -> f16      dot_general : (f16, f16) -> f32
//   reduce by add : f16 -> f16           convert to f32, reduce by add : f32 -> f32
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The op on these operands, with results of its addend_dtype.
OpId create_with_wide_addends(Builder& builder, const OpView& op, std::span<const ValueId> operands);

}  // namespace shardwise
