// SPDX-License-Identifier: Apache-2.0
//
// The groups of StableHLO's collectives, as rows along the manual axes around them.
//
//   manual axes x=2, y=4
//   replica_groups = [[0, 4], [1, 5], [2, 6], [3, 7]]      axes {x}, order [x], size 2
//   replica_groups = [[0, 4, 1, 5, 2, 6, 3, 7]]            axes {x, y}, order [y, x], size 8
//   replica_groups = [[0, 5], [1, 4], [2, 7], [3, 6]]      axes {x, y}, rows [0, 5, 1, 4, 2, 7, 3, 6], size 2
//
//   replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [y]>        axes {y}, order [y], size 4
//   replica_groups = [[0, 2], [1, 3]], shardwise.along = … axes = [y]                    positions along y, for each x
//
// Other groups list partitions. Along the free axes of a mesh all groups must be alike, because a region that is
// partitioned automatically has no place along these.
#pragma once

#include <vector>

#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

struct RowGroups {
  AxisSet axes = 0;           // along which the rows of a group differ
  std::vector<size_t> order;  // these axes in the order of the members, major to minor; empty for rows
  Dims rows;                  // groups that are no axes: all rows along `axes`, group by group
  int64_t size = 1;           // rows in a group
};

// Whether the ids of an op count the positions of the mesh, as in JAX's texts, and not its device ids: the attribute
// shardwise.positions.
bool names_positions(const OpView& op);

// Whether an op has the attribute use_global_device_ids. The ids of others name partitions if they have a channel.
enum class GroupIds : uint8_t { kGlobalIfAttribute, kPartitions };

// Throws UnsupportedError if the groups do not match manual axes, and ShardingError for invalid ids.
RowGroups read_groups(const OpView& op, const BatchAxes& axes, GroupIds ids);

// Whether the groups that a collective lists are none of these axes, nor all of them, though parts of the axes may be.
bool lists_other_groups(const OpView& op, const BatchAxes& axes);

// A permutation: along `axes`, row i is the old row sources[i], or zeros where that is -1.
struct RowMoves {
  AxisSet axes = 0;
  std::vector<size_t> order;  // major to minor
  Dims sources;
};
RowMoves read_moves(const OpView& op, const BatchAxes& axes);

}  // namespace shardwise
