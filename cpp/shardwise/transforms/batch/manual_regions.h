// SPDX-License-Identifier: Apache-2.0
//
// Rewrites manual computations as ops on global values. On a mesh x=2:
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"}
//        (%a: tensor<4xf32>) {
//     %2 = stablehlo.sine %a
//     %3 = "stablehlo.all_reduce"(%2) over [[0, 1]]
//     return %3
//   } : (tensor<8xf32>) -> tensor<4xf32>
//
//   %rows = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>        constraint [{"x"}, {}]
//   %2 = stablehlo.sine %rows : tensor<2x4xf32>
//   %3 = stablehlo.reduce %2 across dimensions = [0] : tensor<4xf32>         constraint [{}], replicated={"x"}
//
// A value inside has a leading dim with a row for each position along the manual axes on which it differs, sharded over
// these axes, so that each device computes its own row. The body is batched along this dim as by vmap (batch.h), and
// collectives and device numbers are ops on rows (ops/collectives/device_ops.h). The partitioner finds the collectives
// again. A computation inside adds its axes to those around it.
//
// A result that differs along a manual axis that its sharding does not name is the first row, as in JAX where the rows
// must be equal.
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// Replaces all manual computations that main reaches, and drops functions that only these called. Throws
// UnsupportedError for a collective whose groups no manual axes give.
void expand_manual_regions(Module& module);

// Appends the ops that a manual computation outside of others is. Returns its results.
std::vector<ValueId> append_manual_region(Builder& builder, const OpView& op);

// As append_inlined (inlined_ops.h); also the ops that make up a manual computation, or an op that has a decomposition. Throws
// UnsupportedError if there are none: "it cannot be differentiated".
std::vector<ValueId> append_expansion(Builder& builder, const OpView& op, std::string_view what);

}  // namespace shardwise
