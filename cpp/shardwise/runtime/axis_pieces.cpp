// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/axis_pieces.h"

#include <algorithm>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/mesh/digits.h"

namespace shardwise {

Dims concatenated(Dims a, DimSpan b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Shards are indexed in mesh order, whatever the order of a collective's axes is.
AxisList in_mesh_order(AxisList axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

AxisList without(AxisSpan axes, AxisSpan others) {
  AxisList rest;
  for (const AxisRef& axis : axes) {
    // One ref at a time: `difference` of the whole list would merge neighbors, which are dims of their own here.
    const AxisList left = difference(AxisSpan(&axis, 1), others);
    rest.insert(rest.end(), left.begin(), left.end());
  }
  return rest;
}

AxisList pieces_of(AxisSpan axes, AxisSpan others) {
  // No single split has (1)2 and (1)3 of 6. Then the refs stay whole, and Shards::along looks shards up one by one.
  auto pieces = cut_at(axes, others);
  return pieces ? std::move(*pieces) : AxisList(axes.begin(), axes.end());
}

size_t position_of(AxisSpan axes, const AxisRef& axis) {
  const auto found = std::find(axes.begin(), axes.end(), axis);
  check_internal(found != axes.end(), "collective: the axis is one of the shards' axes");
  return static_cast<size_t>(found - axes.begin());
}

Dims sizes_of(AxisSpan axes) {
  Dims sizes;
  sizes.reserve(axes.size());
  for (const AxisRef& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

LabeledArray split_along(NdArray array, AxisList labels, std::span<const AxisList> split) {
  size_t dim = labels.size();
  for (const AxisList& pieces : split) {
    Dims sizes = sizes_of(pieces);
    sizes.push_back(array.shape()[dim] / product(pieces));
    array = split_dim(array, dim, sizes);
    labels.insert(labels.end(), pieces.begin(), pieces.end());
    labels.push_back(kNoAxis);
    dim += sizes.size();
  }
  return {std::move(array), std::move(labels)};
}

NdArray parts_of(const NdArray& array, const AxisList& labels, std::span<const AxisList> split, AxisSpan axes) {
  const auto [view, found] = split_along(array, labels, split);
  std::vector<size_t> order;
  for (const AxisRef& axis : axes) order.push_back(position_of(found, axis));
  for (size_t d = 0; d < found.size(); ++d) {
    if (found[d] == kNoAxis) order.push_back(d);
  }
  return reorder_dims(view, order);
}

NdArray reorder_axes(const NdArray& array, AxisSpan labels, AxisSpan axes) {
  std::vector<size_t> order;
  for (const AxisRef& axis : axes) order.push_back(position_of(labels, axis));
  for (size_t d = labels.size(); d < array.shape().size(); ++d) order.push_back(d);
  return reorder_dims(array, order);
}

}  // namespace shardwise
