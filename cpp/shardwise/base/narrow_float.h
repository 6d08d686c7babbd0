// SPDX-License-Identifier: Apache-2.0
//
// Floats of eight bits or less, for program text: each bit pattern represents a double exactly.
//
//   narrow_float_value(DType::kF8E4M3FN, 0x3C)    // 1.5
//   narrow_float_bits(DType::kF8E4M3FN, 1.5)      // 0x3C; 500.0 exceeds the largest value: none
#pragma once

#include <cstdint>
#include <optional>

#include "shardwise/base/dtype.h"

namespace shardwise {

bool is_narrow_float(DType dtype);
// Bits of one element: 1 for bool, 4 for i4, 6 for f6E2M3FN, 64 for complex<f32>; 0 for tokens.
int bit_width(DType dtype);
DType part_of_complex(DType dtype);  // f32 of complex<f32>

// `bits` has no bits above bit_width(dtype).
double narrow_float_value(DType dtype, uint8_t bits);
// Rounds to nearest, ties to even. Returns none for infinities and NaNs that the dtype does not have.
std::optional<uint8_t> narrow_float_bits(DType dtype, double value);

}  // namespace shardwise
