// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_argument_loops.h"

namespace shardwise::reduce_loops {

void reduce_integer_arguments(const ArgumentPlan& plan, Reducer reducer, DType value, DType index,
                              const ArgumentResults& results, const RunPieces& run) {
  switch (value) {
    case DType::kI8: return reduce_argument<int8_t>(plan, reducer, index, results, run);
    case DType::kI16: return reduce_argument<int16_t>(plan, reducer, index, results, run);
    case DType::kI32: return reduce_argument<int32_t>(plan, reducer, index, results, run);
    case DType::kI64: return reduce_argument<int64_t>(plan, reducer, index, results, run);
    case DType::kU8: return reduce_argument<uint8_t>(plan, reducer, index, results, run);
    case DType::kU16: return reduce_argument<uint16_t>(plan, reducer, index, results, run);
    case DType::kU32: return reduce_argument<uint32_t>(plan, reducer, index, results, run);
    default: return reduce_argument<uint64_t>(plan, reducer, index, results, run);
  }
}

}  // namespace shardwise::reduce_loops
