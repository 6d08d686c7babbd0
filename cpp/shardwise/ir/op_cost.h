// SPDX-License-Identifier: Apache-2.0
//
// What one execution of an op takes, as counts that no hardware has gone into (analysis/op_time.h makes times of them):
//
//   dot_general tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>     matrix 1024; touched 64, 256, 128
//   tanh        tensor<1024xf32>                                             transcendental 1024; touched 4096, 4096
//   gather      64 rows of tensor<50000x32xf32>                              touched 8192, 256, 8192: not the table
//
// OpDef::cost counts them for the types of one device, also of a global op:
//
//   op: dot_general tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
//   op.def().cost(op, LocalTypes(op, {<2x8xbf16>, <8x16xbf16>, <2x16xbf16>}))     matrix 512; touched 32, 256, 64
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// The types of an op's operands and results on one device, padding included. What the attributes of a global op state of
// sizes, such as the limits of a slice, is not of these types.
class LocalTypes {
 public:
  // `types`: operands first. They and the context of the op's module must outlive it.
  LocalTypes(const OpView& op, std::span<const TypeId> types)
      : context_(&op.module().context()), types_(types), operand_count_(op.operand_count()) {}
  size_t count() const { return types_.size(); }
  const TensorType& tensor(size_t t) const { return context_->type(types_[t]); }
  const TensorType& operand(size_t i) const { return tensor(i); }
  const TensorType& result(size_t i = 0) const { return tensor(operand_count_ + i); }

 private:
  const Context* context_;
  std::span<const TypeId> types_;
  size_t operand_count_;
};

// All counts saturate (base/quantity.h).
struct OpCost {
  // Operations on numbers, by the unit of a device that computes them.
  int64_t matrix = 0;                 // products that are summed: a multiplication and an addition are two
  int64_t vector = 0;                 // any other operation on an element
  int64_t transcendental = 0;         // functions that are a series, such as exp and tanh: one for each element
  std::vector<int64_t> touched = {};  // bytes that are read of each operand, then those written of each result

  int64_t flops() const;
  int64_t bytes() const;
};

// The op's own types, operands first.
std::vector<TypeId> own_types(const OpView& op);

}  // namespace shardwise
