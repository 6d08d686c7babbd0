// SPDX-License-Identifier: Apache-2.0
//
// ShardedArray: a global array, stored as the shards of a mesh's devices.
//
//   ShardedArray a = scatter(whole, sharding);   // whole: f32[10, 4]; sharding <["x"=4]>, [{"x"}, {}]
//   a.shards().count()                           // 4 blocks of 3 rows: three views of `whole` and a padded copy
//   a.shard(3)                                   // f32[1, 4]: row 9, without padding
//   a.slice(3)                                   // start {9, 0}, size {1, 4}
//   gather(a)                                    // f32[10, 4]
//
// A process that owns some of the devices holds their shards only; a communicator gathers the global array.
//
// Nothing here writes the arrays it was given. Devices are named by id (Mesh::device_at), not by position.
#pragma once

#include "shardwise/mesh/placement.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/device_set.h"

namespace shardwise {

enum class PaddingFill : uint8_t { kZero, kPoison };  // poison: NaN, or bytes 0xA5

struct ArrayLayout {
  TensorSharding sharding;  // may have replicated axes and priorities
  Placement placement;      // the same without these, with the blocks: the shape of every shard, padding included
};
// Arrays share their layouts, because each run makes an array for every argument and result.
using ArrayLayoutPtr = std::shared_ptr<const ArrayLayout>;

// Blocks are the smallest unless given.
ArrayLayoutPtr array_layout(TensorSharding sharding, DimSpan shape, DimSpan blocks = {});

class ShardedArray {
 public:
  ShardedArray() = default;
  // ShapeError unless the shards are whole blocks.
  ShardedArray(DType dtype, Dims shape, ArrayLayoutPtr layout, Shards shards, DeviceSet devices = {});

  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  int64_t ndim() const { return static_cast<int64_t>(shape_.size()); }
  const ArrayLayoutPtr& layout() const { return layout_; }
  const TensorSharding& sharding() const { return layout_->sharding; }
  const Placement& placement() const { return layout_->placement; }
  const Mesh& mesh() const { return *placement().mesh; }
  const Shards& shards() const { return shards_; }
  const DeviceSet& devices() const { return devices_; }  // whose shards these are
  Shards owned_by(const DeviceSet& devices) const;       // a part of them

  LocalSlice slice(int64_t device) const;  // which part of the global array the device holds
  NdArray shard(int64_t device) const;     // that part of an owned device: a view without padding
  NdArray padded_shard(int64_t device) const;

 private:
  DType dtype_ = DType::kF32;
  Dims shape_;
  ArrayLayoutPtr layout_;
  Shards shards_;
  DeviceSet devices_;
};

// Shards inside `array` are views; others are padded copies. With an unreduced sharding, the first device of every
// group gets the array, and the others get the reducer's neutral element.
ShardedArray scatter(const NdArray& array, const TensorSharding& sharding, DimSpan blocks = {},
                     PaddingFill fill = PaddingFill::kZero);

ShardedArray scatter(const NdArray& array, const Placement& placement, PaddingFill fill = PaddingFill::kZero);

// The global array: a view when the shards are adjacent in one buffer, else a copy. Completes pending reductions.
NdArray gather(const ShardedArray& array);

// The same in several processes, each of which gets the global array. All of them must call it.
NdArray gather(const ShardedArray& array, DeviceCommunicator& communicator);

// The array of a process from the rows that its devices hold, in the order of the global array: of 8 rows on x=4, y=2,
// a process at y=1 gives rows 1, 3, 5, 7 for the sharding {"x", "y"}. ShapeError for a part of another shape.
ShardedArray from_own_part(const NdArray& part, const Dims& shape, const TensorSharding& sharding,
                           const DeviceSet& devices);

// The axes along which the shards of such an array differ: those of its dims, and the unreduced ones.
AxisList varying_axes(const Placement& placement);

}  // namespace shardwise
