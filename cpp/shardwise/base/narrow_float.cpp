// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/narrow_float.h"

#include <cmath>
#include <limits>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

double magnitude_of(const NarrowFormat& format, unsigned bits) {
  const auto mantissa = static_cast<int>(bits & ((1U << format.mantissa) - 1));
  const auto exponent = static_cast<int>(bits >> format.mantissa);
  // Without a sign there are only powers of two, and no zero among them.
  if (!format.is_signed) return std::ldexp(1.0, exponent - format.bias);
  // 0x3C of f8E4M3FN is 0 0111 100: (8 + 4) * 2^(7 - 7 - 3) = 1.5. Exponent 0 has no implicit leading bit.
  const int one = 1 << format.mantissa;
  return exponent == 0 ? std::ldexp(mantissa, 1 - format.bias - format.mantissa)
                       : std::ldexp(one + mantissa, exponent - format.bias - format.mantissa);
}

}  // namespace

bool is_narrow_float(DType dtype) { return narrow_format(dtype).has_value(); }

double narrow_float_value(DType dtype, uint8_t bits) {
  const std::optional<NarrowFormat> format = narrow_format(dtype);
  check_internal(format.has_value(), "narrow_float_value needs a float of at most eight bits");
  const unsigned magnitude = bits & format->all_ones();
  const bool is_negative = (bits & format->sign_bit()) != 0;
  const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), is_negative ? -1.0 : 1.0);
  // The "UZ" formats have no negative zero: its pattern 0x80 is their only NaN.
  if (format->specials == NarrowSpecials::kNegativeZeroIsNan && is_negative && magnitude == 0) return nan;
  if (format->specials == NarrowSpecials::kAllOnesIsNan && magnitude == format->all_ones()) return nan;
  if (format->specials == NarrowSpecials::kIeee && magnitude >= format->infinity()) {
    if (magnitude > format->infinity()) return nan;
    return is_negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  const double value = magnitude_of(*format, magnitude);
  return is_negative ? -value : value;
}

uint8_t round_to_narrow(DType dtype, double value) { return round_to_narrow(*narrow_format(dtype), value); }

double narrow_float_limit(DType dtype, bool is_largest) {
  const NarrowFormat format = *narrow_format(dtype);
  // f8E8M0FNU has powers of two only, so that its smallest value is 2^-127, not a negative one.
  if (!is_largest && !format.is_signed) return narrow_float_value(dtype, 0);
  const unsigned magnitude = format.specials == NarrowSpecials::kIeee ? format.infinity() : format.largest();
  return narrow_float_value(dtype, static_cast<uint8_t>(magnitude | (is_largest ? 0U : format.sign_bit())));
}

std::optional<uint8_t> narrow_float_bits(DType dtype, double value) {
  const NarrowFormat format = *narrow_format(dtype);
  // round_to_narrow follows ml_dtypes, which rounds all of (2^-127, 2^-126) up as if it had subnormals. In a text the
  // digits of 2^-127 are such a number.
  const double least = magnitude_of(format, 0);
  if (!format.is_signed && value > 0 && value < 2 * least) return static_cast<uint8_t>(value > 1.5 * least ? 1 : 0);
  const uint8_t bits = round_to_narrow(format, value);
  const double found = narrow_float_value(dtype, bits);
  if (std::isnan(value)) return std::isnan(found) ? std::optional(bits) : std::nullopt;
  if (std::isinf(value)) return found == value ? std::optional(bits) : std::nullopt;
  if (!std::isfinite(found)) return std::nullopt;
  // A format without NaNs saturates. From half a step above the largest value on, rounding would leave it.
  const double largest = magnitude_of(format, format.largest());
  const double step = largest - magnitude_of(format, format.largest() - 1);
  const bool saturates = format.specials == NarrowSpecials::kNone && std::abs(value) >= largest + step / 2;
  return saturates ? std::nullopt : std::optional(bits);
}

}  // namespace shardwise
