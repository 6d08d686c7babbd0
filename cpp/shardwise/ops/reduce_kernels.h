// SPDX-License-Identifier: Apache-2.0
//
// Reductions of arrays, in two translation units, because they compile slowly.
#pragma once

#include "shardwise/base/ndarray.h"
#include "shardwise/mesh/sharding.h"
#include "shardwise/ops/reduce_loops.h"

namespace shardwise::reduce_loops {

// For float32 and float64, and for integers and booleans. `init` points to one item; `result` is row-major.
void reduce_floats(const Plan& plan, Reducer reducer, DType dtype, const std::byte* init, std::byte* result,
                   const RunPieces& run);
void reduce_integers(const Plan& plan, Reducer reducer, DType dtype, const std::byte* init, std::byte* result,
                     const RunPieces& run);

template <class Op>
void reduce_items(const Plan& plan, const std::byte* init, std::byte* result, const RunPieces& run) {
  typename Op::Item item;
  std::memcpy(&item, init, sizeof(item));
  Reduction<Op>(plan, item, reinterpret_cast<typename Op::Item*>(result), run).run();
}

}  // namespace shardwise::reduce_loops
