// SPDX-License-Identifier: Apache-2.0
//
// The type of a value of a partitioned program: its global type, and which part of it each device holds.
//
//   const PlacedType placed{tensor<17x4xf32>, <@mesh, [{"x"}: 5, {}: 4]>};      // x=4
//   const LayoutView layout(context, placed);
//   layout.dim(0)                   // {.size = 17, .axes = {"x"}, .shards = 4, .block = 5}
//   layout.local_shape()            // {5, 4}
//   layout.is_uneven()              // true: the last shard has 2 rows of data and 3 of padding
//   layout.unreduced()              // {}: devices hold rows, not addends
//   local_type(context, placed)     // tensor<5x4xf32>
#pragma once

#include <vector>

#include "shardwise/ir/context.h"

namespace shardwise {

// The layout of one dim of a global value: shard i of `axes` holds rows [i·block, min((i+1)·block, size)).
struct DimLayout {
  int64_t size = 0;    // global
  AxisList axes;       // major to minor; empty: not sharded
  int64_t shards = 1;  // product of axes
  int64_t block = 0;   // the local size: ≥ ceil(size / shards), or size when not sharded
  bool uneven() const { return size % shards != 0 || size / shards != block; }
  friend bool operator==(const DimLayout&, const DimLayout&) = default;
};

struct PlacedType {
  TypeId type;                 // of the global value
  PlacementId placement = {};  // none: every device holds the whole value
  friend bool operator==(const PlacedType&, const PlacedType&) = default;
};

TypeId local_type(Context& context, PlacedType placed);  // of a device's part

// Reads a placed type together with its context. Cheap to copy; references to axes stay valid without it.
class LayoutView {
 public:
  LayoutView(const Context& context, PlacedType placed);

  size_t ndim() const { return shape_->size(); }
  DimLayout dim(size_t d) const;
  std::vector<DimLayout> dims() const;
  const AxisList& axes(size_t d) const;
  int64_t block(size_t d) const;
  Dims local_shape() const;  // the blocks
  bool is_uneven() const;    // some dim is: there is padding
  const AxisList& unreduced() const;
  Reducer reducer() const;  // kNone exactly when nothing is unreduced
  bool is_owned() const;    // unreduced, and one device has each element (mesh/placement.h)

 private:
  const Dims* shape_;
  const Placement* placement_;  // null: whole
};

}  // namespace shardwise
