// SPDX-License-Identifier: Apache-2.0
//
// Gradients and batching of reduce by any region.
//
//   argmax        the cotangent of a value goes to the element whose index won:
//                 select(%indices == broadcast %winner, broadcast %cotangent, 0)
//   other regions the reduction is written as its tree of elementwise ops, level by level over slices, and
//                 differentiated op by op; the init values are its first row. The program grows with log2 of the rows.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

void vjp_reduce_region(VjpContext& context);
// Batched init values cannot be scalars of the batched op, so they are combined with its results.
void batch_reduce_region(BatchContext& context);

}  // namespace shardwise
