// SPDX-License-Identifier: Apache-2.0
//
// Compiles a region of scalar elementwise ops to a program of the tile evaluator, which runs it on many elements at
// once.
//
//   ^bb0(%a: tensor<f32>, %b: tensor<f32>):             inputs %a, %b
//     %0 = stablehlo.multiply %a, %b : tensor<f32>      output %1
//     %1 = stablehlo.add %a, %0 : tensor<f32>
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/tile/program.h"

namespace shardwise {

// The name of an op that is not elementwise, which is why the region has no tile program; or empty. An elementwise op
// that others make up may get one: these others have one.
std::string_view not_in_tiles(const Module& module, RegionId region);
// The same, when calls, branches and copies of scalars will have been replaced (transforms/flatten_combiners.h).
std::string_view never_in_tiles(const Module& module, RegionId region);
// Whether the op moves a scalar and changes nothing, such as a reshape of tensor<f32> to tensor<f32>.
bool is_scalar_copy(const OpView& op);
// Of an op with such a region (OpDef::verify_runnable): UnsupportedError unless the region has a tile program.
void verify_region_tiles(const OpView& op);
TileProgram region_tiles(const Module& module, RegionId region);

}  // namespace shardwise
