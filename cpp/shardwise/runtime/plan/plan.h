// SPDX-License-Identifier: Apache-2.0
//
// The plan of a local program: all decisions that are made once, before the first run.
//
//   %2 = stablehlo.dot_general %0, %1            kernel      varying {x}      frees %0, %1
//   %3 = stablehlo.add %2, %bias                 ┐
//   %4 = stablehlo.maximum %3, %zero             ┘ fused     varying {x}      frees %2
//   %5 = "shardwise.all_reduce"(%4) {x}          collective  varying {}       frees %4
//
// Values that outlive a step have a slot; intermediates of a fused chain and constants inside it have none. The size of
// a plan does not depend on the number of devices. Kernels are prepared here: a run reads no attribute.
//
// A loop or a branch is one step with a block of steps per region. All blocks of a plan share its slots, so a capture
// is only the slot of a value from around the block. A carry has one slot, which is that of the arguments of both
// regions and of the loop's result:
//
//   %5 = while(%i = %0) cond {…} do {… return %9}     enter %0 → %5     condition, body, %9 → %5, condition, …
//
// A scan has rows beside its carries: before each trip a row of each input becomes a view in a slot of its own, and
// after it a row of each output is copied to its place in one buffer.
//
// A call is one step, too. All calls of a function share one block and its slots: a function does not call itself, so
// that it runs once at a time.
//
//   %6 = call @f(%5)                                     enter %5 → %arg0     the block of @f     leave %9 → %6
//
// Each block frees its values at their last use in the block; the captures of a loop are freed after it.
#pragma once

#include <vector>

#include "shardwise/runtime/plan/step.h"

namespace shardwise {

struct PlanOptions {
  bool fuse = true;
  bool faithful = false;  // everything varies along everything
  AxisList pinned = {};   // DeviceSet::pinned
  bool batch = false;     // small all_reduces travel together (batch_reductions.h)
};

// UnsupportedError for an op that cannot run.
Plan make_plan(const Module& module, const Mesh& mesh, const PlanOptions& options);

}  // namespace shardwise
