// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_argument_loops.h"

namespace shardwise::reduce_loops {

void reduce_float_arguments(const ArgumentPlan& plan, Reducer reducer, DType value, DType index,
                            const ArgumentResults& results, const RunPieces& run) {
  if (value == DType::kF32) return reduce_argument<float>(plan, reducer, index, results, run);
  reduce_argument<double>(plan, reducer, index, results, run);
}

}  // namespace shardwise::reduce_loops
