// SPDX-License-Identifier: Apache-2.0
//
// reduce: combines the elements along dims, and one init value, by a region of two scalars.
//
//   %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1]
//       : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>                      ([i, j], [])->([i]) reduction={j}
//
// Sharded {"x"} on dim 1 each device sums its own columns, and the result is unreduced over x. The init value counts
// once: devices other than the first take the neutral element instead. Padding along j is filled with the neutral
// element.
//
// Several tensors are combined row by row, by any associative region (reduce_regions.h):
//   %1:2 = stablehlo.reduce(%x init: %v), (%n init: %i) across dimensions = [1] : …   reducer(%a, %b) (%j, %k) {…}
// Sharded on dim 1 the devices exchange their partial results (reduce_region_partition.h); nothing is left unreduced.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> reduce_ops();

void kernel_reduce(KernelContext& context);

// The reducer of a region that returns one commutative op of its two arguments; on booleans add and maximum are or,
// multiply and minimum are and.
std::optional<Reducer> region_reducer(const Module& module, RegionId region);
// The same of one value of a region: the reducer that combines exactly `first` and `second` into it.
std::optional<Reducer> value_reducer(const Module& module, ValueId value, ValueId first, ValueId second);
// Of an op whose region combines elements: nothing when it takes several tensors or has another region.
std::optional<Reducer> op_reducer(const OpView& op);
Reducer required_reducer(const OpView& op);  // … which is then an error
// Operands are tensors of one shape and as many scalars; the region combines two of each. The number of tensors.
size_t expect_reduction(const InferContext& op);
// x with reducer(x, y) = y for all y; for max of floats that is -inf.
Scalar neutral_element(Reducer reducer, DType dtype);
// The neutral element that also leaves −0 as it is.
Scalar exact_neutral(Reducer reducer, DType dtype);
// Whether counting `value` any number of times changes no result (either zero, for sums).
bool is_neutral(Reducer reducer, Scalar value);
// Whether combining a value with itself gives that value: max, min, and, or.
bool is_idempotent(Reducer reducer);
// An operand that takes part in a result left unreduced over axes: itself on the first of their devices, neutral
// elsewhere, so that it counts once when the partial results are combined.
ValueId counted_once(PartitionContext& context, size_t operand, const AxisList& unreduced, Reducer reducer);
std::string_view reducer_op_name(Reducer reducer);  // "stablehlo.add"
// A new region of two scalar arguments that returns their combination.
RegionId build_reducer_region(Builder& builder, Reducer reducer, DType dtype);
// No init means the neutral element; no dims and no init gives the operand back.
ValueId build_reduce(Builder& builder, ValueId operand, ValueId init, Reducer reducer, DimSpan dims);

}  // namespace shardwise
