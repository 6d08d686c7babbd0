// SPDX-License-Identifier: Apache-2.0
//
// The collectives of a local program, on all shards of a value that this process owns at once. The executor knows no
// other device than those behind its communicator: the virtual one owns every device of the mesh.
//
//   mesh x=4:  all_gather(s, {{x}, {}})   four shards of 2x3 along x  ->  one array 8x3, the same on every device
//
// Axes may be sub-axes, lists are major to minor, and several axes are one collective over their product. Operands are
// only read; results may be views of them.
#pragma once

#include <span>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

class Communicator {
 public:
  virtual ~Communicator() = default;

  // The position of every device along `axes`, row-major in list order: a scalar i32.
  virtual Shards axis_index(AxisSpan axes) = 0;
  // Reduction over the devices that differ along `axes` only, from the first to the last of each group in list order;
  // 16-bit floats accumulate in float32 and are rounded once. For max and min a NaN wins and +0 > -0.
  virtual Shards all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) = 0;
  // Dim d grows by the product of gather[d]: shards concatenated in row-major order of these axes.
  virtual Shards all_gather(const Shards& operand, std::span<const AxisList> gather) = 0;
  // all_reduce over `axes`, of which every device keeps its part of dim d along scatter[d] (a sublist of `axes`).
  virtual Shards reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                                Reducer reducer) = 0;
  // Every move splits its to_dim over its axes and gathers from_dim along them, one after another.
  virtual Shards all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) = 0;
  // The device with coordinates c along `to` receives from the one with coordinates c along `from`. Axes in only one of
  // the lists trade places too, so that this is a permutation of devices: from={x}, to={y} swaps x and y.
  virtual Shards permute(const Shards& operand, AxisSpan from, AxisSpan to) = 0;
  // Device i along `axes` receives from i - offset; without `wrap`, zeros where there is none.
  virtual Shards shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) = 0;
};

}  // namespace shardwise
