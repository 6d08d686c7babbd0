// SPDX-License-Identifier: Apache-2.0
//
// Runs the kernels of a plan: one call for each distinct shard, or one for all shards that merge (plan/merge.h).
//
//   %2 = dot_general %0, %1     %0 varies along x = 4, %1 is the same on all devices
//     merged                    one call on the 4 shards of %0 as one matrix
//     else                      4 calls, in parallel if there are at least as many calls as threads and enough work;
//                               otherwise one after another, and each uses all threads
//
// In a rehearsal (memory/allocation_log.h) kernels allocate their results, and compute small ones only.
#pragma once

#include "shardwise/runtime/kernel_context.h"
#include "shardwise/runtime/run/slots.h"

namespace shardwise {

class KernelSteps {
 public:
  KernelSteps(const Module& module, Slots& slots) : module_(module), slots_(slots) {}

  void run(const Step& step, const KernelCall& call);

 private:
  struct ShardCalls {  // of one kernel, for several shards
    const Kernel& kernel;
    std::span<const TensorType> results;
    double work;  // of all calls
  };
  void run_whole(const Step& step, const KernelCall& call);
  bool run_merged(const Step& step, const KernelCall& call);
  void call_once(const Step& step, const Kernel& kernel, std::span<const TensorType> results);
  std::vector<Shards> call_per_shard(const Step& step, const ShardCalls& calls, const AxisList& axes);

  const Module& module_;
  Slots& slots_;
  // These belong to the current step. They are members because a small kernel takes less time than allocating vectors.
  std::vector<Shards> operands_;
  std::vector<NdArray> results_;
};

}  // namespace shardwise
