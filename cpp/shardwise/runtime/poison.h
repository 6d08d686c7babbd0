// SPDX-License-Identifier: Apache-2.0
//
// Finds reads of padding: rows of a local value that hold nothing of the global one (Module::part). For each value that
// a poisoned run makes:
//
//   padding      17 rows in blocks of 5, device 3
//   garbage      row 15, row 16, ?, ?, ?    becomes    row 15, row 16, NaN, NaN, NaN
//   fill(0)      row 15, row 16, 0, 0, 0    stays; an InternalError that names the op where the rows are not 0
#pragma once

#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/plan/step.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

// `shards` as the value of a slot of the plan.
Shards poisoned(Shards shards, uint32_t slot, const Module& module, const Plan& plan, const DeviceSet& devices);

}  // namespace shardwise
