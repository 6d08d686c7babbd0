// SPDX-License-Identifier: Apache-2.0
//
// Creates gathers and scatters of single elements of each row, as np.take_along_axis and put_along_axis do.
//
//   build_take_along_last(b, %x, %places)      tensor<4x8xf32>, tensor<4x3xi32> -> tensor<4x3xf32>
#pragma once

#include "shardwise/ir/builder.h"

namespace shardwise {

// Elements `places` of the last dim of the same row.
ValueId build_take_along_last(Builder& builder, ValueId operand, ValueId places);
// The operand with `updates` added at `places`, no two of which are equal in a row.
ValueId build_add_along_last(Builder& builder, ValueId operand, ValueId places, ValueId updates);

}  // namespace shardwise
