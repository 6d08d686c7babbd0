// SPDX-License-Identifier: Apache-2.0
//
// A way to compute one op, placed: what is priced, and what a Choice keeps of the best one.
//
//   dot_general, k: "model"     operands <[{}, {"model"}]>, <[{"model"}, {}]>   results <[{}, {}], unreduced {"model"}>
#pragma once

#include "shardwise/choice/candidates/compute_sharding.h"
#include "shardwise/choice/choice.h"

namespace shardwise {

struct Candidate {
  OpChoice choice;
  bool passes = false;  // reductions that are pending at operands stay pending
  double work = 0;      // of one device: ComputeSharding::local_work
};

Candidate candidate_of(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                       const ComputeSharding& compute, const Pending& pending);
// All tensors of an op on every device, as an op without a rule is computed.
OpChoice replicated_choice(ProgramPlacements& placements, const OpView& op);

// Whether the addends of the results are kept in a wider type until they are reduced, which is at once.
bool has_wide_addends(const ProgramPlacements& placements, const OpView& op, const OpChoice& choice);

}  // namespace shardwise
