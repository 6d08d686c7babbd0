// SPDX-License-Identifier: Apache-2.0
//
// Loops that count, as Python and JAX write scan and fori_loop:
//
//   while(%i = 0, %n = 10, %x = …) cond { return %i < %n }     trips: 10, counter: carry 0, is_invariant: carry 1
//   do { %k = 9 - %i; …; return %i + 1, %n, … }                %k: offset 9, stride -1
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

struct CountedLoop {
  size_t counter = 0;  // a carry
  int64_t trips = 0;
  std::vector<bool> is_invariant;                        // by carry: the body returns it unchanged
  std::vector<std::optional<LinearInteger>> inductions;  // by carry: scalars that grow by a constant
};

// None for a loop that does not count, or whose counter would leave its dtype.
std::optional<CountedLoop> counted_loop(const OpView& loop);

// The number of trips of any loop, where the program says it: of a counted loop, or of a scan.
std::optional<int64_t> trip_count(const OpView& loop);

// Scalars of a counted loop's body in terms of the trip. Sees through conversions and JAX's wrapping of negative
// indices (select(i < 0, i + n, i)).
class LinearIntegers {
 public:
  LinearIntegers(const OpView& loop, const CountedLoop& counted);
  std::optional<LinearInteger> operator()(ValueId value) { return evaluate(value, 0); }

 private:
  std::optional<LinearInteger> evaluate(ValueId value, int depth);
  std::optional<LinearInteger> compute(ValueId value, int depth);
  std::optional<LinearInteger> compute_select(const OpView& select, int depth);

  OpView loop_;
  RegionId body_;
  const CountedLoop& counted_;
  std::unordered_map<ValueId, std::optional<LinearInteger>> known_;
};

}  // namespace shardwise
