// SPDX-License-Identifier: Apache-2.0
//
// The custom calls that JAX's texts have in place of chlo.top_k:
//
//   ApproxTopK      lax.approx_max_k and approx_min_k. Operands along one dim, then a scalar for each, which is not
//                   used; a function of the module compares. The exact elements are found: the recall is 1.
//   mhlo.topk       lax.top_k of JAX before 0.5
//
//   %1:2 = custom_call @ApproxTopK(%x, %iota, %least, %none) {called_computations = [@greater], mhlo.backend_config =
//       {aggregate_to_topk = true, reduction_dim = 1 : i64, top_k = 5 : i64, …}}
//   ->  %1:2 = chlo.top_k(%x, k = 5)
//
// A comparison of anything but the floats of the first operand is a stablehlo.sort and a slice.
#pragma once

namespace shardwise {

void register_top_k_calls();  // once, as custom calls

}  // namespace shardwise
