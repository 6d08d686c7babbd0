// SPDX-License-Identifier: Apache-2.0
//
// Constants as MLIR text, both ways:
//
//   dense<1.500000e+00> : tensor<4xf32>              a splat
//   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>        all elements
//   dense<0x7FC00000> : tensor<f32>                  bits, for NaN and infinities
//   dense<"0x0000803F00000040"> : tensor<2xf32>      raw little-endian bytes, for more than 100 elements
//
// Floats print as MLIR prints them: six digits if that reads back as the same value, else the fewest digits that do.
#pragma once

#include <string>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/text_reader.h"

namespace shardwise {

void print_dense(std::string& out, const NdArray& data);  // dense<...> : tensor<...>
// One float of `dtype`, which is exact in `value`.
void print_float(std::string& out, DType dtype, double value);

NdArray parse_dense(TextReader& reader);  // behind the word `dense`

}  // namespace shardwise
