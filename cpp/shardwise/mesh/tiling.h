// SPDX-License-Identifier: Apache-2.0
//
// Which slice of a tensor each device holds.
//
// A dim of size n in s shards is cut into blocks of b = ceil(n / s), or of a larger block that the caller chose. Shard
// i holds [i*b, min((i+1)*b, n)): the last ones may be shorter, or empty. On devices every shard is stored as a whole
// block, so that one program fits all; what lies behind the shard's end is padding.
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

// The part of a tensor that one device holds. The size is without padding and may be 0 (then start is the dim's size).
struct LocalSlice {
  Dims start;
  Dims size;
  friend bool operator==(const LocalSlice&, const LocalSlice&) = default;
};

int64_t block_size(int64_t dim_size, int64_t shards);  // ceil

// `logical_index` is a device's position in the mesh (Mesh::logical_index of its id).
int64_t axis_coordinate(const Mesh& mesh, const AxisRef& ref, int64_t logical_index);
int64_t shard_index(const Mesh& mesh, AxisSpan axes, int64_t logical_index);

// The block of every dim; the functions below take such a list where the caller chose larger ones. An empty list means
// block_size everywhere; ShardingError for one that does not cover its dim.
Dims local_shape(const TensorSharding& sharding, DimSpan shape, DimSpan blocks = {});

// A device of a maximal mesh holds everything.
LocalSlice slice_of(const TensorSharding& sharding, DimSpan shape, int64_t logical_index, DimSpan blocks = {});
std::vector<LocalSlice> slices(const TensorSharding& sharding, DimSpan shape, DimSpan blocks = {});  // by logical index

}  // namespace shardwise
