// SPDX-License-Identifier: Apache-2.0
//
// Loops that count, as Python and JAX write scan and fori_loop:
//
//   while(%i = 0, %x = …, %ys = …) cond { return %i < 10 }                 trips: 10, counter: carry 0
//   do { %row = dynamic_slice %xs, %i; …                                   row_of(%i): offset 0, stride 1
//        %4 = dynamic_update_slice %ys, %y, %i; return %i + 1, …, %4 }     outputs: carry 2
//
// The counter starts at a constant, is compared with a constant, and grows or falls by a constant in each trip. A
// constant may also be a carry that the body returns unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// An integer that is offset + t * stride in trip t, and a number of its dtype in every trip.
struct LinearInteger {
  int64_t offset = 0;
  int64_t stride = 0;
  friend bool operator==(const LinearInteger&, const LinearInteger&) = default;
};

// A carry of rows. The body replaces a different row in each trip, all rows in all trips, and reads none.
struct StackedOutput {
  size_t carry = 0;
  OpId write;         // the dynamic_update_slice
  LinearInteger row;  // its index
};

struct CountedLoop {
  size_t counter = 0;  // a carry
  int64_t trips = 0;
  std::vector<bool> is_invariant;                       // by carry: the body returns it unchanged
  std::vector<std::optional<LinearInteger>> inductions;  // by carry: scalars that grow by a constant
  std::vector<StackedOutput> outputs;
};

// None for a loop that does not count, or whose counter would leave its dtype.
std::optional<CountedLoop> counted_loop(const OpView& loop);

// Scalars of a counted loop's body in terms of the trip. Sees through conversions and JAX's wrapping of negative
// indices (select(i < 0, i + n, i)).
class LinearIntegers {
 public:
  LinearIntegers(const OpView& loop, const CountedLoop& counted) : loop_(loop), counted_(counted) {}
  std::optional<LinearInteger> operator()(ValueId value) { return evaluate(value, 0); }
  // Whether dynamic_slice or dynamic_update_slice reads or writes one whole row of dim 0, a different one in each trip.
  bool visits_distinct_rows(OpId slice);

 private:
  std::optional<LinearInteger> evaluate(ValueId value, int depth);
  std::optional<LinearInteger> compute(ValueId value, int depth);
  std::optional<LinearInteger> compute_select(const OpView& select, int depth);

  OpView loop_;
  const CountedLoop& counted_;
  std::unordered_map<ValueId, std::optional<LinearInteger>> known_;
};

}  // namespace shardwise
