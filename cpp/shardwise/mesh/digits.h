// SPDX-License-Identifier: Apache-2.0
//
// Digits: axes cut so finely that every axis list at hand is a list of whole digits.
//
//   x = 8 and y = 2; a program uses "x":(1)2, "x" and "y":
//     digits                        0 = "x":(1)2   1 = "x":(2)4   2 = "y"
//     encode({"y", "x"})            {2, 0, 1}; decode gives {"y", "x"} back
//     touched({"x"})                0b011, a set of digits as a bit mask
//     axes(0b101)                   {"x":(1)2, "y"}
//
// The number of digits depends on where axes are cut, not on their size. Lists of digits are the states of the reshard
// search. Sets of digits track along which digits the values of a running program vary.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwise/mesh/axis.h"

namespace shardwise {

using Digit = uint8_t;
using DigitList = SmallVector<Digit, 16>;  // major to minor
using DigitSet = uint64_t;

// `axes` with every ref cut at the borders of `others`; refs of size 1 are dropped. Returns none when no single split
// of an axis has all these borders, such as (1)2 and (1)3 of 6.
std::optional<AxisList> cut_at(AxisSpan axes, AxisSpan others);

// The longest prefix of the axes whose product divides `size`; the axis where it ends may be split.
AxisList dividing_prefix(AxisSpan axes, int64_t size);

class Digits {
 public:
  static constexpr size_t kMost = 64;

  Digits() = default;
  // All axes of the mesh of size > 1, cut at the borders of the used ones. An axis with cuts that no single split has,
  // such as (1)2 and (1)3 of 6, stays whole. It is one digit, which such a sub-axis touches but does not cover. Throws
  // MeshError for more than kMost.
  Digits(const Mesh& mesh, AxisSpan used);
  // The digits of the used axes only, including axes of size 1. Returns none when no single split has all the cuts.
  static std::optional<Digits> covering(AxisSpan used);
  // Cuts the digit that contains `border`, a product of sizes from the front of the axis, where that is a split of it.
  void cut_inside(int32_t axis, int64_t border);

  size_t size() const { return digits_.size(); }
  const AxisRef& operator[](size_t i) const { return digits_[i]; }

  // Lists, in order; every axis is a list of whole digits.
  DigitList encode(AxisSpan axes) const;
  AxisList decode(const DigitList& list) const;  // merged
  int64_t count(const DigitList& list) const;    // product of their sizes

  // Sets, of at most kMost digits.
  DigitSet all() const;
  DigitSet touched(AxisSpan axes) const;  // digits with any part in `axes`
  DigitSet covered(AxisSpan axes) const;  // digits inside one of `axes`
  AxisList axes(DigitSet set) const;      // in mesh order, not merged
  int64_t count(DigitSet set) const;

 private:
  AxisList digits_;  // in mesh order
};

}  // namespace shardwise
