// SPDX-License-Identifier: Apache-2.0
//
// Ops that make a result of one smaller operand, or that only move its elements. They are computed again where a user needs the
// result in another placement, if the operand costs less there. So is a chain of elementwise ops and such ops whose first
// operands are whole on each device, or constants:
//
//   %1 = convert %0 : bf16 -> f32                        %1 as <[{"x"}, {}]>  from  %0 as <[{"x"}, {}]>
//   %1 = broadcast_in_dim %0, dims = [1] : 8 -> 4x8      %1 as <[{"x"}, {}]>  from  %0 as <[{}]>, which has no such dim
//
//   %1 = transpose %0                                    %1 as <[{}, {"x"}]>  from  %0 as <[{"x"}, {}]>, which is there
//
// The operand moves instead of the result, or nothing moves.
#pragma once

#include <vector>

#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// The operands of such an op, and the placements of them that make this part of the result.
struct ComputedAgain {
  struct Operand {
    ValueId value;
    PlacementId placement;
  };
  std::vector<Operand> operands;  // none: it cannot be made like this
  bool is_of_less = false;        // of one operand that is smaller, or has the same elements
  bool copies = false;            // elements; then nothing is computed twice
  explicit operator bool() const { return !operands.empty(); }
};
ComputedAgain computed_again(const OpView& op, PlacementId result, const ProgramPlacements& placements);

}  // namespace shardwise
