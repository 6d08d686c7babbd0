// SPDX-License-Identifier: Apache-2.0
//
// ShardedArray: a global array as the devices of a mesh hold it.
//
//   ShardedArray a = scatter(whole, sharding);   // whole: f32[10, 4]; sharding <["x"=4]>, [{"x"}, {}]
//   a.shards().count()                           // 4 blocks of 3 rows: three views of `whole` and a padded copy
//   a.shard(3)                                   // f32[1, 4]: row 9, without padding
//   a.slice(3)                                   // start {9, 0}, size {1, 4}
//   gather(a)                                    // f32[10, 4]
//
// Nothing here writes the arrays it was given. Devices are named by id (Mesh::device_at), not by position.
#pragma once

#include "shardwise/mesh/placement.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

enum class PaddingFill : uint8_t { kZero, kPoison };  // poison: NaN, or bytes 0xA5

class ShardedArray {
 public:
  ShardedArray() = default;
  // The shards are whole blocks (`blocks` is the local shape; empty: the smallest). ShapeError where they do not fit.
  ShardedArray(DType dtype, Dims shape, TensorSharding sharding, Dims blocks, Shards shards);

  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  int64_t ndim() const { return static_cast<int64_t>(shape_.size()); }
  const TensorSharding& sharding() const { return sharding_; }
  const Mesh& mesh() const { return *sharding_.mesh; }
  const Dims& blocks() const { return blocks_; }  // the shape of every shard, padding included
  const Shards& shards() const { return shards_; }
  bool is_uneven() const;  // some shard holds padding

  LocalSlice slice(int64_t device) const;  // which part of the global array the device holds
  NdArray shard(int64_t device) const;     // that part: a view without padding
  NdArray padded_shard(int64_t device) const;

 private:
  DType dtype_ = DType::kF32;
  Dims shape_;
  TensorSharding sharding_;
  Dims blocks_;
  Shards shards_;
};

// Shards are views of `array` where they lie inside it, and padded copies where not. An unreduced sharding puts the
// array on the first device of every group and the reducer's neutral element on the others.
ShardedArray scatter(const NdArray& array, const TensorSharding& sharding, DimSpan blocks = {},
                     PaddingFill fill = PaddingFill::kZero);

ShardedArray scatter(const NdArray& array, const Placement& placement, PaddingFill fill = PaddingFill::kZero);

// The global array: a view when the shards lie side by side in one buffer, else a copy; pending reductions are done.
NdArray gather(const ShardedArray& array);

// True when devices that should hold the same bytes do; a faithful run computes each apart.
bool replicas_agree(const ShardedArray& array);

// The axes along which the shards of such an array differ: those of its dims and the unreduced ones.
AxisList varying_axes(const TensorSharding& sharding);

}  // namespace shardwise
