// SPDX-License-Identifier: Apache-2.0
//
// The devices of a second mesh in the order of the main one. A run indexes all shards by the axes of the main mesh; for
// a collective of another mesh it takes them in the order of that mesh, and brings the result back. Nothing is copied.
//
//   main x=2, y=3        other u=3, v=2, ids [3, 0, 5, 1, 4, 2]      other_index[3] = 0: device 3 comes first there
#pragma once

#include <map>
#include <memory>

#include "shardwise/runtime/device_set.h"

namespace shardwise {

struct DeviceOrder {
  DeviceOrder(MeshPtr main_mesh, MeshPtr other_mesh);

  MeshPtr main, other;
  std::vector<int64_t> main_index;   // by logical index in `other`
  std::vector<int64_t> other_index;  // by logical index in `main`

  // The shards of all devices: indexed by the axes of `main`, then by all axes of `other`, and back.
  Shards in_other_order(const Shards& shards) const;
  Shards in_main_order(const Shards& shards) const;
};

using DeviceOrders = std::map<const Mesh*, std::shared_ptr<const DeviceOrder>>;

AxisList axes_of_several_devices(const Mesh& mesh);  // without those of size 1
// The logical index in `mesh` of the owned device at `index` along the free axes `grid`, which are all of them.
int64_t logical_index_of(const Mesh& mesh, const DeviceSet& devices, AxisSpan grid, int64_t index);

// The devices of this process as devices of the other mesh, for arguments and results there. A process with some
// devices, not one or all, has those of all: its devices are at no position of the other mesh.
DeviceSet devices_on_other_mesh(const DeviceOrder& order, const DeviceSet& devices);

}  // namespace shardwise
