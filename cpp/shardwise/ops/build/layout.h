// SPDX-License-Identifier: Apache-2.0
//
// Creates ops that move elements or change their dtype.
#pragma once

#include "shardwise/ir/builder.h"

namespace shardwise {

// Each returns its operand when there is nothing to do.
ValueId build_transpose(Builder& builder, ValueId operand, DimSpan permutation);
ValueId build_reshape(Builder& builder, ValueId operand, DimSpan shape);
ValueId build_broadcast(Builder& builder, ValueId operand, DimSpan shape, DimSpan broadcast_dimensions);
ValueId build_reverse(Builder& builder, ValueId operand, DimSpan dimensions);
ValueId build_convert(Builder& builder, ValueId operand, DType dtype);
// Moves one dim to the front and keeps the order of the others.
ValueId build_move_to_front(Builder& builder, ValueId operand, int64_t dim);

}  // namespace shardwise
