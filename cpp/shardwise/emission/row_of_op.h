// SPDX-License-Identifier: Apache-2.0
//
// An op of a local program on one row of its operand, if a row of its result needs no other one:
//
//   %1 = all_gather %0       tensor<80x16x1024xbf16> -> tensor<80x8192x1024xbf16>     operand_dim_of_rows(op, 0): 0
//   %2 = all_gather %row     tensor<1x16x1024xbf16> -> tensor<1x8192x1024xbf16>       emit_row
//
// Along dim 1 there is none: a row of the result is on one device.
#pragma once

#include <cstddef>
#include <optional>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// The dim of the only operand whose row i gives row i of dim `dim` of the only result. None: a row needs others, too.
std::optional<size_t> operand_dim_of_rows(const OpView& op, size_t dim);
// `row`: like the operand, with size 1 in that dim. Returns a value with size 1 in dim `dim`.
ValueId emit_row(Builder& builder, const OpView& op, size_t dim, ValueId row);

}  // namespace shardwise
