// SPDX-License-Identifier: Apache-2.0
//
// The format in which hardware computes a product (dot_general, convolution): that of its operands before they were
// widened. NumPy's `x @ w` of two bfloat16 arrays is recorded as
//
//   %2 = dot_general convert(%x), convert(%w)      product_format: {kBF16}; the converts are part of the product
//   %3 = convert %2 to bf16
//
//   dot_general %x, convert(%w from i8 to bf16)    {kBF16}: an integer is widened to a float before it is multiplied
//
//   dot_general of two float32 arrays              {kF32, is_default_precision}: tf32 or bf16, as the hardware has it
//   … with precision = [HIGHEST, HIGHEST]          {kF32}
#pragma once

#include "shardwise/base/dtype.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct ProductFormat {
  DType dtype = DType::kF32;
  bool is_default_precision = false;
  int64_t repeats = 1;  // products of parts that an algorithm adds up: 3 of bf16_bf16_f32_x3
};
ProductFormat product_format(const OpView& product);

// Whether the op converts to a wider float, or integers to a float that holds each of them. That loses nothing, and
// hardware does it where the result is read: weights in i8 are half the bytes of weights in bf16.
bool is_widening(const OpView& op);

// The value whose elements `value` holds: before widening, and before movement such as a transpose.
ValueId before_widening(const Module& module, ValueId value);

}  // namespace shardwise
