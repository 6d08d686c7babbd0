// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dtype.h"

#include <array>
#include <bit>

#include "shardwise/base/error.h"

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
    // Numbers of less than a byte take a whole one, as in ml_dtypes: strides count bytes.
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

DType part_of_complex(DType dtype) { return dtype == DType::kC64 ? DType::kF32 : DType::kF64; }

DType computed_in(DType dtype) {
  // Sums, differences, products and quotients of f16 and bf16 that are rounded to f32 first and then to 16 bits equal
  // one exact rounding, because f32 has twice their digits and two more (24 = 2 * 11 + 2).
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
    // 0x38800000 is 2^-14, the smallest normal f16. Subtracting 112 << 23 turns f32's bias 127 into f16's bias 15.
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
  // The largest exponent means infinity or NaN in both formats; the others only change their bias, by 127 - 15.
  const uint32_t widened = exponent == 0x1FU ? 0xFFU : exponent + 112U;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

BFloat16::BFloat16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  if ((all & 0x7FFFFFFFU) > 0x7F800000U) {
    // A NaN with its payload in the lower half, such as 0x7F800001, would be cut to 0x7F80, an infinity.
    bits = static_cast<uint16_t>((all >> 16) | 0x40U);  // NaN: quiet
  } else {
    // bf16 is the upper half of f32: add half of the last kept bit, less one if that bit is even, and cut.
    bits = static_cast<uint16_t>((all + 0x7FFFU + ((all >> 16) & 1U)) >> 16);
  }
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace shardwise
