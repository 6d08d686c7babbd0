// SPDX-License-Identifier: Apache-2.0
//
// The digits of a program: its mesh axes, cut wherever one of its shardings or collectives cuts them. Sets of digits
// are bit masks. The plan of a program uses them to track along which digits a value varies.
//
//   x = 8 and y = 2; the program uses "x":(1)2, "x" and "y":
//     digits                        0 = "x":(1)2   1 = "x":(2)4   2 = "y"
//     touched({"x"})                0b011
//     axes(0b101)                   {"x":(1)2, "y"}
//
// An axis with cuts that no single split has, such as (1)2 and (1)3 of 6, stays whole. It is one digit, which such a
// sub-axis touches but does not cover.
#pragma once

#include <vector>

#include "shardwise/mesh/axis.h"

namespace shardwise {

using DigitSet = uint64_t;

class Digits {
 public:
  Digits() = default;
  Digits(const Mesh& mesh, AxisSpan used);  // MeshError for more than 64

  size_t size() const { return digits_.size(); }
  const AxisRef& operator[](size_t i) const { return digits_[i]; }
  DigitSet all() const;
  DigitSet touched(AxisSpan axes) const;  // digits with any part in `axes`
  DigitSet covered(AxisSpan axes) const;  // digits inside one of `axes`
  AxisList axes(DigitSet set) const;      // in mesh order, not merged
  int64_t count(DigitSet set) const;      // product of their sizes

 private:
  std::vector<AxisRef> digits_;  // of size > 1, in mesh order
};

}  // namespace shardwise
