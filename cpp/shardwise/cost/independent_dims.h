// SPDX-License-Identifier: Apache-2.0
//
// Groups the dims of an exchange that share axes, whose positions depend on each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardwise {

// `shares(a, b)` is whether two dims share axes. A dim on {"x", "y"} joins the groups of "x" and of "y" into one.
template <class Shares>
std::vector<std::vector<size_t>> independent_dims(size_t ndim, Shares&& shares) {
  std::vector<std::vector<size_t>> groups;
  for (size_t d = 0; d < ndim; ++d) {
    std::vector<size_t> dims{d};
    for (size_t g = groups.size(); g-- > 0;) {  // from the back, because groups are erased
      if (std::ranges::none_of(groups[g], [&](size_t other) { return shares(d, other); })) continue;
      dims.insert(dims.end(), groups[g].begin(), groups[g].end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
    }
    groups.push_back(std::move(dims));
  }
  return groups;
}

}  // namespace shardwise
