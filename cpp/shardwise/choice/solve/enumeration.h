// SPDX-License-Identifier: Apache-2.0
//
// The cheapest picks of a small problem (core_problem.h) by trying all of them, but for those that begin with more cost or
// memory than the best ones end with.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/choice/solve/core_problem.h"

namespace shardwise {

bool is_enumerable(const CoreProblem& problem);

// None if all picks are forbidden or use too much memory.
std::vector<uint32_t> cheapest_by_enumeration(const CoreProblem& problem);

}  // namespace shardwise
