// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/device_set.h"

#include "shardwise/mesh/tiling.h"

namespace shardwise {

bool DeviceSet::owns(const Mesh& mesh, int64_t logical_index) const {
  return shard_index(mesh, pinned, logical_index) == position;
}

Shards DeviceSet::owned(const Shards& all) const {
  if (is_all()) return all;
  AxisList axes = free(all.axes());
  std::vector<NdArray> list;
  for (int64_t i = 0; i < product(axes); ++i) list.push_back(all[position_along(all.axes(), axes, i)]);
  return {std::move(axes), std::move(list)};
}

int64_t DeviceSet::position_along(AxisSpan axes, AxisSpan grid, int64_t index) const {
  AxisList all = pinned;
  all.insert(all.end(), grid.begin(), grid.end());
  return shardwise::position_along(axes, all, position * product(grid) + index);
}

}  // namespace shardwise
