// SPDX-License-Identifier: Apache-2.0
//
// Random operands of collectives, on random meshes cut into random digits.
#pragma once

#include <vector>

#include "runtime/simulator.h"

namespace shardwise::testing {

constexpr int kRandomCases = 100;
constexpr DType kDTypes[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32,  DType::kI64, DType::kU8, DType::kU16,
                             DType::kU32,  DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
constexpr Reducer kReducers[] = {Reducer::kSum, Reducer::kProd, Reducer::kMax,
                                 Reducer::kMin, Reducer::kAnd,  Reducer::kOr};

struct Case {
  MeshPtr mesh;
  AxisList digits;  // of the whole mesh
  Shards operand;   // varies along some of them
};

inline Case random_case(Random& random, DType dtype, Dims local) {
  Case c;
  c.mesh = random_mesh(random);
  c.digits = random_digits(random, *c.mesh);
  c.operand = random_shards(random, dtype, sorted(some_of(random, c.digits)), local);
  return c;
}

inline Reducer random_reducer(Random& random, DType dtype) { return kReducers[below(random, is_float(dtype) ? 4 : 6)]; }

// Digits of one axis as one ref in half of the cases, as a program may spell them: {"x":(1)2, "x":(2)4} or {"x"}.
inline AxisList respelled(Random& random, const AxisList& axes) {
  if (below(random, 2) == 0) return axes;
  AxisList merged;
  append_merged(merged, axes);
  return merged;
}
inline std::vector<AxisList> respelled(Random& random, std::vector<AxisList> dims) {
  for (AxisList& dim : dims) dim = respelled(random, dim);
  return dims;
}

// Hands the axes out to the dims.
inline std::vector<AxisList> deal(Random& random, const AxisList& axes, int64_t ndim) {
  std::vector<AxisList> dims(static_cast<size_t>(ndim));
  for (const AxisRef& axis : axes) dims[static_cast<size_t>(below(random, ndim))].push_back(axis);
  return dims;
}

}  // namespace shardwise::testing
