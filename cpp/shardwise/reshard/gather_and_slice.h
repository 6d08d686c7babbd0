// SPDX-License-Identifier: Apache-2.0
//
// The plan that always works: complete reductions, gather the dims that must change, slice.
#pragma once

#include "shardwise/reshard/problem.h"

namespace shardwise {

ReshardPlan gather_and_slice(const ReshardProblem& problem);

}  // namespace shardwise
