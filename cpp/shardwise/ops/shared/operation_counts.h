// SPDX-License-Identifier: Apache-2.0
//
// Operations of algorithms, for OpDef::cost (ir/op_cost.h):
//
//   contraction_flops(4 * 16 * 8, DType::kBF16)      1024: each product is added to a sum
//   contraction_flops(4 * 16 * 8, DType::kC64)       4096: a product of complex numbers is four of real ones
//   ceil_log2(1000)                                  10: the steps of a sort or of a transform
#pragma once

#include <bit>

#include "shardwise/base/dtype.h"
#include "shardwise/base/quantity.h"

namespace shardwise {

inline int64_t contraction_flops(int64_t products, DType dtype) {
  return saturated_product(products, is_complex(dtype) ? 8 : 2);
}

// At least 1, so that sorting single elements is not free.
constexpr int64_t ceil_log2(int64_t count) { return count <= 2 ? 1 : std::bit_width(static_cast<uint64_t>(count - 1)); }

}  // namespace shardwise
