// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/float_bits.h"

#include <array>
#include <cmath>
#include <cstring>

#include "shardwise/base/narrow_float.h"

namespace shardwise {

uint64_t float_bits(DType dtype, double value) {
  // The value is exact in `dtype` (header), so 0 is returned only for specials that the format lacks.
  if (is_narrow_float(dtype)) return narrow_float_bits(dtype, value).value_or(0);
  std::array<std::byte, 8> bytes{};
  store(Scalar::of_float(dtype, value), bytes.data());
  // Little-endian: the two bytes of an f16 are the low bits of the word, and the other six stay 0.
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

double float_of_bits(DType dtype, uint64_t bits) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &bits, bytes.size());
  return real_at(dtype, bytes.data());
}

std::optional<double> nearest_float(DType dtype, double value) {
  if (is_narrow_float(dtype)) {
    const std::optional<uint8_t> bits = narrow_float_bits(dtype, value);
    return bits ? std::optional(narrow_float_value(dtype, *bits)) : std::nullopt;
  }
  const double nearest = float_of_bits(dtype, float_bits(dtype, value));
  return std::isfinite(value) && std::isinf(nearest) ? std::nullopt : std::optional(nearest);
}

double real_at(DType dtype, const std::byte* element) {
  if (is_narrow_float(dtype)) return narrow_float_value(dtype, std::to_integer<uint8_t>(*element));
  return load(dtype, element).real;
}

}  // namespace shardwise
