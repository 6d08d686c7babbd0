// SPDX-License-Identifier: Apache-2.0
//
// The matrix product of OpenBLAS, for the types of items that it takes:
//
//   gemm<float>(2, 4, 3, {a, 3}, {b, 4}, c, 4)    // c[2, 4] = a[2, 3] · b[3, 4], all row-major
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>

#include "shardwise/base/dtype.h"

namespace shardwise {

template <class T>
concept BlasItem =
    std::floating_point<T> || std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

template <BlasItem T>
struct GemmOperand {
  const T* items;
  int64_t leading;  // items between the starts of two rows, as they are stored
  bool is_transposed = false;
};

// C = A · B for an m × k and a k × n matrix; rows of C start `leading` items apart.
template <BlasItem T>
void gemm(int64_t m, int64_t n, int64_t k, GemmOperand<T> a, GemmOperand<T> b, T* c, int64_t leading);

// Calls f.template operator()<T>() with the items that products of a dtype are computed on. Integers of one width share
// a loop: sums that wrap have the same bits for both signs.
template <class F>
void dispatch_products(DType dtype, F&& f) {
  if (dtype == DType::kF32) return f.template operator()<float>();
  if (dtype == DType::kF64) return f.template operator()<double>();
  if (dtype == DType::kC64) return f.template operator()<std::complex<float>>();
  if (dtype == DType::kC128) return f.template operator()<std::complex<double>>();
  switch (item_size(dtype)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

}  // namespace shardwise
