// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/error.h"
#include "shardwise/ops/reduce/reduce_kernels.h"
#include "shardwise/ops/shared/reduce_operations.h"

namespace shardwise::reduce_loops {
namespace {

template <class T>
void reduce_as(const Plan& plan, Reducer reducer, const std::byte* init, std::byte* result, const RunPieces& run) {
  switch (reducer) {
    case Reducer::kSum: return reduce_items<Sum<T>>(plan, init, result, run);
    case Reducer::kProd: return reduce_items<Product<T>>(plan, init, result, run);
    case Reducer::kMax: return reduce_items<FloatExtremum<T, true>>(plan, init, result, run);
    case Reducer::kMin: return reduce_items<FloatExtremum<T, false>>(plan, init, result, run);
    default: fail<DTypeError>("stablehlo.reduce", "and, or take integers or booleans", "floats", "compare first");
  }
}

}  // namespace

void reduce_floats(const Plan& plan, Reducer reducer, DType dtype, const std::byte* init, std::byte* result,
                   const RunPieces& run) {
  if (dtype == DType::kF32) return reduce_as<float>(plan, reducer, init, result, run);
  reduce_as<double>(plan, reducer, init, result, run);
}

}  // namespace shardwise::reduce_loops
