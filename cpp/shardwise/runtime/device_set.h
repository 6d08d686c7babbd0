// SPDX-License-Identifier: Apache-2.0
//
// The devices of a mesh that one process owns: all of them, or those at one position along some pinned axes. All
// processes of a run pin the same axes, each at a position of its own, so they share one plan.
//
//   mesh x=4, y=2          axes              owned devices (x, y)
//     DeviceSet{}          -                 all 8: the virtual mesh
//     DeviceSet{{x}, 2}    x pinned at 2     (2, 0) and (2, 1): process 2 of 4
//
// The shards of a process are indexed by the free axes only.
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/runtime/shards.h"

namespace shardwise {

struct DeviceSet {
  AxisList pinned = {};  // disjoint, major to minor
  int64_t position = 0;  // along `pinned`, row-major

  bool is_all() const { return pinned.empty(); }
  bool owns(const Mesh& mesh, int64_t logical_index) const;
  AxisList free(AxisSpan axes) const { return difference(axes, pinned); }
  Shards owned(const Shards& all) const;  // of the shards of all devices
  // The position along `axes` of the owned device at `index` along the free axes `grid`, whose other digits are 0.
  int64_t position_along(AxisSpan axes, AxisSpan grid, int64_t index) const;

  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
};

// The axes that a run in `processes` processes pins: from the major axis on, the largest part of each by which the
// remaining count is divisible. Throws MeshError, naming the counts that fit, unless they divide the devices.
//
//   x=4, y=2:  2 -> {"x":(1)2}    4 -> {"x"}    8 -> {"x", "y"}        x=3, y=2:  2 -> {"y"}
AxisList pinned_axes(const Mesh& mesh, int64_t processes);

// A process owns whole digits (mesh/digits.h). Throws UnsupportedError, naming the counts of ranks that fit, where a
// sub-axis cuts across them, as "x":(1)3 of 6 devices does in 2 ranks, which are along "x":(1)2.
void expect_uncut(std::string_view what, const Mesh& mesh, AxisSpan pinned, AxisSpan axes);

// The position along `pinned` of each process: positions ordered by the smallest id of their devices. So with a process
// per device, a device id is the number of its process.
std::vector<int64_t> process_positions(const Mesh& mesh, AxisSpan pinned);

}  // namespace shardwise
