// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/permute_axes.h"

#include <algorithm>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

void drop_common_ends(AxisList& from, AxisList& to) {
  const auto [from_first, to_first] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  from.erase(from.begin(), from_first);
  to.erase(to.begin(), to_first);
  // A common axis in the middle stays: "y" of {"x", "y", "z"} -> {"z", "y", "x"} is counted in other units if the sizes
  // of "x" and "z" differ.
  while (!from.empty() && !to.empty() && from.back() == to.back()) {
    from.pop_back();
    to.pop_back();
  }
}

}  // namespace

PermuteAxes permute_axes(std::span<const AxisList> from_dims, std::span<const AxisList> to_dims) {
  PermuteAxes axes;
  for (size_t d = 0; d < from_dims.size(); ++d) {
    AxisList from = from_dims[d], to = to_dims[d];
    erase_if(from, [](const AxisRef& ref) { return ref.size == 1; });
    erase_if(to, [](const AxisRef& ref) { return ref.size == 1; });
    check_internal(product(from) == product(to), "a permute must keep the shards of each dim");
    drop_common_ends(from, to);
    append(axes.from, from);
    append(axes.to, to);
  }
  // Axes that enter and axes that leave the dims trade places, so that the map is a permutation of all devices.
  const AxisList entering = difference(axes.to, axes.from), leaving = difference(axes.from, axes.to);
  append(axes.from, entering);
  append(axes.to, leaving);
  return axes;
}

}  // namespace shardwise
