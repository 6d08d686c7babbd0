// SPDX-License-Identifier: Apache-2.0
//
// Checks that a Choice is complete and possible, whoever made it: a walk or a solver. `choose` does so where
// SHARDWISE_VERIFY is set.
//
//   %0 = dot_general %x, %w     ops[dot_general]   %x <[{"data"}, {}]>, %w <[{}, {}]>   result <[{}, {"data"}]>
//   // ShardingError: stablehlo.dot_general: its operands and results must have placements that its sharding rule or a
//   // method allows, got …
//
// Each op of the functions that main calls has an entry, but constants. Its placements fit the types and are of meshes of the
// program. Annotations, calls, branches and loops have the placements that they ask for, and the results of their regions
// agree. Each version that something needs is made in a region around it, from one that is there.
#pragma once

#include "shardwise/choice/choice.h"
#include "shardwise/choice/op_linearity.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

// Throws ShardingError at the op. The module is the one that was chosen for.
void verify_choice(const Module& module, const Choice& choice);

// Whether the rule of the op, or the method that was chosen, computes it in these placements.
bool is_possible(const ProgramPlacements& placements, const ProgramLinearity& linearity, const OpView& op,
                 const OpChoice& choice);

}  // namespace shardwise
