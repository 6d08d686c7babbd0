// SPDX-License-Identifier: Apache-2.0
//
// Creates reductions by a known reducer.
//
//   build_reduce(builder, x, {}, Reducer::kSum, Dims{1})        the sums of the rows of x
#pragma once

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// An operand that takes part in a result left unreduced over axes: itself on the first of their devices, neutral
// elsewhere, so that it counts once when the partial results are combined. One that is unreduced over some of the axes
// consists of addends along these.
ValueId counted_once(PartitionContext& context, size_t operand, const AxisList& unreduced, Reducer reducer);
// A new region of two scalar arguments that returns their combination.
RegionId build_reducer_region(Builder& builder, Reducer reducer, DType dtype);
ValueId build_sum_of_all(Builder& builder, ValueId operand);  // a scalar
// An op of this name that reduces by a known reducer. No init means the neutral element.
ValueId create_reduction(Builder& builder, std::string_view name, ValueId operand, ValueId init, Reducer reducer,
                         const Attrs& attrs);
// No init means the neutral element; no dims and no init gives the operand back.
ValueId build_reduce(Builder& builder, ValueId operand, ValueId init, Reducer reducer, DimSpan dims);

}  // namespace shardwise
