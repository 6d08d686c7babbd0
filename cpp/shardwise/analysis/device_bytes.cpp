// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/device_bytes.h"

#include <algorithm>
#include <functional>

#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"

namespace shardwise {
namespace {

// Elements by position; axes that matter. No function: all devices receive the same.
struct ByPosition {
  AxisList used = {};
  std::function<double(const Coordinates&)> elements = {};
  std::function<double(int64_t)> on_mesh = {};  // instead: by logical index in the mesh of the collective
};

// All parts are equal, except the last ones.
ByPosition of_all_reduce(const OpView& op) {
  const AxisList axes = collective_axes(op);
  const int64_t group = product(axes);
  std::vector<int64_t> sizes;  // of the operands
  bool is_even = true;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    sizes.push_back(element_count(op.operand_type(i).shape));
    is_even = is_even && sizes.back() % group == 0;
  }
  if (is_even) return {};
  return {axes, [=](const Coordinates& device) {
            double received = 0;
            for (const int64_t elements : sizes) {
              const int64_t part = ceil_div(elements, group);
              const int64_t own = std::clamp<int64_t>(elements - device.at(axes) * part, 0, part);
              // The reduce-scatter brings (group - 1)·own addends, and the all-gather elements - own.
              received += static_cast<double>(elements + (group - 2) * own);
            }
            return received;
          }};
}

// The positions that a permute leaves in place receive nothing.
ByPosition of_permute(const OpView& op) {
  const auto tile = static_cast<double>(element_count(op.operand_type(0).shape));
  const PermuteAttrs permute = permute_attrs(op);
  if (permute.axes.empty()) {
    const PermuteAttrs swap = completed(permute);
    // Both lists have the same digits, so that a device at equal positions is its own sender.
    return {joined(swap.from, swap.to),
            [=](const Coordinates& device) { return device.at(swap.from) == device.at(swap.to) ? 0 : tile; }};
  }
  // A shift that wraps gives each device a sender, so all receive a tile; but after a full turn each is its own.
  if (permute.wrap && sender_of(permute, 0) != 0) return {};
  return {permute.axes, [=](const Coordinates& device) {
            const int64_t position = device.at(permute.axes);
            // The devices at one end have no sender and take zeros.
            return sender_of(permute, position).value_or(position) == position ? 0 : tile;
          }};
}

ByPosition of_exchange(const OpView& op) {
  const ExchangeMap map = exchange_map(op);
  if (map.is_across_meshes()) {
    const auto received = [map](int64_t device) { return static_cast<double>(received_across_meshes(map, device)); };
    // `elements` is set, because device_bytes takes a missing one for equal bytes on all devices.
    return {.used = {}, .elements = [](const Coordinates&) { return 0.0; }, .on_mesh = received};
  }
  return {map.axes(), [=](const Coordinates& device) { return elements_at(map, device); }};
}

ByPosition by_position(const OpView& op) {
  switch (op.def().traits.collective) {
    case CollectiveKind::kAllReduce: return of_all_reduce(op);
    case CollectiveKind::kCollectivePermute: return of_permute(op);
    case CollectiveKind::kExchange: return of_exchange(op);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kNone:
    case CollectiveKind::kAllSlice:
    case CollectiveKind::kToUnreduced:
    case CollectiveKind::kAxisIndex: break;
  }
  return {};
}

// A collective on a mesh that orders the devices of `main` otherwise.
DeviceBytes by_device(const ByPosition& counted, const MeshPtr& main, const Mesh& mesh, double item) {
  DeviceBytes result{.mesh = main, .axes = all_axes(*main), .bytes = {}, .sum = 0};
  const AxisList axes = all_axes(mesh);
  Coordinates device(axes);
  for (int64_t i = 0; i < main->device_count(); ++i) {
    const int64_t index = device_in(*main, mesh, i);
    device.set(axes, index);
    const double elements = counted.on_mesh != nullptr ? counted.on_mesh(index) : counted.elements(device);
    result.bytes.push_back(elements * item);
    result.sum += result.bytes.back();
  }
  return result;
}

}  // namespace

DeviceBytes device_bytes(const OpView& collective, double most_bytes, int64_t most_positions) {
  const MeshPtr mesh = collective_mesh(collective);
  const auto devices = static_cast<double>(mesh->device_count());
  const auto item = static_cast<double>(item_size(collective.operand_type(0).dtype));
  DeviceBytes result{.mesh = mesh, .axes = {}, .bytes = {}, .sum = devices * most_bytes};
  const ByPosition counted = by_position(collective);
  if (!counted.elements) return result;
  const MeshPtr& main = collective.module().meshes.front();
  if (counted.on_mesh != nullptr || !main->same_devices(*mesh)) {
    if (mesh->device_count() > most_positions) return result;
    return by_device(counted, main, *mesh, item);
  }
  Coordinates device(counted.used);
  const AxisList grid = device.grid();
  const int64_t positions = product(grid);
  if (positions > most_positions) return result;
  double sum = 0;
  for (int64_t i = 0; i < positions; ++i) {
    device.set_grid(i);
    result.bytes.push_back(counted.elements(device) * item);
    sum += result.bytes.back();
  }
  result.axes = grid;
  // So many devices are at each position: they differ along other axes only.
  result.sum = sum * devices / static_cast<double>(positions);
  return result;
}

}  // namespace shardwise
