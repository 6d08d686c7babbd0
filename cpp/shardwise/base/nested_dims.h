// SPDX-License-Identifier: Apache-2.0
//
// Orders and merges the dims of a loop over strided memory, in place:
//
//   sort_and_merge(dims, stride, nests)    // (size 2, stride 12), (size 3, stride 4)  →  (size 6, stride 4)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace shardwise {

// Sorts by descending magnitude of `stride(dim)`, because a reversed dim runs along memory, too; then merges each dim
// into the one before it if `nests(outer, inner)`. A dim has a `size`; the other fields of the inner one remain.
template <class Dim, class Stride, class Nests>
void sort_and_merge(std::vector<Dim>& dims, Stride&& stride, Nests&& nests) {
  if (dims.size() > 1) {  // a stable sort allocates
    std::ranges::stable_sort(dims,
                             [&](const Dim& a, const Dim& b) { return std::abs(stride(a)) > std::abs(stride(b)); });
  }
  size_t count = 0;
  for (const Dim& dim : dims) {
    if (count > 0 && nests(dims[count - 1], dim)) {
      const int64_t size = dims[count - 1].size * dim.size;
      dims[count - 1] = dim;
      dims[count - 1].size = size;
    } else {
      dims[count++] = dim;
    }
  }
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(count), dims.end());
}

}  // namespace shardwise
