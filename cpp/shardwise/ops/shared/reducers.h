// SPDX-License-Identifier: Apache-2.0
//
// Reducers: which one a region or an op is, its op's name, and its neutral element.
//
//   region_reducer(module, region)                       kSum for a region that returns the add of its two arguments
//   neutral_element(Reducer::kMax, DType::kF32)          -inf
#pragma once

#include <optional>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The reducer of a region that returns one commutative op of its two arguments; on booleans add and maximum are or,
// multiply and minimum are and.
std::optional<Reducer> region_reducer(const Module& module, RegionId region);
// The same of one value of a region: the reducer that combines exactly `first` and `second` into it.
std::optional<Reducer> value_reducer(const Module& module, ValueId value, ValueId first, ValueId second);
// The reducer of an op whose region combines elements: none when it takes several tensors or has another region.
std::optional<Reducer> op_reducer(const OpView& op);
Reducer required_reducer(const OpView& op);  // … which is then an error
// x with reducer(x, y) = y for all y; for max of floats that is -inf.
Scalar neutral_element(Reducer reducer, DType dtype);
// The largest number of an integer dtype that is not above `limit`.
Scalar capped(DType dtype, int64_t limit);
// The reducer that assembles elements of which each device holds some and neutral elements elsewhere.
Reducer reducer_of_parts(DType dtype);
// The neutral element that also leaves −0 as it is.
Scalar exact_neutral(Reducer reducer, DType dtype);
// Whether counting `value` any number of times changes no result (either zero, for sums).
bool is_neutral(Reducer reducer, Scalar value);
// Whether combining a value with itself gives that value: max, min, and, or.
bool is_idempotent(Reducer reducer);
std::string_view reducer_op_name(Reducer reducer);  // "stablehlo.add"
// Whether the op combines its two operands by the reducer, as in a reduction.
bool combines_by(const OpDef& def, Reducer reducer);

}  // namespace shardwise
