// SPDX-License-Identifier: Apache-2.0
//
// Describes what is known about the elements of a tensor of integers or bools before a program runs. For floats that
// are converted to integers, only `line` is known.
//
//   %i = iota dim = 0 : tensor<64x2xi32>         [0, 63], and along dim 0: 0, 1, …, 63
//   %j = clamp 0, %ids, 9                        [0, 9]
//   %k = concatenate %j, %i, dim = 1             [0, 63]; of column 1 alone: 0, 1, …, 63 along dim 0
//
// A question is about some places of a tensor: at = {kAnyPlace, 1} are those of column 1. ops/shared/known_integers.h
// answers it, by the kernels of elementwise ops, the rules of ops that move elements, and OpDef::integers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "shardwise/base/ndarray.h"
#include "shardwise/ir/module.h"

namespace shardwise {

inline constexpr int64_t kAnyPlace = -1;  // along a dim

struct KnownIntegers {
  // Each element is in [low, high]. Without knowledge these are the ends of int64, also for uint64.
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  // If elements differ along one dim at most: those along it, of the tensor's dtype. One if all are equal.
  std::optional<NdArray> line = {};
  int64_t dim = -1;  // of `line`; -1: all are equal

  // The number that all elements are.
  std::optional<int64_t> number() const { return low == high ? std::optional(low) : std::nullopt; }
};

// Of one op, for OpDef::integers.
class IntegersContext {
 public:
  virtual ~IntegersContext() = default;
  virtual const OpView& op() const = 0;
  virtual const Dims& at() const = 0;  // places of the result, one for each dim
  virtual KnownIntegers operand(size_t i, const Dims& at) = 0;
  // With the bounds of the elements, and without a line that is too long to be looked at. `dim` -1: `line` has one.
  virtual KnownIntegers along(NdArray line, int64_t dim) const = 0;
};

}  // namespace shardwise
