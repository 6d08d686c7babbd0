// SPDX-License-Identifier: Apache-2.0
//
// The only header that includes xtensor: items along one stride of memory, as xtensor sees them.
//
//   auto to = xtensor_line(target, 4);                          // 4 items in a row
//   xt::noalias(to) = xtensor_line(source, 4, -2);              // source[0], source[-2], source[-4], source[-6]
//   to.fill(1.0F);
//
// One dim at a time: xtensor walks several dims at 2 ns an item, and one as fast as a plain loop.
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

// `stride` in items. The view reads nothing but these items; the size is xtensor's own bookkeeping.
template <class T>
auto xtensor_line(T* data, int64_t size, int64_t stride) {
  return xt::adapt(data, static_cast<std::size_t>(size), xt::no_ownership(), LineShape{static_cast<std::size_t>(size)},
                   std::array<std::ptrdiff_t, 1>{stride});
}

}  // namespace shardwise
