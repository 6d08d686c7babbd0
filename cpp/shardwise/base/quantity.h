// SPDX-License-Identifier: Apache-2.0
//
// Quantities of work: flops, bytes, picoseconds, trips. They are integers from 0 to kSaturated, where sums and products
// stop, so that a quantity of sizes near 2^62 is huge instead of negative:
//
//   saturated_product(1 << 40, 1 << 40)     kSaturated
//   saturated_sum(kSaturated, 1)            kSaturated
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardwise {

inline constexpr int64_t kSaturated = int64_t{1} << 62;

using Wide128 = unsigned __int128;  // holds the product of any two quantities, and of a quantity and 10^12

constexpr int64_t saturated(Wide128 value) {
  return value < static_cast<Wide128>(kSaturated) ? static_cast<int64_t>(value) : kSaturated;
}
// A quantity below 0 counts as 0.
constexpr Wide128 widened(int64_t quantity) { return static_cast<Wide128>(std::max<int64_t>(quantity, 0)); }

constexpr int64_t saturated_sum(int64_t a, int64_t b) { return saturated(widened(a) + widened(b)); }
constexpr int64_t saturated_product(int64_t a, int64_t b) { return saturated(widened(a) * widened(b)); }

}  // namespace shardwise
