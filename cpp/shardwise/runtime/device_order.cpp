// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/device_order.h"

#include "shardwise/mesh/other_mesh.h"

namespace shardwise {
namespace {

Shards reordered(const Shards& shards, AxisSpan from, AxisList to, const std::vector<int64_t>& places) {
  // The same array on all devices, in whichever order they are.
  if (shards.axes().empty()) return shards;
  const Shards all = shards.along(from);
  std::vector<NdArray> list;
  list.reserve(places.size());
  // places[i] is where the device that comes i-th in the new order is in the old one. Arrays are shared, not copied.
  for (const int64_t place : places) list.push_back(all[place]);
  return {std::move(to), std::move(list)};
}

}  // namespace

DeviceOrder::DeviceOrder(MeshPtr main_mesh, MeshPtr other_mesh)
    : main(std::move(main_mesh)), other(std::move(other_mesh)) {
  for (int64_t i = 0; i < main->device_count(); ++i) {
    // Tables, because the ids of a mesh may be in any order. Only programs with such a second mesh pay for them.
    main_index.push_back(device_in(*other, *main, i));
    other_index.push_back(device_in(*main, *other, i));
  }
}

Shards DeviceOrder::in_other_order(const Shards& shards) const {
  return reordered(shards, axes_of_several_devices(*main), axes_of_several_devices(*other), main_index);
}

Shards DeviceOrder::in_main_order(const Shards& shards) const {
  return reordered(shards, axes_of_several_devices(*other), axes_of_several_devices(*main), other_index);
}

AxisList axes_of_several_devices(const Mesh& mesh) {
  AxisList axes;
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    // Digits drop axes of size 1, so that no shards are indexed by them.
    if (mesh.axis_size(axis) > 1) axes.push_back(full_axis(mesh, axis));
  }
  return axes;
}

int64_t logical_index_of(const Mesh& mesh, const DeviceSet& devices, AxisSpan grid, int64_t index) {
  return devices.position_along(axes_of_several_devices(mesh), grid, index);
}

DeviceSet devices_on_other_mesh(const DeviceOrder& order, const DeviceSet& devices) {
  // Several devices of one process need not be at one position along axes of the other mesh. The process then has the
  // shards of all devices.
  if (product(devices.pinned) != order.main->device_count()) return {};
  const int64_t index = logical_index_of(*order.main, devices, {}, 0);
  return {.pinned = axes_of_several_devices(*order.other), .position = order.other_index[static_cast<size_t>(index)]};
}

}  // namespace shardwise
