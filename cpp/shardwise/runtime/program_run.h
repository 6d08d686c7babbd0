// SPDX-License-Identifier: Apache-2.0
//
// One run of a plan: the live values, and the loop over the steps.
//
//   ProgramRun run(module, plan, options, devices, communicator);
//   run.set(plan.arguments[0], shards);
//   run.execute();
//   run.take(plan.main.results[0]);     // Shards
//
// A fused chain over stacked shards is one pass over all shards. A kernel is called once per distinct shard, or once
// for all shards that merge (merge.h). Calls run in parallel when there are at least as many as threads; otherwise they
// run one after another, and each uses all threads. A loop, a branch or a function is run for all devices at once. In a rehearsal
// (allocation_log.h) nothing is computed, but every buffer is allocated, reused and freed as in a run.
#pragma once

#include <chrono>
#include <functional>

#include "shardwise/base/error.h"
#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/plan/step.h"
#include "shardwise/runtime/run_options.h"

namespace shardwise {

class ProgramRun {
 public:
  ProgramRun(const Module& module, const Plan& plan, const RunOptions& options, const DeviceSet& devices,
             Communicator& communicator);

  void set(uint32_t slot, const Shards& shards);
  void execute();
  const Shards& take(uint32_t slot) const { return slots_[slot]; }

 private:
  void run_block(const Block& block);
  void run_steps(const Block& block);
  void run_step(const Step& step);
  void run_loop(const Step& step, const Loop& loop);
  void run_scan(const Step& step, const Loop& loop);
  void read_rows(const ScanRows& rows, int64_t row);
  void write_rows(const ScanRows& rows, int64_t trips, int64_t row);
  void run_branch(const Step& step, const Branches& branches);
  void run_call(const Step& step, const Call& call);
  void rehearse_trips(const Loop& loop, const std::function<void(int64_t trip)>& run_trip);
  std::vector<int64_t> sharing_of_carries(const Loop& loop) const;
  int64_t rehearsed_branch(OpId op) const;
  int64_t predicate(const Step& step, uint32_t slot) const;  // the same on all devices
  void move(const std::vector<Move>& moves);
  [[noreturn]] void fail_out_of_memory(const Step& step, const OutOfMemoryError& error) const;
  void run_kernel(const Step& step, const KernelCall& call);
  bool run_merged(const Step& step, const KernelCall& call);
  void run_fused(const Step& step, const FusedChain& chain);
  bool run_few_lanes(const Step& step, const FusedChain& chain);
  void run_collective(const Step& step, const CollectiveCall& collective);
  void reduce_together(std::span<const Step> batch);
  Dims stack_shape(const Step& step) const;  // of all shards of the result
  Shards fused_stack(const Step& step, const FusedChain& chain, std::vector<Shards>& inputs);
  Shards fused_list(const Step& step, const FusedChain& chain, const std::vector<Shards>& inputs);
  void run_chain(const FusedChain& chain, std::span<const NdArray> inputs, const NdArray& result, int64_t shards) const;
  Shards read(const Step& step, size_t input);  // moved out when this is its last use
  struct ShardCall {                            // of the kernel for one shard, or for several that are merged
    const Kernel& kernel;
    std::span<const TensorType> results;
    double work;  // of all calls
  };
  std::vector<Shards> call_kernel(const Step& step, const ShardCall& call, std::vector<Shards> shards,
                                  const AxisList& axes);
  void poison_padding(uint32_t slot);
  void free(const std::vector<uint32_t>& dead);
  void trace(const Step& step, std::chrono::steady_clock::time_point begin);

  const Module& module_;
  const Plan& plan_;
  const RunOptions& options_;
  const DeviceSet& devices_;
  Communicator& communicator_;
  std::vector<Shards> slots_;
  std::vector<Shards> moving_;
  std::vector<Shards> reduced_;  // the results of the next all_reduces of a batch, the last one first
  std::vector<const void*> few_lanes_;
  std::vector<std::unique_ptr<TileRunner>> runners_;  // by Step::runner
  std::chrono::steady_clock::time_point start_;
};

}  // namespace shardwise
