// SPDX-License-Identifier: Apache-2.0
//
// The only header that includes xtensor; only kernels include it.
//
//   auto x = xtensor_view<uint32_t>(array);        // xtensor's view of an NdArray's memory, with its strides
//   xt::noalias(xt::strided_view(x, slices)) = 0u;
//
// The item type is the dtype's own for arithmetic, or an unsigned integer of the same size for movement. Strides must
// be multiples of the item size, which those of every NdArray are.
#pragma once

#include <cstddef>
#include <type_traits>

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xstrided_view.hpp>

#include "shardwise/base/ndarray.h"

// xtensor 0.24 chooses the container of an expression by matching its shape type as `template <class, size_t, class,
// bool> class`. Under C++20 rules the partial specialisation for svector no longer matches, and expressions become
// fixed-size tensors of the wrong number of dims. This names the case; 0.25 has no such fault.
#if XTENSOR_VERSION_MAJOR == 0 && XTENSOR_VERSION_MINOR <= 24 && __cplusplus > 201703L
namespace xt::detail {
template <template <class, std::size_t, class, bool> class S, class X, std::size_t N, class A, bool Init>
struct xtype_for_shape<S<X, N, A, Init>> {
  template <class T, layout_type L>
  using type = xarray<T, L>;
};
}  // namespace xt::detail
#endif
static_assert(
    std::is_same_v<
        xt::detail::xtype_for_shape<xt::xarray<float>::shape_type>::template type<float, xt::layout_type::row_major>,
        xt::xarray<float>>);

namespace shardwise {

template <class T>
auto xtensor_view(const NdArray& array) {
  Dims strides = array.strides();
  for (int64_t& stride : strides) stride /= static_cast<int64_t>(sizeof(T));
  // The view never reads beyond what its shape and strides reach; the size is xtensor's own bookkeeping.
  T* data = reinterpret_cast<T*>(array.data());
  return xt::adapt(data, static_cast<std::size_t>(array.size()), xt::no_ownership(), array.shape(), strides);
}

}  // namespace shardwise
