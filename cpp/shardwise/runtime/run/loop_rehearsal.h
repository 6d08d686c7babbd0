// SPDX-License-Identifier: Apache-2.0
//
// The trips of a loop in a rehearsal (memory/allocation_log.h), which has no values to decide by when the loop ends.
//
//   while(%i = %0, %x = %1) do {… return %i + 1, %y}      10^6 trips
//     trip 1      frees nothing of %0 and %1, which are the caller's
//     trip 2      frees what trip 1 made
//     trip 3      shares buffers as trip 2 did: so do all later ones
#pragma once

#include <functional>

#include "shardwise/runtime/run/slots.h"

namespace shardwise {

// Runs trips until they allocate alike.
void rehearse_trips(const Slots& slots, const Loop& loop, const std::function<void(int64_t trip)>& run_trip);

}  // namespace shardwise
