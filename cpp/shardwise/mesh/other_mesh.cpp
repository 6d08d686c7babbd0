// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/other_mesh.h"

#include <algorithm>
#include <numeric>

#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

// The axis whose positions are `unit` or more apart in the logical index, up to its size; and how many of its positions
// are left from there on.
struct AxisAt {
  int axis = 0;
  int64_t room = 1;
};

std::optional<AxisAt> axis_at(const Mesh& mesh, int64_t unit) {
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const int64_t stride = mesh.axis_stride(axis), size = mesh.axis_size(axis);
    // A digit moves a device by `stride` times the sizes of the more minor digits of its axis. Axis x=4 of x=4, y=2 has
    // stride 2: unit 4 is its major digit (1)2, and unit 2 is all of it, or (2)2.
    if (unit < stride || unit >= stride * size) continue;
    if (unit % stride != 0 || size % (unit / stride) != 0) return std::nullopt;
    return AxisAt{axis, size / (unit / stride)};
  }
  return std::nullopt;
}

// For two meshes of one device order: digits of the logical index.
std::optional<AxisList> digits_of_index(int64_t unit, int64_t size, const Mesh& main) {
  AxisList axes;
  while (size > 1) {  // minor digits first
    const auto found = axis_at(main, unit);
    const int64_t count = found ? std::gcd(found->room, size) : 1;
    if (count == 1) return std::nullopt;
    axes.insert(axes.begin(), {found->axis, found->room / count, count});
    unit *= count;
    size /= count;
  }
  AxisList merged;
  append_merged(merged, axes);
  return merged;
}

// The digit of `main` whose unit is `stride` in the logical index, with `steps[c]` = c·stride for as many c as
// possible.
std::optional<AxisRef> digit_at(const Mesh& main, int64_t stride, std::span<const int64_t> steps) {
  const auto found = axis_at(main, stride);
  if (!found) return std::nullopt;
  const auto count = static_cast<int64_t>(steps.size());
  for (int64_t size = std::min(found->room, count); size > 1; --size) {
    if (found->room % size != 0 || count % size != 0) continue;
    bool is_even = true;
    for (int64_t c = 0; is_even && c < size; ++c) is_even = steps[static_cast<size_t>(c)] == c * stride;
    if (is_even) return AxisRef{found->axis, found->room / size, size};
  }
  return std::nullopt;
}

bool is_same_position(const Mesh& mesh, const AxisRef& ref, const Mesh& main, const AxisList& axes) {
  for (int64_t i = 0; i < main.device_count(); ++i) {
    if (shard_index(main, axes, i) != shard_index(mesh, {&ref, 1}, device_in(main, mesh, i))) return false;
  }
  return true;
}

std::optional<AxisList> on_mesh(const Mesh& mesh, const AxisList& axes, const Mesh& main) {
  AxisList found;
  for (const AxisRef& ref : axes) {
    const auto digits = on_mesh(mesh, ref, main);
    if (!digits) return std::nullopt;
    append_merged(found, *digits);
  }
  return found;
}

}  // namespace

std::optional<AxisList> on_mesh(const Mesh& mesh, const AxisRef& ref, const Mesh& main) {
  const int64_t unit = mesh.axis_stride(ref.axis) * (mesh.axis_size(ref.axis) / ref.next());
  if (mesh.device_ids() == main.device_ids()) return digits_of_index(unit, ref.size, main);
  // The index in `main` of the devices at each position along `ref`, from that of the first one on.
  const int64_t first = device_in(mesh, main, 0);
  std::vector<int64_t> steps;
  for (int64_t c = 0; c < ref.size; ++c) steps.push_back(device_in(mesh, main, c * unit) - first);
  AxisList axes;
  while (steps.size() > 1) {  // minor digits first
    const auto digit = digit_at(main, steps[1], steps);
    if (!digit) return std::nullopt;
    axes.insert(axes.begin(), *digit);
    std::vector<int64_t> rest;
    // The positions where this digit is 0 are counted by the digits that are more major.
    for (size_t c = 0; c < steps.size(); c += static_cast<size_t>(digit->size)) rest.push_back(steps[c]);
    steps = std::move(rest);
  }
  AxisList merged;
  append_merged(merged, axes);
  // The steps are those from one device. With arbitrary ids, they may be others elsewhere.
  return is_same_position(mesh, ref, main, merged) ? std::optional(std::move(merged)) : std::nullopt;
}

std::optional<TensorSharding> on_mesh(const TensorSharding& sharding, const MeshPtr& main) {
  const Mesh& mesh = *sharding.mesh;
  if (!are_over_same_devices(mesh, *main)) return std::nullopt;
  TensorSharding found = sharding;
  found.mesh = main;
  for (DimSharding& dim : found.dims) {
    auto axes = on_mesh(mesh, dim.axes, *main);
    if (!axes) return std::nullopt;
    dim.axes = std::move(*axes);
  }
  for (AxisList* list : {&found.replicated, &found.unreduced}) {
    auto axes = on_mesh(mesh, *list, *main);
    if (!axes) return std::nullopt;
    // Both lists are sets in mesh order, and `main` may order the digits otherwise.
    *list = sort_and_merge(*axes);
  }
  return found;
}

}  // namespace shardwise
