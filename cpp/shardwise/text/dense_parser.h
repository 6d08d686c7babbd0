// SPDX-License-Identifier: Apache-2.0
//
// Reads the constants that ir/dense_printer.h prints, and the other forms that MLIR accepts:
//
//   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>        all elements
//   dense<0x7FC00000> : tensor<f32>                  bits, for NaN and infinities
//   dense<"0x0000803F00000040"> : tensor<2xf32>      raw little-endian bytes
#pragma once

#include "shardwise/ir/attribute.h"
#include "shardwise/text/text_reader.h"

namespace shardwise {

DenseAttr parse_dense(TextReader& reader);  // after the word `dense`

}  // namespace shardwise
