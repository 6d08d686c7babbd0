// SPDX-License-Identifier: Apache-2.0
//
// Emits what the ops of a local program share: the position of a device, offsets, masks, and addends. They are ordinary
// ops:
//
//   rows of 17 in blocks of 5 along x = 4, padding to be 0
//     %0 = "shardwise.axis_index"() <{axes = {"x"}, mesh = @mesh}>
//     %1 = stablehlo.multiply %0, 5                          first row of this device: shard_offset
//     %2 = stablehlo.subtract 17, %1                         rows that it has
//     %3 = stablehlo.compare LT, iota, broadcast %2
//     %4 = stablehlo.select broadcast %3, %x, 0              masked
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/placement/placed_type.h"

namespace shardwise {

// Appends to the local program. Values that depend only on axes are created once, in the body of the function; regions
// capture them.
class LocalEmitter {
 public:
  // The builder's region is the body of a function now, and may be one inside it later.
  LocalEmitter(Builder& builder, MeshPtr mesh) : builder_(builder), in_body_(builder), mesh_(std::move(mesh)) {}

  Builder& builder() { return builder_; }
  const MeshPtr& mesh() const { return mesh_; }
  ValueId axis_index(const AxisList& axes);    // tensor<i32>
  ValueId shard_offset(const DimLayout& dim);  // tensor<i32>, or i64 where rows do not fit
  // Turns a value replicated along `axes` into unreduced parts: one device keeps it, the others hold the neutral
  // element of `reducer`. If `owned`, that element is exact, even next to a zero.
  ValueId as_parts(ValueId value, const AxisList& axes, Reducer reducer, bool owned);
  // `value` with `fill` in the padding of dim `dim`.
  ValueId masked(ValueId value, int64_t dim, const DimLayout& layout, Scalar fill);

 private:
  ValueId rows_inside(const DimLayout& layout);  // tensor<block x i1>

  Builder& in_body();  // at the location of the op at hand

  Builder& builder_;
  Builder in_body_;
  MeshPtr mesh_;
  std::map<AxisList, ValueId> axis_indices_;
  std::map<std::pair<AxisList, int64_t>, ValueId> offsets_;            // by axes and block
  std::map<std::tuple<AxisList, int64_t, int64_t>, ValueId> insides_;  // by axes, block and size
};

}  // namespace shardwise
