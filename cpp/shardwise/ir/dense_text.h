// SPDX-License-Identifier: Apache-2.0
//
// Constants as MLIR text, both ways:
//
//   dense<1.500000e+00> : tensor<4xf32>              a splat
//   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>        all elements
//   dense<0x7FC00000> : tensor<f32>                  bits, for NaN and infinities
//   dense<(1.000000e+00,-2.000000e+00)> : tensor<2xcomplex<f32>>
//   dense<[1, 0]> : tensor<2xindex>                  a layout
//   dense<"0x0000803F00000040"> : tensor<2xf32>      raw little-endian bytes, for more than 100 elements
//
// Floats print as MLIR prints them: six digits if that reads back as the same value, else the fewest digits that do.
#pragma once

#include <optional>
#include <string>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/text_reader.h"

namespace shardwise {

void print_dense(std::string& out, const DenseAttr& attribute);  // dense<...> : tensor<...>
// One float of `dtype`, which is exact in `value`.
void print_float(std::string& out, DType dtype, double value);

// A float of `dtype` as a double: from its bits, or the nearest one to `value` (nothing beyond the largest).
double float_of_bits(DType dtype, uint64_t bits);
std::optional<double> nearest_float(DType dtype, double value);

DenseAttr parse_dense(TextReader& reader);  // behind the word `dense`

}  // namespace shardwise
