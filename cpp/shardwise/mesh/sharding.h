// SPDX-License-Identifier: Apache-2.0
//
// TensorSharding: how a tensor is laid out on a mesh.
//
// Each dim has a list of axes, major to minor; their product is the dim's number of shards. The tensor is replicated
// over all other axes, except over its *unreduced* axes: there it is the sum (or another reduction) of the devices'
// values. On a mesh x=4, y=2, z=2, a tensor of shape 8x6:
//
//   <@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>
//
//   dim 0 is closed, in four shards of two rows: propagation adds no axes;
//   dim 1 is unsharded, but open: propagation may add axes (but not y, which must not shard this tensor);
//   z=0 and z=1 hold two addends of the value.
//
// The size of a dim need not be a multiple of its shards: see tiling.h. A priority orders propagation; p0 comes first
// and is the default.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/mesh/axis.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {

enum class Reducer : uint8_t { kNone, kSum, kProd, kMax, kMin, kAnd, kOr };
std::string_view name(Reducer reducer);                           // "none", "sum", "prod", "max", "min", "and", "or"
std::optional<Reducer> reducer_from_name(std::string_view name);  // none for "none" and unknown names

struct DimSharding {
  AxisList axes;
  bool open = false;
  std::optional<int64_t> priority;
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};

struct TensorSharding {
  MeshPtr mesh;
  std::vector<DimSharding> dims;
  AxisList replicated;               // axes that must not shard this tensor, in mesh order
  AxisList unreduced;                // axes over which a reduction is pending, in mesh order
  Reducer reducer = Reducer::kNone;  // of the unreduced axes (see pending_reducer); kNone there means sum

  static TensorSharding fully_replicated(MeshPtr mesh, int64_t ndim);  // all dims closed, no axes
  static TensorSharding open(MeshPtr mesh, int64_t ndim);              // all dims open: equivalent to no sharding

  int64_t ndim() const { return static_cast<int64_t>(dims.size()); }
  // True when every device holds the whole value: no dim has axes, and nothing is unreduced.
  bool is_fully_replicated() const;
  int64_t shard_count(int64_t dim) const { return product(dims[static_cast<size_t>(dim)].axes); }
  // kNone exactly when nothing is unreduced.
  Reducer pending_reducer() const;

  TensorSharding closed() const;              // a copy whose dims are all closed
  TensorSharding without_priorities() const;  // a copy
  AxisList axes_used() const;                 // of dims, replicated and unreduced; sorted and merged
  AxisList axes_sharding() const;             // of the dims; sorted and merged

  friend bool operator==(const TensorSharding& a, const TensorSharding& b);
};

size_t hash_value(const TensorSharding& sharding);

// Throws ShardingError unless `sharding` is well formed and fits `shape`: one entry per dim, priorities >= 0 and none
// on empty closed dims, axes of the mesh, no axis used twice or overlapping, neighbors merged, replicated and unreduced
// axes sorted. A maximal mesh has no dims, whatever the shape. Unlike Shardy, this also rejects sub-axes that no single
// split of the axis has, such as (1)2 and (3)2 of 12, because no group of devices matches them.
void verify(const TensorSharding& sharding, DimSpan shape);

// Applies the same rules to lists of axes outside a sharding: those of a collective, per dim or in mesh order. `what`
// names a sorted list in messages: "reduction".
void verify_axis_lists(const MeshPtr& mesh, std::span<const AxisList> lists);
void verify_sorted_axes(const MeshPtr& mesh, const AxisList& axes, std::string_view what);

// Throws ShardingError when a dim's size is not a multiple of its shards. Few callers need that (JAX, StableHLO).
void verify_divisible(const TensorSharding& sharding, DimSpan shape);

}  // namespace shardwise
