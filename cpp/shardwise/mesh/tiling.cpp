// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/tiling.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// The block of every dim, checked against `shape`.
Dims blocks_of(const TensorSharding& sharding, DimSpan shape, DimSpan chosen) {
  const bool whole = sharding.mesh->is_maximal();
  if (!whole && sharding.dims.size() != shape.size()) {
    fail<ShardingError>("sharding", "it must have one entry per dim of the tensor",
                        str(sharding.dims.size(), " for ", shape.size(), " dims"));
  }
  if (!chosen.empty() && chosen.size() != shape.size()) {
    fail<ShardingError>("sharding", "there must be one block per dim",
                        str(chosen.size(), " for ", shape.size(), " dims"));
  }
  Dims blocks(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t shards = whole ? 1 : product(sharding.dims[dim].axes);
    const int64_t least = block_size(shape[dim], shards);
    blocks[dim] = chosen.empty() ? least : chosen[dim];
    if (blocks[dim] < least) {
      fail<ShardingError>("sharding", str(shards, " blocks must cover dim ", dim, " of size ", shape[dim]),
                          str("blocks of ", blocks[dim]), str("use at least ", least));
    }
  }
  return blocks;
}

LocalSlice slice_with(const TensorSharding& sharding, DimSpan shape, int64_t logical_index, const Dims& blocks) {
  const bool whole = sharding.mesh->is_maximal();
  LocalSlice slice{Dims(shape.size()), Dims(shape.size())};
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t shard = whole ? 0 : shard_index(*sharding.mesh, sharding.dims[dim].axes, logical_index);
    // shard * block may overflow for a block far larger than the dim. Then every shard but the first is empty.
    const bool behind = shard > 0 && blocks[dim] > shape[dim] / shard;
    slice.start[dim] = behind ? shape[dim] : shard * blocks[dim];
    slice.size[dim] = std::min(blocks[dim], shape[dim] - slice.start[dim]);
  }
  return slice;
}

}  // namespace

int64_t block_size(int64_t dim_size, int64_t shards) { return ceil_div(dim_size, shards); }

int64_t axis_coordinate(const Mesh& mesh, const AxisRef& ref, int64_t logical_index) {
  const int64_t size = mesh.axis_size(ref.axis);
  const int64_t coordinate = logical_index / mesh.axis_stride(ref.axis) % size;
  // The digit (2)2 of an axis of 8 at coordinate 5: size / next = 2, 5 / 2 % 2 = 0.
  return coordinate / (size / ref.next()) % ref.size;
}

int64_t shard_index(const Mesh& mesh, AxisSpan axes, int64_t logical_index) {
  int64_t index = 0;
  for (const AxisRef& ref : axes) index = index * ref.size + axis_coordinate(mesh, ref, logical_index);
  return index;
}

Dims local_shape(const TensorSharding& sharding, DimSpan shape, DimSpan blocks) {
  return blocks_of(sharding, shape, blocks);
}

LocalSlice slice_of(const TensorSharding& sharding, DimSpan shape, int64_t logical_index, DimSpan blocks) {
  if (logical_index < 0 || logical_index >= sharding.mesh->device_count()) {
    fail<MeshError>("mesh " + sharding.mesh->reference(),
                    "a logical index must be from 0 to " + std::to_string(sharding.mesh->device_count() - 1),
                    std::to_string(logical_index));
  }
  return slice_with(sharding, shape, logical_index, blocks_of(sharding, shape, blocks));
}

std::vector<LocalSlice> slices(const TensorSharding& sharding, DimSpan shape, DimSpan blocks) {
  // Checked once, not once for each device.
  const Dims checked = blocks_of(sharding, shape, blocks);
  std::vector<LocalSlice> all;
  all.reserve(static_cast<size_t>(sharding.mesh->device_count()));
  for (int64_t i = 0; i < sharding.mesh->device_count(); ++i) all.push_back(slice_with(sharding, shape, i, checked));
  return all;
}

}  // namespace shardwise
