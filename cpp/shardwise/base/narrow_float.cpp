// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/narrow_float.h"

#include <cmath>
#include <limits>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

enum class Specials : uint8_t { kIeee, kAllOnesIsNan, kNegativeZeroIsNan, kNone };

struct NarrowFormat {
  int width, mantissa, bias;
  Specials specials;
  bool is_signed = true;
};

std::optional<NarrowFormat> format_of(DType dtype) {
  switch (dtype) {
    case DType::kF4E2M1FN: return NarrowFormat{4, 1, 1, Specials::kNone};
    case DType::kF6E2M3FN: return NarrowFormat{6, 3, 1, Specials::kNone};
    case DType::kF6E3M2FN: return NarrowFormat{6, 2, 3, Specials::kNone};
    case DType::kF8E3M4: return NarrowFormat{8, 4, 3, Specials::kIeee};
    case DType::kF8E4M3: return NarrowFormat{8, 3, 7, Specials::kIeee};
    case DType::kF8E4M3B11FNUZ: return NarrowFormat{8, 3, 11, Specials::kNegativeZeroIsNan};
    case DType::kF8E4M3FN: return NarrowFormat{8, 3, 7, Specials::kAllOnesIsNan};
    case DType::kF8E4M3FNUZ: return NarrowFormat{8, 3, 8, Specials::kNegativeZeroIsNan};
    case DType::kF8E5M2: return NarrowFormat{8, 2, 15, Specials::kIeee};
    case DType::kF8E5M2FNUZ: return NarrowFormat{8, 2, 16, Specials::kNegativeZeroIsNan};
    case DType::kF8E8M0FNU: return NarrowFormat{8, 0, 127, Specials::kAllOnesIsNan, false};
    default: return std::nullopt;
  }
}

double magnitude_of(const NarrowFormat& format, unsigned bits) {
  const auto mantissa = static_cast<int>(bits & ((1U << format.mantissa) - 1));
  const auto exponent = static_cast<int>(bits >> format.mantissa);
  // Without a sign there are only powers of two, and no zero among them.
  if (!format.is_signed) return std::ldexp(1.0, exponent - format.bias);
  const int one = 1 << format.mantissa;
  return exponent == 0 ? std::ldexp(mantissa, 1 - format.bias - format.mantissa)
                       : std::ldexp(one + mantissa, exponent - format.bias - format.mantissa);
}

}  // namespace

bool is_narrow_float(DType dtype) { return format_of(dtype).has_value(); }

int bit_width(DType dtype) {
  switch (dtype) {
    case DType::kBool: return 1;
    case DType::kI2:
    case DType::kU2: return 2;
    case DType::kI4:
    case DType::kU4: return 4;
    default: break;
  }
  const std::optional<NarrowFormat> format = format_of(dtype);
  return format ? format->width : static_cast<int>(8 * item_size(dtype));
}

DType part_of_complex(DType dtype) { return dtype == DType::kC64 ? DType::kF32 : DType::kF64; }

double narrow_float_value(DType dtype, uint8_t bits) {
  const std::optional<NarrowFormat> format = format_of(dtype);
  check_internal(format.has_value(), "narrow_float_value needs a float of at most eight bits");
  const unsigned sign_bit = format->is_signed ? 1U << (format->width - 1) : 0U;
  const unsigned magnitude = bits & ~sign_bit;
  const bool negative = (bits & sign_bit) != 0;
  const unsigned largest = (1U << (format->width - (format->is_signed ? 1 : 0))) - 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (format->specials == Specials::kNegativeZeroIsNan && bits == sign_bit) return kNan;
  if (format->specials == Specials::kAllOnesIsNan && magnitude == largest) return kNan;
  const unsigned infinity = largest & ~((1U << format->mantissa) - 1);
  if (format->specials == Specials::kIeee && magnitude >= infinity) {
    if (magnitude > infinity) return kNan;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  const double value = magnitude_of(*format, magnitude);
  return negative ? -value : value;
}

// A linear search suffices, because there are at most 256 patterns.
std::optional<uint8_t> narrow_float_bits(DType dtype, double value) {
  const int width = bit_width(dtype);
  std::optional<uint8_t> best;
  double distance = std::numeric_limits<double>::infinity();
  double largest = 0, step = 0;
  for (unsigned pattern = 0; pattern < 1U << width; ++pattern) {
    const auto bits = static_cast<uint8_t>(pattern);
    const double candidate = narrow_float_value(dtype, bits);
    if (std::isnan(value) || std::isinf(value)) {
      if (std::isnan(value) ? std::isnan(candidate) : candidate == value) return bits;
      continue;
    }
    if (!std::isfinite(candidate)) continue;
    if (candidate > largest) {
      step = candidate - largest;
      largest = candidate;
    }
    if (candidate == value && std::signbit(candidate) == std::signbit(value)) return bits;
    const double away = std::abs(candidate - value);
    if (away < distance || (away == distance && (pattern & 1U) == 0)) {
      best = bits;
      distance = away;
    }
  }
  return std::abs(value) < largest + step / 2 ? best : std::nullopt;
}

}  // namespace shardwise
