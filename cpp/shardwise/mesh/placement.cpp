// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/placement.h"

#include <algorithm>
#include <functional>

#include "shardwise/base/error.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {

Dims Placement::local_shape() const {
  Dims shape;
  shape.reserve(dims.size());
  for (const DimPlacement& dim : dims) shape.push_back(dim.block);
  return shape;
}

std::vector<AxisList> Placement::dim_axes() const {
  std::vector<AxisList> lists;
  lists.reserve(dims.size());
  for (const DimPlacement& dim : dims) lists.push_back(dim.axes);
  return lists;
}

AxisList Placement::axes() const { return joined(axes_of_dims(dims), unreduced); }

bool Placement::is_fully_replicated() const {
  return unreduced.empty() && std::ranges::all_of(dims, &AxisList::empty, &DimPlacement::axes);
}

bool Placement::has_default_blocks(DimSpan shape) const {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].block != block_size(shape[d], shard_count(d))) return false;
  }
  return true;
}

bool operator==(const Placement& a, const Placement& b) {
  // The mesh last: its comparison may read many device ids.
  return a.dims == b.dims && a.unreduced == b.unreduced && a.reducer == b.reducer && a.is_owned == b.is_owned &&
         equal(a.mesh, b.mesh);
}

size_t hash_value(const Placement& placement) {
  size_t hash = placement.mesh ? placement.mesh->hash() : 0;
  for (const DimPlacement& dim : placement.dims) {
    hash = hash_combine(hash, hash_value(dim.axes));
    hash = hash_combine(hash, std::hash<int64_t>{}(dim.block));
  }
  hash = hash_combine(hash, hash_value(placement.unreduced));
  hash = hash_combine(hash, static_cast<size_t>(placement.reducer));
  return hash_combine(hash, placement.is_owned ? 1 : 0);
}

Placement placement_of(const TensorSharding& sharding, DimSpan shape, DimSpan blocks) {
  Placement placement{.mesh = sharding.mesh,
                      .dims = std::vector<DimPlacement>(shape.size()),
                      .unreduced = sharding.unreduced,
                      .reducer = sharding.pending_reducer()};
  for (size_t d = 0; d < shape.size(); ++d) {
    DimPlacement& dim = placement.dims[d];
    if (d < sharding.dims.size()) dim.axes = sharding.dims[d].axes;  // a maximal mesh has no dims
    dim.block = blocks.empty() ? block_size(shape[d], product(dim.axes)) : blocks[d];
  }
  return placement;
}

// The mesh may be null here: a program without a mesh has whole values.
Placement replicated_placement(MeshPtr mesh, DimSpan shape) {
  Placement placement{.mesh = std::move(mesh), .dims = {}, .unreduced = {}};
  for (const int64_t size : shape) placement.dims.push_back({{}, size});
  return placement;
}

TensorSharding sharding_of(const Placement& placement) {
  TensorSharding sharding{.mesh = placement.mesh,
                          .dims = {},
                          .replicated = {},
                          .unreduced = placement.unreduced,
                          .reducer = placement.reducer};
  // Closed: after propagation nothing may add axes.
  for (const DimPlacement& dim : placement.dims) sharding.dims.push_back({dim.axes, false, {}});
  return sharding;
}

void verify(const Placement& placement, DimSpan shape) {
  const TensorSharding sharding = sharding_of(placement);
  verify(sharding, shape);
  if (placement.is_owned && placement.reducer != Reducer::kSum) {
    fail<ShardingError>("placement", "an owned value must be an unreduced sum", name(placement.reducer),
                        "leave out that it is owned");
  }
  // Called for its check that the blocks cover the dims.
  local_shape(sharding, shape, placement.local_shape());
}

}  // namespace shardwise
