// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_kernels.h"
#include "shardwise/ops/shared/reduce_operations.h"

namespace shardwise::reduce_loops {

void reduce_integers(const Plan& plan, Reducer reducer, DType dtype, const std::byte* init, std::byte* result,
                     const RunPieces& run) {
  dispatch_integers("stablehlo.reduce", dtype, reducer, [&]<class Op>() { reduce_items<Op>(plan, init, result, run); });
}

}  // namespace shardwise::reduce_loops
