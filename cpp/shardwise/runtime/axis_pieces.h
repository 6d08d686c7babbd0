// SPDX-License-Identifier: Apache-2.0
//
// Axis lists as labels of array dims: the communicators give each ref of a list a dim of its own, so these functions
// never merge neighbors, as those of mesh/axis.h do.
//
//   pieces_of({"x"}, {"x":(1)2, "y"})       // {"x":(1)2, "x":(2)4} of x = 8
//   without({"y", "x"}, {"x":(1)2})         // {"y", "x":(2)4}
#pragma once

#include <cstddef>

#include "shardwise/base/dims.h"
#include "shardwise/base/ndarray.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

Dims concatenated(Dims a, DimSpan b);
AxisList in_mesh_order(AxisList axes);
// The digits of `axes` that are not in `others`.
AxisList without(AxisSpan axes, AxisSpan others);
// `axes` cut like the shards' axes, so that no dims of a stack must be merged.
AxisList pieces_of(AxisSpan axes, AxisSpan others);
size_t position_of(AxisSpan axes, const AxisRef& axis);  // InternalError unless it is one of them
Dims sizes_of(AxisSpan axes);

constexpr AxisRef kNoAxis{-1, 1, 1};  // the label of a dim of elements
struct LabeledArray {
  NdArray array;
  AxisList labels;  // of each dim
};
// Splits the dims after the `labels` of `array`: dim d along split[d]. 8 rows along x=4 become [x=4, 2].
LabeledArray split_along(NdArray array, AxisList labels, std::span<const AxisList> split);
// … and moves the dims of `axes`, which are all labels then, to the front, in that order.
NdArray parts_of(const NdArray& array, const AxisList& labels, std::span<const AxisList> split, AxisSpan axes);
// Brings the first dims, which are `labels`, into the order of `axes`, which are the same.
NdArray reorder_axes(const NdArray& array, AxisSpan labels, AxisSpan axes);

}  // namespace shardwise
