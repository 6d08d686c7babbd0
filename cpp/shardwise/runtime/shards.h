// SPDX-License-Identifier: Apache-2.0
//
// Shards: the devices' arrays of one value, each distinct array once.
//
// A value *varies* along some axes. Devices that differ only along other axes hold the same bytes, and share them. The
// shards are indexed row-major by the coordinates along the varying axes, in mesh order:
//
//   mesh x=4, y=2; a value that is sharded along x and replicated along y:
//     axes = {x}, count = 4, shards[2] is the array of the two devices at x=2
//
// Shards at regular distances in memory are *stacked*: one strided array whose first dims are the axes. A collective
// then only rearranges dims, whatever the number of devices. A 1024x8 array, scattered over x, is a stack of shape {4,
// 256, 8}: a view of the user's memory. Other shards are a list.
#pragma once

#include <vector>

#include "shardwise/base/ndarray.h"
#include "shardwise/mesh/digits.h"

namespace shardwise {

class Shards {
 public:
  Shards() = default;
  explicit Shards(NdArray everywhere) : stacked_(std::move(everywhere)) {}
  Shards(AxisList axes, NdArray stacked) : axes_(std::move(axes)), stacked_(std::move(stacked)) {}
  // Row-major along `axes`. Becomes a stack when addresses and strides are regular.
  Shards(AxisList axes, std::vector<NdArray> list);

  const AxisList& axes() const { return axes_; }
  int64_t count() const { return product(axes_); }
  DType dtype() const { return first().dtype(); }
  Dims local_shape() const;
  NdArray operator[](int64_t index) const;

  bool is_stacked() const { return list_.empty(); }
  const NdArray& stacked() const { return stacked_; }  // of a stack only
  NdArray stack() const;                               // the stack, or a stacked copy of the list

  NdArray release_stack() && { return std::move(stacked_); }

  // The arrays of the same devices, indexed by other axes. Along added axes, all devices share an array (nothing is
  // copied). Along removed axes, the devices at coordinate 0 are taken. So x.along({x, y}).along({x}) is x.
  Shards along(AxisSpan axes) const;

 private:
  const NdArray& first() const { return list_.empty() ? stacked_ : list_.front(); }
  bool along_by_view(AxisSpan axes, NdArray& view) const;
  Shards along_by_index(AxisSpan axes) const;

  AxisList axes_;
  NdArray stacked_;
  std::vector<NdArray> list_;
};

// The shards of an array whose first dims are `axes`, in any order.
Shards shards_along(const AxisList& axes, const NdArray& array);

// Each device's part of dim d along scatter[d], as views. The operand does not vary along these axes.
Shards own_parts(const Shards& operand, std::span<const AxisList> scatter);

// The position along `axes`, in list order, of the device at `index` along `grid` whose other digits are 0.
int64_t position_along(AxisSpan axes, AxisSpan grid, int64_t index);

}  // namespace shardwise
