// SPDX-License-Identifier: Apache-2.0
//
// reduce: combines the elements along dims with one init value, by a region of two scalars.
//
//   %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1]
//       : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>                      ([i, j], [])->([i]) reduction={j}
//
// Sharded {"x"} on dim 1, each device sums its own columns, and the result is unreduced over x. The init value must
// count once, so devices other than the first use the neutral element. Padding along j is filled with the neutral
// element.
//
// Several tensors are combined row by row, by any associative region (reduce_regions.h):
//   %1:2 = stablehlo.reduce(%x init: %v), (%n init: %i) across dimensions = [1] : …   reducer(%a, %b) (%j, %k) {…}
// Sharded on dim 1, the devices exchange their partial results (reduce_partition.h), and nothing is left unreduced.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> reduce_ops();

std::optional<Kernel> prepare_reduce(const OpView& op, const KernelTypes& types);

// The reducer of a region that returns one commutative op of its two arguments. On booleans, add and maximum are or;
// multiply and minimum are and.
std::optional<Reducer> region_reducer(const Module& module, RegionId region);
// The same for one value of a region: the reducer that combines exactly `first` and `second`.
std::optional<Reducer> value_reducer(const Module& module, ValueId value, ValueId first, ValueId second);
// The reducer of an op's region. Returns none for an op on several tensors, or with another region.
std::optional<Reducer> op_reducer(const OpView& op);
Reducer required_reducer(const OpView& op);  // … which throws instead
// Checks that the operands are tensors of one shape and as many scalars, and that the region combines two of each.
// Returns the number of tensors.
size_t expect_reduction(const InferContext& op);
// The x with reducer(x, y) = y for all y. For max of floats, it is -inf.
Scalar neutral_element(Reducer reducer, DType dtype);
// The neutral element that also preserves −0.
Scalar exact_neutral(Reducer reducer, DType dtype);
// Whether `value` may count any number of times without changing a result (either zero, for sums).
bool is_neutral(Reducer reducer, Scalar value);
// Whether combining a value with itself gives that value: max, min, and, or.
bool is_idempotent(Reducer reducer);
// An operand of a result that is left unreduced over axes. It is itself on the first of their devices and neutral
// elsewhere, so that it counts once in the pending reduction.
ValueId counted_once(PartitionContext& context, size_t operand, const AxisList& unreduced, Reducer reducer);
std::string_view reducer_op_name(Reducer reducer);  // "stablehlo.add"
// Creates a region of two scalar arguments that returns their combination.
RegionId build_reducer_region(Builder& builder, Reducer reducer, DType dtype);
// No init means the neutral element. Without dims and init, returns the operand.
ValueId build_reduce(Builder& builder, ValueId operand, ValueId init, Reducer reducer, DimSpan dims);

}  // namespace shardwise
