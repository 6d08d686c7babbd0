// SPDX-License-Identifier: Apache-2.0
//
// Price: what a step of a program costs, as integers, so that two machines that compare prices choose alike.
//
//   const Price gather{.ps = picoseconds(7'340'032, 450'000'000'000), .bytes = 7'340'032, .rounds = 1};
//   gather.ps                    // 16'311'183: ceil(7340032 B / 450 GB/s)
//   gather * 36 < gather * 37    // true: fields are compared one after the other, time first
//   to_text(gather * 36)         // "587 us, 252 MiB, 36 rounds"
//
// Quantities are at least 0 and at most kSaturated: sums and products stop there (the first of them that would not fit
// 64 bits is far beyond any program), so that a price of sizes near 2^62 is huge instead of negative. Such a price is
// printed with ">=".
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>

#include "shardwise/base/quantity.h"

namespace shardwise {

// A count that engines hold as a double (flops, bytes), rounded up. NaN is kSaturated: an unknown cost is not free.
constexpr int64_t whole_quantity(double quantity) {
  if (quantity <= 0) return 0;
  if (!(quantity < static_cast<double>(kSaturated))) return kSaturated;
  const auto whole = static_cast<int64_t>(quantity);
  return whole + (static_cast<double>(whole) < quantity ? 1 : 0);
}

// ceil(quantity / rate) in picoseconds, for a rate per second: flops or bytes. kSaturated where the rate is not
// positive.
constexpr int64_t picoseconds(int64_t quantity, int64_t rate) {
  constexpr Wide128 kPerSecond = 1'000'000'000'000;
  if (rate <= 0) return quantity > 0 ? kSaturated : 0;
  return saturated((widened(quantity) * kPerSecond + widened(rate) - 1) / widened(rate));
}

struct Price {
  int64_t ps = 0;        // picoseconds
  int64_t bytes = 0;     // received by one device
  int64_t rounds = 0;    // messages that wait for each other
  int64_t work = 0;      // flops of one device
  int64_t position = 0;  // breaks ties: places in an order that does not depend on ids

  friend constexpr auto operator<=>(const Price&, const Price&) = default;

  constexpr Price& operator+=(const Price& other) {
    ps = saturated_sum(ps, other.ps);
    bytes = saturated_sum(bytes, other.bytes);
    rounds = saturated_sum(rounds, other.rounds);
    work = saturated_sum(work, other.work);
    position = saturated_sum(position, other.position);
    return *this;
  }
  friend constexpr Price operator+(Price a, const Price& b) { return a += b; }

  // The price of so many executions.
  friend constexpr Price operator*(const Price& price, int64_t trips) {
    return {saturated_product(price.ps, trips), saturated_product(price.bytes, trips),
            saturated_product(price.rounds, trips), saturated_product(price.work, trips),
            saturated_product(price.position, trips)};
  }

  constexpr bool is_saturated() const { return std::max({ps, bytes, rounds, work, position}) >= kSaturated; }
};

// Text for people, to three digits. Zero bytes and rounds are left out, and work that is not saturated.
//   "1.24 ms, 616 MiB, 3 rounds"    "0 ps"    ">= 4.61e+06 s, 12 B, 1 round"
std::string to_text(const Price& price);
std::string duration_text(int64_t ps);       // "1.24 ms", "16.3 us", "590 ps", "3.5e+03 s"
std::string byte_count_text(int64_t bytes);  // "616 MiB", "512 B"

}  // namespace shardwise
