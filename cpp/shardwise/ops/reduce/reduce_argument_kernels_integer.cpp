// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_argument_loops.h"

namespace shardwise::reduce_loops {

void reduce_integer_arguments(const ArgumentPlan& plan, Reducer reducer, DType value, DType index,
                              const ArgumentResults& results, const RunPieces& run) {
  dispatch(value, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      reduce_argument<T>(plan, reducer, index, results, run);
    }
  });
}

}  // namespace shardwise::reduce_loops
