// SPDX-License-Identifier: Apache-2.0
//
// What it takes to run a step of a local program once more, in picoseconds: an op, a chain of elementwise ops with the
// memory at its border, a collective, or a loop with its trips.
#pragma once

#include <cstdint>

#include "shardwise/analysis/live_ranges.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

int64_t step_ps(const Module& local, const LiveRanges& ranges, const LiveStep& step, const Hardware& hardware);

}  // namespace shardwise
