// SPDX-License-Identifier: Apache-2.0
//
// Reads what is alive at the peak of a local program's memory (peak_values.h).
#pragma once

#include <cstdint>
#include <span>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/choice/memory/peak_values.h"
#include "shardwise/cost/hardware.h"

namespace shardwise {

// Without nodes where the peak is at the beginning of the run. `segments`: see segments.h.
PeakValues peak_values(const Module& local, const LiveSteps& steps, const LiveWalk& walk, const Hardware& hardware,
                       std::span<const size_t> donated, int64_t segments = 1);

}  // namespace shardwise
