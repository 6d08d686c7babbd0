// SPDX-License-Identifier: Apache-2.0
//
// Ops that make much of little, and that are computed again where a user needs the result in another placement:
//
//   %1 = convert %0 : bf16 -> f32                        %1 as <[{"x"}, {}]>  from  %0 as <[{"x"}, {}]>
//   %1 = broadcast_in_dim %0, dims = [1] : 8 -> 4x8      %1 as <[{"x"}, {}]>  from  %0 as <[{}]>, which has no such dim
//
// The operand moves instead of the result, or nothing moves.
#pragma once

#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// The operand of such an op, and the placement of it that makes this part of the result.
struct ComputedAgain {
  ValueId operand;  // none: it cannot be made like this, or not of less
  PlacementId placement;
  bool copies = false;  // elements; then nothing is computed twice
};
ComputedAgain computed_again(const OpView& op, PlacementId result, const ProgramPlacements& placements);

}  // namespace shardwise
