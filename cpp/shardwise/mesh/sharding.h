// SPDX-License-Identifier: Apache-2.0
//
// TensorSharding: how the devices of a mesh hold one tensor.
//
// Each dim has a list of axes, major to minor; their product is its number of shards. Other axes hold copies, unless
// the value is *unreduced* over them: then the tensor is the sum (or another reducer) of what these devices hold. On a
// mesh x=4, y=2, z=2, a tensor of shape 8x6:
//
//   <@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>
//
//   dim 0 is in four shards of two rows, for good: a closed dim takes no further axes;
//   dim 1 is whole, but open: propagation may give it axes (not y, which must not shard this tensor);
//   z=0 and z=1 hold two addends of the value.
//
// A dim's size need not be a multiple of its shards: see tiling.h. A priority orders propagation (p0 first, and the
// default).
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
std::optional<Reducer> reducer_from_name(std::string_view name);  // nothing for "none" and unknown names

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
  static TensorSharding open(MeshPtr mesh, int64_t ndim);              // all dims open: what "no sharding" means

  int64_t ndim() const { return static_cast<int64_t>(dims.size()); }
  // Every device holds the whole value: no dim has axes and nothing is unreduced.
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

// ShardingError unless `sharding` is well formed and fits `shape`: as many dims, priorities >= 0 and none on empty
// closed dims, axes of the mesh, none used twice or overlapping, neighbours merged, replicated and unreduced sorted. A
// maximal mesh has no dims, whatever the shape. Beyond Shardy, digits that no single split of the axis has, such as
// (1)2 and (3)2 of 12, are refused: no group of devices would match them.
void verify(const TensorSharding& sharding, DimSpan shape);

// The same rules for lists of axes outside a sharding: those of a collective, per dim or in mesh order. `what` is what
// messages call a sorted list: "reduction".
void verify_axis_lists(const MeshPtr& mesh, std::span<const AxisList> lists);
void verify_sorted_axes(const MeshPtr& mesh, const AxisList& axes, std::string_view what);

// ShardingError when a dim's size is no multiple of its shards, for the few users who need that (JAX, StableHLO).
void verify_divisible(const TensorSharding& sharding, DimSpan shape);

// ShardingError when `sharding`, which is well formed, uses an axis that an enclosing manual computation has taken.
void verify_not_manual(const TensorSharding& sharding, AxisSpan manual);

}  // namespace shardwise
