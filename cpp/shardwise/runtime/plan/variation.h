// SPDX-License-Identifier: Apache-2.0
//
// Along which axes the values of a local program differ from device to device, before anything runs.
//
//   %1 = axis_index {x}                  {x}
//   %2 = add %1, %arg0                   {x, y}     %arg0 is sharded along y
//   %3 = all_reduce {x} %2               {y}
//
// An argument of a function varies along the axes of all its operands, those of every call. A result of an earlier call
// may then vary along more axes than were known at that call: all functions are walked again until nothing changes.
//
// A carry of a loop varies along the axes of its initial value and of what the body returns for it, which may depend on
// other carries: their axes are a fixed point. The regions of loops and branches are walked like main. Whether a region
// runs must be the same on all devices, so a predicate that varies is an error.
//
// A process that owns some devices only (DeviceSet) has one shard for all positions along a pinned axis.
#pragma once

#include <unordered_map>

#include "shardwise/ir/op_def.h"
#include "shardwise/runtime/collective_call.h"

namespace shardwise {

struct Variation {
  Digits digits;
  DigitSet free = 0;              // digits that are not pinned
  std::vector<DigitSet> varying;  // by value index; free digits
  std::unordered_map<OpId, CollectiveCall> collectives;
  DeviceOrders orders;  // of other meshes than that of the run
};

// `everywhere` makes all values vary along all digits.
Variation find_variation(const Module& module, const Mesh& mesh, AxisSpan pinned, bool everywhere);

}  // namespace shardwise
