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
#pragma once

#include <optional>
#include <vector>

#include "shardwise/runtime/collective_call.h"
#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/merge.h"
#include "shardwise/tile/program.h"

namespace shardwise {

struct Step {
  enum class Kind : uint8_t { kKernel, kFused, kCollective };
  Kind kind = Kind::kKernel;
  OpId op;                            // of a fused chain: the last one
  std::vector<uint32_t> inputs = {};  // slots
  std::vector<uint32_t> outputs = {};
  std::vector<uint32_t> dead = {};  // slots that are not read after this step
  AxisList axes = {};               // axes along which the results vary, and along which a kernel's operands are read
  int64_t fused_ops = 1;
  double work = 0;                       // flops and bytes of one shard, about
  TileProgram program = {};              // kFused
  CollectiveCall collective = {};        // kCollective
  Kernel kernel = {};                    // kKernel
  std::vector<TensorType> results = {};  // kKernel: of one shard
  std::optional<Merge> merge = {};       // kKernel: how the shards can share a call
};

struct Plan {
  Digits digits;
  DigitSet free = 0;  // digits along which this process owns several devices: all, but for the pinned ones
  std::vector<Step> steps;
  std::vector<ValueId> slots;  // the value of each slot
  std::vector<DigitSet> slot_varying;
  std::vector<uint32_t> arguments;  // slots, in order
  std::vector<uint32_t> results;
};

struct PlanOptions {
  bool fuse = true;
  bool faithful = false;  // everything varies along everything
  AxisList pinned = {};   // DeviceSet::pinned
};

// UnsupportedError for an op that cannot run.
Plan make_plan(const Module& module, const Mesh& mesh, const PlanOptions& options);

}  // namespace shardwise
