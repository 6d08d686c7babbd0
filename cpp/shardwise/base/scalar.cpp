// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <type_traits>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"

namespace shardwise {
namespace {

// double -> float with "round to odd": truncate, and set the last bit if the result is inexact. A second rounding, to a
// format with at least two bits less, then equals one rounding of the double.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool rounded_up = (value > 0) ? static_cast<double>(nearest) > value : static_cast<double>(nearest) < value;
  if (rounded_up) --bits;  // towards zero; from infinity this is the largest finite number
  return std::bit_cast<float>(bits | 1U);
}

double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::kF16: return static_cast<float>(Float16(round_to_odd(value)));
    case DType::kBF16: return static_cast<float>(BFloat16(round_to_odd(value)));
    case DType::kF32: return static_cast<float>(value);
    case DType::kF64: return value;
    default: return narrow_float_value(dtype, round_to_narrow(dtype, value));
  }
}

// The low bits of an integer, with the sign of the highest of them.
int64_t low_bits(DType dtype, int64_t value) {
  const int unused = 64 - bit_width(dtype);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}
uint64_t low_bits(DType dtype, uint64_t value) {
  const int unused = 64 - bit_width(dtype);
  return value << unused >> unused;
}

// dtypes up to kF64
bool is_dispatched(DType dtype) { return dtype <= DType::kF64; }

}  // namespace

int bit_width(DType dtype) {
  switch (dtype) {
    case DType::kBool: return 1;
    case DType::kI2:
    case DType::kU2: return 2;
    case DType::kI4:
    case DType::kU4: return 4;
    default: break;
  }
  const std::optional<NarrowFormat> format = narrow_format(dtype);
  return format ? format->width : static_cast<int>(8 * item_size(dtype));
}

Scalar Scalar::of_complex(DType dtype, double real, double imag) {
  check_internal(is_complex(dtype), "Scalar::of_complex needs a complex dtype");
  Scalar scalar;
  scalar.dtype = dtype;
  scalar.real = rounded(part_of_complex(dtype), real);
  scalar.imag = rounded(part_of_complex(dtype), imag);
  return scalar;
}

Scalar Scalar::of_float(DType dtype, double value) {
  if (is_complex(dtype)) return of_complex(dtype, value, 0);
  check_internal(is_float(dtype), "Scalar::of_float needs a float dtype");
  Scalar scalar;
  scalar.dtype = dtype;
  scalar.real = rounded(dtype, value);
  return scalar;
}

Scalar Scalar::of_int(DType dtype, int64_t value) {
  if (is_inexact(dtype)) return of_float(dtype, static_cast<double>(value));
  // As a cast in C: modulo the width, so that -1 as ui8 is 255. of_uint and of_int hand over at most once.
  if (is_unsigned_integer(dtype)) return of_uint(dtype, static_cast<uint64_t>(value));
  Scalar scalar;
  scalar.dtype = dtype;
  scalar.integer = dtype == DType::kBool ? static_cast<int64_t>(value != 0) : low_bits(dtype, value);
  return scalar;
}

Scalar Scalar::of_uint(DType dtype, uint64_t value) {
  if (is_inexact(dtype)) return of_float(dtype, static_cast<double>(value));
  if (dtype == DType::kBool) return of_int(dtype, value != 0);
  if (!is_unsigned_integer(dtype)) return of_int(dtype, static_cast<int64_t>(value));
  Scalar scalar;
  scalar.dtype = dtype;
  scalar.natural = low_bits(dtype, value);
  return scalar;
}

bool operator==(const Scalar& a, const Scalar& b) {
  // Padding whose fill equals the wanted one is not masked again: -0, the neutral element of a sum, must not match 0,
  // and NaN must match itself.
  return a.dtype == b.dtype && std::memcmp(&a.natural, &b.natural, sizeof(a.natural)) == 0 &&
         std::memcmp(&a.imag, &b.imag, sizeof(a.imag)) == 0;
}

namespace {

void store_dispatched(const Scalar& scalar, void* element) {
  dispatch(scalar.dtype, [&]<class T>() {
    T value{};
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      // No second rounding: `rounded` already made this a value of the 16-bit dtype, which f32 holds exactly.
      value = T(static_cast<float>(scalar.real));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(scalar.real);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = scalar.integer != 0;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(scalar.integer);
    } else {
      value = static_cast<T>(scalar.natural);
    }
    std::memcpy(element, &value, sizeof(T));
  });
}

Scalar load_dispatched(DType dtype, const void* element) {
  return dispatch(dtype, [&]<class T>() {
    Scalar scalar;
    scalar.dtype = dtype;
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;  // foreign memory may hold any byte; NumPy treats all but 0 as true
      std::memcpy(&byte, element, 1);
      scalar.integer = byte != 0;
    } else {
      T value{};
      std::memcpy(&value, element, sizeof(T));
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
        scalar.real = static_cast<double>(static_cast<float>(value));
      } else if constexpr (std::is_floating_point_v<T>) {
        scalar.real = static_cast<double>(value);
      } else if constexpr (std::is_signed_v<T>) {
        scalar.integer = value;
      } else {
        scalar.natural = value;
      }
    }
    return scalar;
  });
}

}  // namespace

// An element of less than a byte is in the low bits of one, as in ml_dtypes.
void store(const Scalar& scalar, void* element) {
  if (is_dispatched(scalar.dtype)) return store_dispatched(scalar, element);
  if (is_complex(scalar.dtype)) {
    const DType part = part_of_complex(scalar.dtype);
    store(Scalar::of_float(part, scalar.real), element);
    return store(Scalar::of_float(part, scalar.imag), static_cast<std::byte*>(element) + item_size(part));
  }
  const uint8_t byte = is_float(scalar.dtype)
                           ? round_to_narrow(scalar.dtype, scalar.real)
                           : static_cast<uint8_t>(scalar.natural & ((1U << bit_width(scalar.dtype)) - 1));
  std::memcpy(element, &byte, 1);
}

Scalar load(DType dtype, const void* element) {
  if (is_dispatched(dtype)) return load_dispatched(dtype, element);
  if (is_complex(dtype)) {
    const DType part = part_of_complex(dtype);
    const auto* imag = static_cast<const std::byte*>(element) + item_size(part);
    return Scalar::of_complex(dtype, load(part, element).real, load(part, imag).real);
  }
  uint8_t byte = 0;
  std::memcpy(&byte, element, 1);
  if (is_float(dtype)) return Scalar::of_float(dtype, narrow_float_value(dtype, byte));
  // The low bits decide: the byte 0x0F of i4 is -1, and whatever foreign memory has in the high bits is ignored.
  return Scalar::of_uint(dtype, byte);
}

}  // namespace shardwise
