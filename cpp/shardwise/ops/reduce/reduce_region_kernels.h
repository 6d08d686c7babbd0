// SPDX-License-Identifier: Apache-2.0
//
// reduce by (value, index) pairs, and by any other region. Both combine one dim after the other, the last first, each
// from its first row to its last, so that the order is that of the elements whatever the region:
//
//   5 rows by a region      0·1  2·3  4      0·1·2·3  4      0·1·2·3·4      init·0·1·2·3·4
//
// Each step runs the region's tile program on slabs of rows.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

bool has_argument_kernel(DType index);  // whether the loops for pairs know this dtype of indices
void kernel_reduce_arguments(KernelContext& context, Reducer reducer);
void kernel_reduce_region(KernelContext& context);

}  // namespace shardwise
