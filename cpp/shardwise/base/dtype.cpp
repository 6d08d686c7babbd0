// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dtype.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"

namespace shardwise {
namespace {

enum class Kind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kToken };

struct DTypeInfo {
  std::string_view mlir;
  std::string_view numpy;
  int64_t bytes;
  Kind kind;
};

// In the order of DType.
constexpr std::array<DTypeInfo, kTextDTypeCount> kInfos{{
    {"i1", "bool", 1, Kind::kBool},
    {"i8", "int8", 1, Kind::kSigned},
    {"i16", "int16", 2, Kind::kSigned},
    {"i32", "int32", 4, Kind::kSigned},
    {"i64", "int64", 8, Kind::kSigned},
    {"ui8", "uint8", 1, Kind::kUnsigned},
    {"ui16", "uint16", 2, Kind::kUnsigned},
    {"ui32", "uint32", 4, Kind::kUnsigned},
    {"ui64", "uint64", 8, Kind::kUnsigned},
    {"f16", "float16", 2, Kind::kFloat},
    {"bf16", "bfloat16", 2, Kind::kFloat},
    {"f32", "float32", 4, Kind::kFloat},
    {"f64", "float64", 8, Kind::kFloat},
    {"complex<f32>", "complex64", 8, Kind::kComplex},
    {"complex<f64>", "complex128", 16, Kind::kComplex},
    {"i2", "int2", 1, Kind::kSigned},
    {"i4", "int4", 1, Kind::kSigned},
    {"ui2", "uint2", 1, Kind::kUnsigned},
    {"ui4", "uint4", 1, Kind::kUnsigned},
    {"f4E2M1FN", "float4_e2m1fn", 1, Kind::kFloat},
    {"f6E2M3FN", "float6_e2m3fn", 1, Kind::kFloat},
    {"f6E3M2FN", "float6_e3m2fn", 1, Kind::kFloat},
    {"f8E3M4", "float8_e3m4", 1, Kind::kFloat},
    {"f8E4M3", "float8_e4m3", 1, Kind::kFloat},
    {"f8E4M3B11FNUZ", "float8_e4m3b11fnuz", 1, Kind::kFloat},
    {"f8E4M3FN", "float8_e4m3fn", 1, Kind::kFloat},
    {"f8E4M3FNUZ", "float8_e4m3fnuz", 1, Kind::kFloat},
    {"f8E5M2", "float8_e5m2", 1, Kind::kFloat},
    {"f8E5M2FNUZ", "float8_e5m2fnuz", 1, Kind::kFloat},
    {"f8E8M0FNU", "float8_e8m0fnu", 1, Kind::kFloat},
    {"!stablehlo.token", "token", 0, Kind::kToken},
}};

const DTypeInfo& info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

std::optional<DType> find(std::string_view DTypeInfo::* member, std::string_view name, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (kInfos[i].*member == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

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

int64_t item_size(DType dtype) { return info(dtype).bytes; }
std::string_view mlir_name(DType dtype) { return info(dtype).mlir; }
std::string_view numpy_name(DType dtype) { return info(dtype).numpy; }
std::optional<DType> dtype_from_mlir(std::string_view name) { return find(&DTypeInfo::mlir, name, kTextDTypeCount); }
std::optional<DType> dtype_from_numpy(std::string_view name) { return find(&DTypeInfo::numpy, name, kDTypeCount); }
bool is_float(DType dtype) { return info(dtype).kind == Kind::kFloat; }
bool is_complex(DType dtype) { return info(dtype).kind == Kind::kComplex; }
bool is_signed_integer(DType dtype) { return info(dtype).kind == Kind::kSigned; }
bool is_unsigned_integer(DType dtype) { return info(dtype).kind == Kind::kUnsigned; }

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

DType part_of_complex(DType dtype) { return dtype == DType::kC64 ? DType::kF32 : DType::kF64; }

DType computed_in(DType dtype) {
  if (is_float(dtype)) return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  if (dtype == DType::kI2 || dtype == DType::kI4) return DType::kI8;
  return dtype == DType::kU2 || dtype == DType::kU4 ? DType::kU8 : dtype;
}

void fail_not_dispatched(DType dtype) {
  fail<InternalError>("dispatch", "the dtype must be one of bool, (u)int8 to (u)int64, float16 to float64 and bfloat16",
                      numpy_name(dtype));
}

Float16::Float16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (all >> 16) & 0x8000U;
  const uint32_t magnitude = all & 0x7FFFFFFFU;
  uint32_t result = 0;
  if (magnitude > 0x7F800000U) {
    result = 0x7E00U | ((magnitude >> 13) & 0x3FFU);  // NaN: quiet, with the upper part of its payload
  } else if (magnitude >= 0x47800000U) {
    result = 0x7C00U;  // 65536 and more, infinity
  } else if (magnitude >= 0x38800000U) {
    // Normal: add half of the last kept bit, less one if that bit is even. The carry may correctly reach infinity.
    result = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Subnormal or zero: floats in [0.5, 1) have the last bit of f16 subnormals, 2^-24, so the addition rounds.
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  }
  bits = static_cast<uint16_t>(sign | result);
}

Float16::operator float() const {
  const uint32_t sign = (static_cast<uint32_t>(bits) & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t widened = exponent == 0x1FU ? 0xFFU : exponent + 112U;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

BFloat16::BFloat16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  if ((all & 0x7FFFFFFFU) > 0x7F800000U) {
    bits = static_cast<uint16_t>((all >> 16) | 0x40U);  // NaN: quiet
  } else {
    bits = static_cast<uint16_t>((all + 0x7FFFU + ((all >> 16) & 1U)) >> 16);
  }
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

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
  return a.dtype == b.dtype && std::memcmp(&a.natural, &b.natural, sizeof(a.natural)) == 0 &&
         std::memcmp(&a.imag, &b.imag, sizeof(a.imag)) == 0;
}

namespace {

void store_dispatched(const Scalar& scalar, void* element) {
  dispatch(scalar.dtype, [&]<class T>() {
    T value{};
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
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
  return Scalar::of_uint(dtype, byte);
}

}  // namespace shardwise
