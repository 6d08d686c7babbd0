// SPDX-License-Identifier: Apache-2.0
//
// The best precision that a result can have.
//
//   func.func @main(%x: tensor<8xf32>) -> tensor<f64> {
//     %0 = stablehlo.reduce … add … : tensor<f32>
//     %1 = stablehlo.convert %0 : (tensor<f32>) -> tensor<f64>
//     return %1
//   }
//
// This function returns float64, but sums in float32: coarsest_floats gives {f32}. A test must compare with float32's
// rounding.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/base/dtype.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// For each result of main, the float dtype with the fewest significand bits among the values that it depends on; none
// if none of them is a float. Values inside regions count as the op that owns the region.
std::vector<std::optional<DType>> coarsest_floats(const Module& module);

}  // namespace shardwise
