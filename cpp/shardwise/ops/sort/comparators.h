// SPDX-License-Identifier: Apache-2.0
//
// Comparators of sort that order by keys, which a kernel can sort without evaluating the region:
//
//   ^bb0(%a: f32, %b: f32, %i: i32, %j: i32):         as JAX writes sort((x, i), num_keys=2)
//     %lt = compare LT, %a', %b', TOTALORDER          %a' is %a with 0 for -0 and one NaN for all of them
//     %eq = compare EQ, %a', %b', TOTALORDER
//     %next = compare LT, %i, %j, SIGNED
//     return or(%lt, and(%eq, %next))                 keys: operand 0 {equal_zeros, equal_nans}, operand 1
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

struct SortKey {
  size_t operand = 0;
  bool descending = false;
  bool equal_zeros = false;  // -0 and 0; otherwise -0 is the smaller one
  bool equal_nans = false;   // after infinity; otherwise each is ordered by its bits
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

// The keys, the most significant one first; none for another comparator. A FLOAT comparison orders no NaN, so a sort by
// it may put them anywhere: here, after infinity.
std::optional<std::vector<SortKey>> lexicographic_keys(const Module& module, RegionId comparator);

// Whether a region returns a boolean of scalar arguments. StableHLO's order is both sides of operand 0, then both sides
// of operand 1; dtype_of(i) is that of operand i.
template <class DTypeOf>
bool compares_scalars(const Module& module, const Region& region, const DTypeOf& dtype_of) {
  bool fits = region.results.size() == 1 && module.type(region.results[0]) == TensorType{DType::kBool, {}};
  for (size_t i = 0; fits && i < region.arguments.size(); ++i) {
    fits = module.type(region.arguments[i]) == TensorType{dtype_of(i / 2), {}};
  }
  return fits;
}

}  // namespace shardwise
