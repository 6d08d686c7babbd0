// SPDX-License-Identifier: Apache-2.0
//
// Placement: which part of a global value each device of a mesh holds.
//
// A sharding is what an annotation asks for; a placement is what a partitioned program has. It fixes the rows of each
// shard: shard i of a dim with block b holds the rows [i*b, min((i+1)*b, size)), possibly none. 17 rows on x=4, y=2:
//
//   <@mesh, [{"x", "y"}: 3]>      8 shards of 3 rows: [0,3) [3,6) … [15,17), and two empty ones
//   <@mesh, [{"x"}: 5]>           what placement_of gives for the sharding [{"x"}]: ceil(17 / 4) rows
//   <@mesh, [{"x"}: 6]>           the first one after its minor axis y is gathered: pairs of shards of 3 rows
//
// Any block of at least ceil(size / shards) is possible. Keeping 6 makes the gather one collective; going on to 5 would
// move rows between neighbours. Devices that differ only along axes that are in no dim hold copies, unless the value is
// unreduced over these axes: then each holds an addend (or another reducer's part) of the block. If one device has each
// element and the others have the exact neutral element of a sum, the value is owned:
//
//   %1 = stablehlo.dynamic_slice %0, %i, sizes = [1]      one of x=8 devices has the row, the others have -0
//   <@mesh, [{}: 1], unreduced=owned{"x"}>                it may be received as bits, so that NaNs keep their payload
#pragma once

#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

struct DimPlacement {
  AxisList axes;      // major to minor; empty: not sharded
  int64_t block = 0;  // rows of a shard, padding included; the whole dim where it is not sharded
  friend bool operator==(const DimPlacement&, const DimPlacement&) = default;
};

struct Placement {
  MeshPtr mesh;
  std::vector<DimPlacement> dims;
  AxisList unreduced;                // in mesh order
  Reducer reducer = Reducer::kNone;  // kNone exactly when nothing is unreduced
  bool is_owned = false;             // only of sums

  int64_t ndim() const { return static_cast<int64_t>(dims.size()); }
  int64_t shard_count(size_t dim) const { return product(dims[dim].axes); }
  Dims local_shape() const;  // the blocks
  std::vector<AxisList> dim_axes() const;
  AxisList axes() const;                         // of all dims, and unreduced
  bool is_fully_replicated() const;              // every device holds the whole value
  bool has_default_blocks(DimSpan shape) const;  // ceil(size / shards) in every dim

  friend bool operator==(const Placement& a, const Placement& b);
};

size_t hash_value(const Placement& placement);

// The placement that a sharding stands for, closed, of a value of this shape. Blocks are ceil(size / shards) unless
// given; on a maximal mesh the one device holds the whole value.
Placement placement_of(const TensorSharding& sharding, DimSpan shape, DimSpan blocks = {});
Placement replicated_placement(MeshPtr mesh, DimSpan shape);
TensorSharding sharding_of(const Placement& placement);  // closed; does not tell the blocks

// ShardingError unless the sharding is well formed and fits `shape`, and the blocks cover it.
void verify(const Placement& placement, DimSpan shape);

}  // namespace shardwise
