// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/error.h"
#include "shardwise/ops/reduce/reduce_kernels.h"
#include "shardwise/ops/shared/reduce_operations.h"

namespace shardwise::reduce_loops {
namespace {

// Sums, products and bits are the same for signed items, which would overflow; booleans are bytes of 0 and 1, and the
// identity of `and`, all bits, leaves 1 as it is.
template <class T>
void reduce_bits(const Plan& plan, Reducer reducer, const std::byte* init, std::byte* result, const RunPieces& run) {
  switch (reducer) {
    case Reducer::kSum: return reduce_items<Sum<T>>(plan, init, result, run);
    case Reducer::kProd: return reduce_items<Product<T>>(plan, init, result, run);
    case Reducer::kAnd: return reduce_items<And<T>>(plan, init, result, run);
    case Reducer::kOr: return reduce_items<Or<T>>(plan, init, result, run);
    default: fail<InternalError>("stablehlo.reduce", "the reducer must be one of bits");
  }
}

template <class T>
void reduce_extremum(const Plan& plan, bool is_max, const std::byte* init, std::byte* result, const RunPieces& run) {
  if (is_max) return reduce_items<Extremum<T, true>>(plan, init, result, run);
  reduce_items<Extremum<T, false>>(plan, init, result, run);
}

}  // namespace

void reduce_integers(const Plan& plan, Reducer reducer, DType dtype, const std::byte* init, std::byte* result,
                     const RunPieces& run) {
  if (reducer == Reducer::kMax || reducer == Reducer::kMin) {
    return dispatch(dtype, [&]<class T>() {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        reduce_extremum<T>(plan, reducer == Reducer::kMax, init, result, run);
      } else {
        fail<InternalError>("stablehlo.reduce", "the dtype must be an integer");
      }
    });
  }
  switch (item_size(dtype)) {
    case 1: return reduce_bits<uint8_t>(plan, reducer, init, result, run);
    case 2: return reduce_bits<uint16_t>(plan, reducer, init, result, run);
    case 4: return reduce_bits<uint32_t>(plan, reducer, init, result, run);
    default: return reduce_bits<uint64_t>(plan, reducer, init, result, run);
  }
}

}  // namespace shardwise::reduce_loops
