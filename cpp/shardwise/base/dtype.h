// SPDX-License-Identifier: Apache-2.0
//
// Element types. Names in program text are MLIR's (`i1`, `ui8`, `bf16`, `f32`); NumPy names are NumPy's and ml_dtypes'
// (`bool`, `uint8`, `bfloat16`, `float32`).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwise {

// Ops compute in the dtypes up to kF64 directly; the others are computed in `computed_in`, and complex numbers part by
// part. A token has rank 0; tokens order the ops that have effects.
// clang-format off: one row of machine numbers, one of the others
enum class DType : uint8_t {
  kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64,
  kC64, kC128, kI2, kI4, kU2, kU4, kF4E2M1FN, kF6E2M3FN, kF6E3M2FN, kF8E3M4, kF8E4M3, kF8E4M3B11FNUZ, kF8E4M3FN,
  kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0FNU, kToken,
};
// clang-format on
inline constexpr int kTextDTypeCount = static_cast<int>(DType::kToken) + 1;
inline constexpr int kDTypeCount = kTextDTypeCount - 1;  // all but tokens

int64_t item_size(DType dtype);            // bytes of one element
std::string_view mlir_name(DType dtype);   // "f32"
std::string_view numpy_name(DType dtype);  // "float32"
std::optional<DType> dtype_from_mlir(std::string_view name);
std::optional<DType> dtype_from_numpy(std::string_view name);  // no token

bool is_float(DType dtype);  // real numbers
bool is_complex(DType dtype);
inline bool is_inexact(DType dtype) { return is_float(dtype) || is_complex(dtype); }  // it has derivatives
bool is_signed_integer(DType dtype);
bool is_unsigned_integer(DType dtype);
inline bool is_integer(DType dtype) { return is_signed_integer(dtype) || is_unsigned_integer(dtype); }
// Bits of one element: 1 for bool, 4 for i4, 6 for f6E2M3FN, 64 for complex<f32>; 0 for tokens.
int bit_width(DType dtype);
DType part_of_complex(DType dtype);  // f32 of complex<f32>
// The dtype of arithmetic, whose results are rounded or wrapped once per op: f32 of all narrower floats, i8 of i2 and
// i4, ui8 of ui2 and ui4; otherwise the dtype itself.
DType computed_in(DType dtype);

// Storage of the two 16-bit floats. Arithmetic happens in float32, with one rounding (to nearest even) per result.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
};

[[noreturn]] void fail_not_dispatched(DType dtype);  // InternalError

// Calls f.template operator()<T>() with the C++ type of `dtype` (bool, int8_t, …, Float16, BFloat16, float, double),
// which must be one of those up to kF64.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f.template operator()<bool>();
    case DType::kI8: return f.template operator()<int8_t>();
    case DType::kI16: return f.template operator()<int16_t>();
    case DType::kI32: return f.template operator()<int32_t>();
    case DType::kI64: return f.template operator()<int64_t>();
    case DType::kU8: return f.template operator()<uint8_t>();
    case DType::kU16: return f.template operator()<uint16_t>();
    case DType::kU32: return f.template operator()<uint32_t>();
    case DType::kU64: return f.template operator()<uint64_t>();
    case DType::kF16: return f.template operator()<Float16>();
    case DType::kBF16: return f.template operator()<BFloat16>();
    case DType::kF32: return f.template operator()<float>();
    case DType::kF64: return f.template operator()<double>();
    default: fail_not_dispatched(dtype);
  }
}

// One number of any dtype, exact: integers keep all 64 bits, and floats are stored as double.
struct Scalar {
  DType dtype = DType::kF32;
  union {
    double real = 0;   // floats, and real parts
    int64_t integer;   // signed integers and bool
    uint64_t natural;  // unsigned integers
  };
  double imag = 0;  // imaginary parts
  // Each takes any dtype that holds such numbers: an integer may become a float, and a float a complex number.
  static Scalar of_complex(DType dtype, double real, double imag);
  static Scalar of_float(DType dtype, double value);
  static Scalar of_int(DType dtype, int64_t value);
  static Scalar of_uint(DType dtype, uint64_t value);
  friend bool operator==(const Scalar& a, const Scalar& b);  // bit-wise, so that NaN equals itself and -0 is not +0
};
// Writes/reads one element in the storage form of the scalar's dtype.
void store(const Scalar& scalar, void* element);
Scalar load(DType dtype, const void* element);

}  // namespace shardwise
