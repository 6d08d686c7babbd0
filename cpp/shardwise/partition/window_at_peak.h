// SPDX-License-Identifier: Apache-2.0
//
// Lowers the peak of a local program's memory by a windowed product (window_einsums.h), where an operand that is gathered, or a
// result that is still to be scattered, is alive there:
//
//   %w = all_gather %0              512 MiB     ┐ at the peak      ->    two blocks of 64 MiB, one of which travels
//   %1 = dot_general %a, %w                     ┘
#pragma once

#include <optional>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/choice/memory/memory_plan.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// Writes the window that frees most. None if no window frees anything that is alive at the peak.
std::optional<RepeatedRow> window_at_peak(Module& local, const LiveWalk& walk, const Hardware& hardware);

}  // namespace shardwise
