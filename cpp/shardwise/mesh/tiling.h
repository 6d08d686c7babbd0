// SPDX-License-Identifier: Apache-2.0
//
// Which slice of a tensor each device holds.
//
// A dim of size n in s shards is cut into blocks of b = ceil(n / s), or of a larger block that the caller chose. Shard
// i holds [i*b, min((i+1)*b, n)), so the last shards may be shorter, or empty. Devices store every shard as a whole
// block, so that one program fits all devices; the rest of the block is padding.
//
//   mesh <["x"=4]>, sharding [{"x"}], shape {5}:   block 2, shards [0,2) [2,4) [4,5) [5,5)
//   local_shape(sharding, shape)                   // {2}
//   slice_of(sharding, shape, 2).size              // {1}
//
// The shard of a device along the axes {a, b, …} is the row-major number of its coordinates along them. The coordinate
// along a sub-axis is a digit of the axis coordinate c: c / (axis size / next) % size.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

// The part of a tensor that one device holds. The size excludes padding and may be 0; start is then the dim's size.
struct LocalSlice {
  Dims start;
  Dims size;
  friend bool operator==(const LocalSlice&, const LocalSlice&) = default;
};

int64_t block_size(int64_t dim_size, int64_t shards);  // ceil

// `logical_index` is a device's position in the mesh (Mesh::logical_index of its id).
int64_t axis_coordinate(const Mesh& mesh, const AxisRef& ref, int64_t logical_index);
int64_t shard_index(const Mesh& mesh, AxisSpan axes, int64_t logical_index);

// The block of every dim. Callers that chose larger blocks pass them to the functions below. An empty list means
// block_size everywhere. Throws ShardingError for a block that does not cover its dim.
Dims local_shape(const TensorSharding& sharding, DimSpan shape, DimSpan blocks = {});

// A device of a maximal mesh holds everything.
LocalSlice slice_of(const TensorSharding& sharding, DimSpan shape, int64_t logical_index, DimSpan blocks = {});
std::vector<LocalSlice> slices(const TensorSharding& sharding, DimSpan shape, DimSpan blocks = {});  // by logical index

}  // namespace shardwise
