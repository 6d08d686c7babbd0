// SPDX-License-Identifier: Apache-2.0
//
// Several meshes over the same devices: with other axes, or with the devices in another order.
//
//   main  x=4, y=2          other  p=2, q=4                    on_mesh(other {q}, main)    {"x":(2)2, "y"}
//   main  x=2, y=3          other  a=3, b=2                    on_mesh(other {a}, main)    none: 3·2 is no order of 2·3
//                                                              device_in(main, other, 1)   the device at x=0, y=1 is
//                                                                                          at a=0, b=1: 1
//
// A digit order of the main mesh is written with its sub-axes, so that no second mesh is left. Other shardings keep
// their mesh: each op is computed on one of them, and a value changes its mesh by an exchange.
#pragma once

#include <optional>

#include "shardwise/mesh/sharding.h"

namespace shardwise {

// Whether both have the same devices, in any order and with any axes. Ids are 0 .. device_count - 1 in each mesh.
inline bool are_over_same_devices(const Mesh& a, const Mesh& b) {
  return !a.is_empty() && !b.is_empty() && !a.is_maximal() && !b.is_maximal() && a.device_count() == b.device_count();
}

// The logical index in `to` of the device that has this logical index in `from`.
inline int64_t device_in(const Mesh& from, const Mesh& to, int64_t logical_index) {
  return to.logical_index(from.device_at(logical_index));
}

// The sub-axes of `main` along which a device has the position that it has along `ref` in `mesh`; none if there are
// none.
std::optional<AxisList> on_mesh(const Mesh& mesh, const AxisRef& ref, const Mesh& main);
// The same sharding of the same devices with the axes of `main`; none if an axis has no digits there, or if the meshes
// are not over the same devices.
std::optional<TensorSharding> on_mesh(const TensorSharding& sharding, const MeshPtr& main);

}  // namespace shardwise
