// SPDX-License-Identifier: Apache-2.0
//
// The only header that includes xtensor: items along one stride of memory, as an xtensor view.
//
//   auto to = xtensor_line(target, 4);                          // 4 items in a row
//   xt::noalias(to) = xtensor_line(source, 4, -2);              // source[0], source[-2], source[-4], source[-6]
//   to.fill(1.0F);
//
// One dim only: xtensor needs 2 ns per item for several dims, but is as fast as a plain loop for one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>

namespace shardwise {

using LineShape = std::array<std::size_t, 1>;

template <class T>
auto xtensor_line(T* data, int64_t size) {
  return xt::adapt(data, static_cast<std::size_t>(size), xt::no_ownership(), LineShape{static_cast<std::size_t>(size)});
}

// `stride` is in items. The view accesses only these items; the size is xtensor's own bookkeeping.
template <class T>
auto xtensor_line(T* data, int64_t size, int64_t stride) {
  return xt::adapt(data, static_cast<std::size_t>(size), xt::no_ownership(), LineShape{static_cast<std::size_t>(size)},
                   std::array<std::ptrdiff_t, 1>{stride});
}

}  // namespace shardwise
