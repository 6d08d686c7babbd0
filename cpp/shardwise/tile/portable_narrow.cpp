// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "shardwise/base/narrow_float.h"
#include "shardwise/tile/portable.h"

namespace shardwise {
namespace {

template <DType kType>
void widen_float(void* out, const void* a, const void*, const void*, int64_t lanes) {
  // A table of 1 KiB stays in the first-level cache; decoding sign, exponent and specials would branch per lane.
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (unsigned bits = 0; bits < 256; ++bits) {
      values[bits] = static_cast<float>(narrow_float_value(kType, static_cast<uint8_t>(bits)));
    }
    return values;
  }();
  const float* values = kValues.data();
  auto* to = static_cast<float*>(out);
  const auto* from = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < lanes; ++i) to[i] = values[from[i]];
}

template <DType kType, class T>
void narrow_float(void* out, const void* a, const void*, const void*, int64_t lanes) {
  constexpr NarrowFormat kFormat = *narrow_format(kType);
  auto* to = static_cast<uint8_t*>(out);
  const auto* from = static_cast<const T*>(a);
  // f32 to double is exact, so both source dtypes round once, by one function.
  for (int64_t i = 0; i < lanes; ++i) to[i] = round_to_narrow(kFormat, static_cast<double>(from[i]));
}

template <DType kType>
TileKernel float_kernel(DType from, DType to) {
  // No other pair occurs: TileBuilder::convert widens every source of at most 16 bits to f32 first.
  if (from == kType) return to == DType::kF32 ? widen_float<kType> : nullptr;
  if (from == DType::kF32) return narrow_float<kType, float>;
  return from == DType::kF64 ? narrow_float<kType, double> : nullptr;
}

// A byte with an integer in its low bits as a whole byte, and back.
template <int kUnused, bool kSigned>
void widen_integer(void* out, const void* a, const void*, const void*, int64_t lanes) {
  auto* to = static_cast<uint8_t*>(out);
  const auto* from = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < lanes; ++i) {
    // The bits move to the top and back, which extends or drops the sign: 0x0F of i4 becomes 0xF0, then 0xFF, -1 as i8.
    const auto high = static_cast<uint8_t>(from[i] << kUnused);
    to[i] =
        kSigned ? static_cast<uint8_t>(static_cast<int8_t>(high) >> kUnused) : static_cast<uint8_t>(high >> kUnused);
  }
}

TileKernel integer_kernel(DType from, DType to) {
  const DType narrow = bit_width(from) < bit_width(to) ? from : to;
  // To a narrow integer the high bits are cleared, also for i4: -1 is stored as 0x0F.
  const bool keeps_sign = narrow == from && is_signed_integer(from);
  if (bit_width(narrow) == 2) return keeps_sign ? widen_integer<6, true> : widen_integer<6, false>;
  return keeps_sign ? widen_integer<4, true> : widen_integer<4, false>;
}

}  // namespace

TileKernel narrow_kernel(DType from, DType to) {
  const DType narrow = is_narrow_float(from) ? from : to;
  switch (narrow) {
    case DType::kF4E2M1FN: return float_kernel<DType::kF4E2M1FN>(from, to);
    case DType::kF6E2M3FN: return float_kernel<DType::kF6E2M3FN>(from, to);
    case DType::kF6E3M2FN: return float_kernel<DType::kF6E3M2FN>(from, to);
    case DType::kF8E3M4: return float_kernel<DType::kF8E3M4>(from, to);
    case DType::kF8E4M3: return float_kernel<DType::kF8E4M3>(from, to);
    case DType::kF8E4M3B11FNUZ: return float_kernel<DType::kF8E4M3B11FNUZ>(from, to);
    case DType::kF8E4M3FN: return float_kernel<DType::kF8E4M3FN>(from, to);
    case DType::kF8E4M3FNUZ: return float_kernel<DType::kF8E4M3FNUZ>(from, to);
    case DType::kF8E5M2: return float_kernel<DType::kF8E5M2>(from, to);
    case DType::kF8E5M2FNUZ: return float_kernel<DType::kF8E5M2FNUZ>(from, to);
    case DType::kF8E8M0FNU: return float_kernel<DType::kF8E8M0FNU>(from, to);
    default: break;
  }
  const bool is_byte = computed_in(from) == to || computed_in(to) == from;
  return is_byte && is_integer(from) && from != to ? integer_kernel(from, to) : nullptr;
}

TileKernel portable_kernel(TileCode code, DType from, DType to) {
  if (code == TileCode::kConvert) return narrow_kernel(from, to);
  if (is_complex(from)) return complex_kernel(code, from);
  return nullptr;
}

}  // namespace shardwise
