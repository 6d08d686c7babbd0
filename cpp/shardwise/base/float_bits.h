// SPDX-License-Identifier: Apache-2.0
//
// A float of any width as its bits and as a double:
//
//   float_bits(DType::kBF16, 1.5)          // 0x3FC0
//   float_of_bits(DType::kBF16, 0x3FC0)    // 1.5
//   nearest_float(DType::kBF16, 1.501)     // 1.5; nothing beyond the largest bfloat16
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "shardwise/base/dtype.h"

namespace shardwise {

uint64_t float_bits(DType dtype, double value);  // of a value that is exact in `dtype`
double float_of_bits(DType dtype, uint64_t bits);
std::optional<double> nearest_float(DType dtype, double value);
double real_at(DType dtype, const std::byte* element);  // the element at that address

}  // namespace shardwise
