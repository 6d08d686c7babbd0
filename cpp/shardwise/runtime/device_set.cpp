// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/device_set.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {

bool DeviceSet::owns(const Mesh& mesh, int64_t logical_index) const {
  return shard_index(mesh, pinned, logical_index) == position;
}

Shards DeviceSet::owned(const Shards& all) const {
  if (is_all()) return all;
  AxisList axes = free(all.axes());
  std::vector<NdArray> list;
  // The pinned digits of all.axes() have the position of this process, the free ones count through i.
  for (int64_t i = 0; i < product(axes); ++i) list.push_back(all[position_along(all.axes(), axes, i)]);
  return {std::move(axes), std::move(list)};
}

int64_t DeviceSet::position_along(AxisSpan axes, AxisSpan grid, int64_t index) const {
  AxisList all = pinned;
  all.insert(all.end(), grid.begin(), grid.end());
  // x=4 pinned at 2 and grid {y=2}: index 1 is number 2 * 2 + 1 = 5 along {x, y}.
  return shardwise::position_along(axes, all, position * product(grid) + index);
}

namespace {

std::vector<int64_t> divisors_of(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return divisors;
}

// "1, 2 or 4 ranks"
std::string ranks_text(const std::vector<int64_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    text += str(i == 0 ? "" : i + 1 == counts.size() ? " or " : ", ", counts[i]);
  }
  return text + (counts.size() == 1 && counts[0] == 1 ? " rank" : " ranks");
}

bool is_uncut(const Mesh& mesh, AxisSpan pinned, AxisSpan axes) {
  const Digits digits(mesh, joined(AxisList(pinned.begin(), pinned.end()), axes));
  return digits.covered(pinned) == digits.touched(pinned);
}

}  // namespace

AxisList pinned_axes(const Mesh& mesh, int64_t processes) {
  mesh.expect_runnable("run");
  AxisList pinned;
  int64_t rest = processes;
  for (int axis = 0; axis < mesh.ndim() && rest > 1; ++axis) {
    // x=4, y=2 in 8 processes: gcd(4, 8) = 4 pins x, and the remaining 2 pin y. In 2 processes: "x":(1)2.
    const int64_t size = std::gcd(mesh.axis_size(axis), rest);
    if (size > 1) pinned.push_back({axis, 1, size});
    rest /= size;
  }
  if (rest == 1) return pinned;
  const int64_t devices = mesh.device_count();
  fail<MeshError>(
      "mesh", str("the ranks must divide the devices, ", devices, " in ", mesh.text()), str(processes, " ranks"),
      str("start ", ranks_text(divisors_of(devices)), ", or use a mesh with a multiple of ", processes, " devices"));
}

void expect_uncut(std::string_view what, const Mesh& mesh, AxisSpan pinned, AxisSpan axes) {
  if (is_uncut(mesh, pinned, axes)) return;
  const auto cuts =
      std::ranges::find_if(axes, [&](const AxisRef& axis) { return !is_uncut(mesh, pinned, {&axis, 1}); });
  const AxisSpan cutting = cuts == axes.end() ? axes : AxisSpan(&*cuts, 1);
  std::vector<int64_t> counts = divisors_of(mesh.device_count());
  std::erase_if(counts, [&](int64_t count) { return !is_uncut(mesh, pinned_axes(mesh, count), axes); });
  fail<UnsupportedError>(what, "no sub-axis may cut across the ranks",
                         str("ranks along ", axis_list_text(mesh, pinned), " and ", axis_list_text(mesh, cutting)),
                         str("start ", ranks_text(counts), ", or use other axis sizes"));
}

std::vector<int64_t> process_positions(const Mesh& mesh, AxisSpan pinned) {
  std::vector<int64_t> positions(static_cast<size_t>(product(pinned)));
  std::iota(positions.begin(), positions.end(), 0);
  if (mesh.device_ids().empty()) return positions;  // logical indices, and so ids, grow with the position
  // By the smallest id: if each process has one device, the id of a device is then the number of its process.
  std::vector<int64_t> first(positions.size(), std::numeric_limits<int64_t>::max());
  for (int64_t i = 0; i < mesh.device_count(); ++i) {
    int64_t& id = first[static_cast<size_t>(shard_index(mesh, pinned, i))];
    id = std::min(id, mesh.device_at(i));
  }
  std::ranges::sort(positions, {}, [&](int64_t position) { return first[static_cast<size_t>(position)]; });
  return positions;
}

}  // namespace shardwise
