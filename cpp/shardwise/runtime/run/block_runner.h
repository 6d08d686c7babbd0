// SPDX-License-Identifier: Apache-2.0
//
// Runs the blocks of a plan, step by step: loops, branches and calls run the blocks that they hold, for all devices at
// once. A step that fails names its op and the user's line in the error.
//
//   %5 = while(%i = %0) cond {…} do {… return %9}
//     move %0 -> %5, the block of the condition, the block of the body, move %9 -> %5, the condition, …
//
// The parts of a run:
//
//   slots.h                the live values: who owns them, moves, what is freed
//   kernel_steps.h         kernels, merged or once per shard
//   chain_steps.h          fused chains of elementwise ops
//   collective_steps.h     collectives, through the communicator
//   scan_slots.h           the rows of a scan
//   loop_rehearsal.h       the trips of a loop in a rehearsal, which allocates and computes almost nothing
//   rehearsed_loops.h      a loop that was rehearsed before, from the same state
//   step_timer.h           the trace
#pragma once

#include "shardwise/base/error.h"
#include "shardwise/runtime/run/chain_steps.h"
#include "shardwise/runtime/run/collective_steps.h"
#include "shardwise/runtime/run/kernel_steps.h"
#include "shardwise/runtime/run/rehearsed_loops.h"
#include "shardwise/runtime/run/step_timer.h"
#include "shardwise/runtime/run_options.h"

namespace shardwise {

class BlockRunner {
 public:
  BlockRunner(const Module& module, const Plan& plan, const RunOptions& options, Slots& slots,
              Communicator& communicator);

  void run_main();
  int64_t steps() const { return steps_; }  // that ran so far

 private:
  void run(const Block& block);
  void run_steps(const Block& block);
  void run_work(const Step& step, const Loop& loop);
  void run_work(const Step& step, const Branches& branches);
  void run_work(const Step& step, const Call& call);
  template <class Work>
  void run_work(const Step& step, const Work& work);  // of an op, or of a chain of them
  void run_op(const Step& step, const KernelCall& call) { kernels_.run(step, call); }
  void run_op(const Step& step, const FusedChain& chain) { chains_.run(step, chain); }
  void run_op(const Step& step, const CollectiveCall& collective) { collectives_.run(step, collective); }
  void run_trips(const Step& step, const Loop& loop);
  void run_scan(const Step& step, const Loop& loop);
  int64_t rehearsed_branch(OpId op) const;
  int64_t predicate(const Step& step, uint32_t slot) const;  // the same on all devices
  [[noreturn]] void fail_out_of_memory(const Step& step, const OutOfMemoryError& error) const;

  const Module& module_;
  const Plan& plan_;
  const RunOptions& options_;
  Slots& slots_;
  KernelSteps kernels_;
  ChainSteps chains_;
  CollectiveSteps collectives_;
  StepTimer timer_;
  RehearsedLoops rehearsed_;
  int64_t steps_ = 0;
};

}  // namespace shardwise
