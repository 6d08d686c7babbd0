// SPDX-License-Identifier: Apache-2.0
//
// Floats of eight bits or less: each bit pattern represents a double exactly.
//
//   narrow_float_value(DType::kF8E4M3FN, 0x3C)    // 1.5
//   narrow_float_bits(DType::kF8E4M3FN, 1.5)      // 0x3C; 500.0 exceeds the largest value: none, as in program text
//   round_to_narrow(DType::kF8E4M3FN, 500.0)      // 0x7F, NaN, as in arithmetic
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "shardwise/base/dtype.h"

namespace shardwise {

// How a format of at most eight bits uses its highest patterns.
enum class NarrowSpecials : uint8_t { kIeee, kAllOnesIsNan, kNegativeZeroIsNan, kNone };

struct NarrowFormat {
  int width, mantissa, bias;
  NarrowSpecials specials;
  bool is_signed = true;

  constexpr unsigned sign_bit() const { return is_signed ? 1U << (width - 1) : 0U; }
  constexpr unsigned all_ones() const { return (1U << (width - (is_signed ? 1 : 0))) - 1; }
  constexpr unsigned infinity() const { return all_ones() & ~((1U << mantissa) - 1); }  // of kIeee
  constexpr unsigned largest() const {
    if (specials == NarrowSpecials::kIeee) return infinity() - 1;
    return specials == NarrowSpecials::kAllOnesIsNan ? all_ones() - 1 : all_ones();
  }
};

constexpr std::optional<NarrowFormat> narrow_format(DType dtype) {
  switch (dtype) {
    case DType::kF4E2M1FN: return NarrowFormat{4, 1, 1, NarrowSpecials::kNone};
    case DType::kF6E2M3FN: return NarrowFormat{6, 3, 1, NarrowSpecials::kNone};
    case DType::kF6E3M2FN: return NarrowFormat{6, 2, 3, NarrowSpecials::kNone};
    case DType::kF8E3M4: return NarrowFormat{8, 4, 3, NarrowSpecials::kIeee};
    case DType::kF8E4M3: return NarrowFormat{8, 3, 7, NarrowSpecials::kIeee};
    case DType::kF8E4M3B11FNUZ: return NarrowFormat{8, 3, 11, NarrowSpecials::kNegativeZeroIsNan};
    case DType::kF8E4M3FN: return NarrowFormat{8, 3, 7, NarrowSpecials::kAllOnesIsNan};
    case DType::kF8E4M3FNUZ: return NarrowFormat{8, 3, 8, NarrowSpecials::kNegativeZeroIsNan};
    case DType::kF8E5M2: return NarrowFormat{8, 2, 15, NarrowSpecials::kIeee};
    case DType::kF8E5M2FNUZ: return NarrowFormat{8, 2, 16, NarrowSpecials::kNegativeZeroIsNan};
    case DType::kF8E8M0FNU: return NarrowFormat{8, 0, 127, NarrowSpecials::kAllOnesIsNan, false};
    default: return std::nullopt;
  }
}
bool is_narrow_float(DType dtype);

// Bits above the width of the format are ignored.
double narrow_float_value(DType dtype, uint8_t bits);
// Rounds to nearest, ties to even. Returns none for infinities and NaNs that the dtype does not have.
std::optional<uint8_t> narrow_float_bits(DType dtype, double value);
// The largest value, or the smallest one: infinite where the dtype has infinities.
double narrow_float_limit(DType dtype, bool is_largest);

// Rounds to nearest, ties to even, as ml_dtypes does. A value beyond the largest one becomes infinity, or NaN in a
// format without infinities, or the largest value in one without NaNs. There a NaN becomes a zero of the other sign.
inline uint8_t round_to_narrow(const NarrowFormat& format, double value) {
  constexpr int kMantissa = 52, kBias = 1023;
  const auto all = std::bit_cast<uint64_t>(value);
  const bool is_negative = (all >> 63) != 0;
  const uint64_t magnitude = all & ~(uint64_t{1} << 63);
  const unsigned sign = is_negative ? format.sign_bit() : 0U;
  const int exponent = static_cast<int>(magnitude >> kMantissa) - kBias;
  const int lowest = 1 - format.bias;  // below it, the last bit stays where it is
  const uint64_t whole = (magnitude & ((uint64_t{1} << kMantissa) - 1)) | (uint64_t{1} << kMantissa);
  const int shift = std::min(kMantissa - format.mantissa + std::max(lowest - exponent, 0), 63);
  const uint64_t rest = whole & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  uint64_t code = whole >> shift;
  code += static_cast<uint64_t>((rest > half) | ((rest == half) & ((code & 1) != 0)));
  code += static_cast<uint64_t>(std::max(exponent - lowest, 0)) << format.mantissa;
  const bool is_nan = value != value;
  const bool is_beyond = code > format.largest();
  switch (format.specials) {
    case NarrowSpecials::kIeee:
      if (is_nan) return static_cast<uint8_t>(sign | format.infinity() | (1U << (format.mantissa - 1)));
      return static_cast<uint8_t>(sign | (is_beyond ? format.infinity() : code));
    case NarrowSpecials::kAllOnesIsNan:
      if (!format.is_signed && (is_negative || magnitude == 0)) return static_cast<uint8_t>(format.all_ones());
      return static_cast<uint8_t>(sign | (is_nan || is_beyond ? format.all_ones() : code));
    case NarrowSpecials::kNegativeZeroIsNan:
      if (is_nan || is_beyond) return static_cast<uint8_t>(format.sign_bit());
      return static_cast<uint8_t>(code == 0 ? 0 : sign | code);
    case NarrowSpecials::kNone: break;
  }
  if (is_nan) return static_cast<uint8_t>(is_negative ? 0U : format.sign_bit());
  return static_cast<uint8_t>(sign | (is_beyond ? format.largest() : code));
}
uint8_t round_to_narrow(DType dtype, double value);

}  // namespace shardwise
