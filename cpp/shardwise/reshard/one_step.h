// SPDX-License-Identifier: Apache-2.0
//
// The plan of one exchange: each device receives the elements of its new tile that its old one does not have.
//
//   (12, 12) on x=3, y=4:  [{"x"}, {"y"}]  ->  [{"y"}, {"x"}]       48 bytes; by gathers and permutes 108
#pragma once

#include "shardwise/reshard/problem.h"

namespace shardwise {

// For a problem that reduces nothing. The bytes are an upper bound where axes are cut in ways that no single split has
// and the devices are too many to count.
ReshardPlan one_exchange(const ReshardProblem& problem);

}  // namespace shardwise
