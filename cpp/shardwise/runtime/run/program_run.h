// SPDX-License-Identifier: Apache-2.0
//
// One run of a plan.
//
//   ProgramRun run(module, plan, options, devices, communicator);
//   run.set(plan.arguments[0], shards);
//   run.execute();
//   run.take(plan.main.results[0]);     // Shards
//
// The parts of a run:
//
//   slots.h                the live values: who owns them, moves, what is freed
//   block_runner.h         the steps of a block; loops, branches and calls
//   kernel_steps.h         kernels, merged or once per shard
//   chain_steps.h          fused chains of elementwise ops
//   collective_steps.h     collectives, through the communicator
//   scan_slots.h           the rows of a scan
//   loop_rehearsal.h       the trips of a loop in a rehearsal, which allocates and computes almost nothing
//   trace_recorder.h       the trace
#pragma once

#include "shardwise/runtime/run/block_runner.h"

namespace shardwise {

class ProgramRun {
 public:
  ProgramRun(const Module& module, const Plan& plan, const RunOptions& options, const DeviceSet& devices,
             Communicator& communicator)
      : plan_(plan),
        options_(options),
        slots_(module, plan, devices, options.poison),
        blocks_(module, plan, options, slots_, communicator) {}

  void set(uint32_t slot, Shards shards) { slots_.set(slot, std::move(shards)); }
  void execute();
  const Shards& take(uint32_t slot) const { return slots_[slot]; }

 private:
  const Plan& plan_;
  const RunOptions& options_;
  Slots slots_;
  BlockRunner blocks_;
};

}  // namespace shardwise
