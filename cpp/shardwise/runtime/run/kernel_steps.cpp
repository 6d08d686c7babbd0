// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/kernel_steps.h"

#include <algorithm>

#include "shardwise/analysis/rehearsed_kernel.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {
namespace {

int64_t bytes_of_one_shard(const StepOperands& operands, std::span<const TensorType> results) {
  int64_t bytes = 0;
  for (const TensorType& type : results) bytes += type.size() * item_size(type.dtype);
  for (size_t i = 0; i < operands.size(); ++i) {
    bytes += element_count(operands[i].local_shape()) * item_size(operands[i].dtype());
  }
  return bytes;
}

}  // namespace

void KernelSteps::run(const Step& step, const KernelCall& call) {
  // Merging was possible by types; now the shards must also be adjacent in memory.
  if (call.merge && run_merged(step, call)) return;
  if (step.axes.empty() && call.reduced.empty()) return run_whole(step, call);
  // The result does not vary along the reduced axes, but without a merge each partial result is computed first.
  const AxisList axes = in_mesh_order(joined(step.axes, call.reduced));
  operands_.clear();
  for (size_t i = 0; i < step.inputs.size(); ++i) operands_.push_back(slots_.read(step, i, axes));
  std::vector<Shards> results =
      call_per_shard(step, {call.kernel, call.results, call.work * static_cast<double>(product(axes))}, axes);
  for (size_t i = 0; i < results.size(); ++i) {
    Shards& result = results[i];
    if (!call.reduced.empty()) result = VirtualCommunicator().all_reduce(result, call.reduced, call.reducer);
    slots_[step.outputs[i]] = call.reduced.empty() ? std::move(result) : result.along(step.axes);
  }
}

// A step whose values are the same on all devices of this process.
void KernelSteps::run_whole(const Step& step, const KernelCall& call) {
  operands_.clear();
  for (size_t i = 0; i < step.inputs.size(); ++i) operands_.push_back(slots_.read(step, i, step.axes));
  call_once(step, call.kernel, call.results);
  for (size_t i = 0; i < results_.size(); ++i) slots_[step.outputs[i]] = Shards(std::move(results_[i]));
}

bool KernelSteps::run_merged(const Step& step, const KernelCall& call) {
  const Merge& merge = *call.merge;
  std::vector<const Shards*> operands;
  operands.reserve(step.inputs.size());
  for (uint32_t slot : step.inputs) operands.push_back(&slots_[slot]);
  std::vector<size_t> order;
  auto merged = merged_operands(merge, operands, order);
  if (!merged) return false;
  operands_ = std::move(*merged);
  for (uint32_t slot : step.inputs) {  // so that a kernel may take the memory
    if (is_dead_after(step, slot)) slots_[slot] = Shards();
  }
  const AxisList rest = unmerged_axes(merge, step.axes);
  if (rest.empty()) {
    // An operand that varies along no merged axis is the same for all.
    for (Shards& operand : operands_) {
      if (!operand.axes().empty()) operand = operand.along(rest);
    }
    call_once(step, merge.kernel, merge.results);
    for (size_t i = 0; i < results_.size(); ++i) {
      slots_[step.outputs[i]] = unmerged_result(merge, order, i, Shards(std::move(results_[i])), step.axes);
    }
    return true;
  }
  // An operand that does not vary along the axes that stay apart is given to each of these calls.
  for (Shards& operand : operands_) operand = operand.along(rest);
  const double work = call.work * static_cast<double>(product(step.axes) * product(call.reduced));
  const std::vector<Shards> results = call_per_shard(step, {merge.kernel, merge.results, work}, rest);
  for (size_t i = 0; i < results.size(); ++i) {
    slots_[step.outputs[i]] = unmerged_result(merge, order, i, results[i], step.axes);
  }
  return true;
}

// Computes `results_` from `operands_`, which are unsharded.
void KernelSteps::call_once(const Step& step, const Kernel& kernel, std::span<const TensorType> results) {
  results_.clear();
  if (is_rehearsal()) {
    for (Shards& result : call_per_shard(step, {kernel, results, 0}, {})) {
      results_.push_back(std::move(result).release_stack());
    }
    return;
  }
  OneCallContext context(*module_.op(step.op).def, operands_, results, results_, slots_.poison());
  kernel(context);
  context.check_results();
  // They would keep their buffers alive until the next kernel runs.
  operands_.clear();
}

// The results of `operands_`, which are indexed by `axes`.
std::vector<Shards> KernelSteps::call_per_shard(const Step& step, const ShardCalls& calls, const AxisList& axes) {
  const OpDef& def = *module_.op(step.op).def;
  // An op without results prints, or does nothing. All devices hold the same operands unless its rule splits them: it
  // prints once, also if each device computes for itself.
  const bool is_effect = calls.results.empty();
  if (is_effect && is_rehearsal()) {
    operands_.clear();
    return {};
  }
  const bool runs_once = is_effect && sharding_rule(OpView(module_, step.op)).empty();
  const StepOperands operands(operands_);
  StepResults results(def, calls.results, axes, slots_.poison());
  const bool is_left_out = is_rehearsal() && leaves_out(bytes_of_one_shard(operands, calls.results));
  const auto run_shards = [&](int64_t begin, int64_t end) {
    std::vector<NdArray> shard(operands.size());
    for (int64_t k = begin; k < end; ++k) {
      for (size_t i = 0; i < operands.size(); ++i) shard[i] = operands[i][k];
      if (is_left_out) {
        ShardKernelContext run(operands, shard, results, k);
        rehearse_kernel(def, calls.kernel, calls.results.size(), run);
        continue;
      }
      ShardKernelContext context(operands, shard, results, k);
      calls.kernel(context);
    }
  };
  const int64_t count = runs_once ? 1 : product(axes);
  int64_t first = 0;
  bool in_parallel = runs_in_parallel(count, calls.work);
  if (in_parallel && def.traits.movement) {  // the first shard shows whether the kernel only makes a view
    run_shards(0, 1);
    first = 1;
    in_parallel = !results.is_view(0, 0);
  }
  if (in_parallel) {
    parallel_for(count - first, 1, [&](int64_t begin, int64_t end) { run_shards(first + begin, first + end); });
  } else {
    run_shards(first, count);
  }
  std::vector<Shards> taken;
  for (size_t i = 0; i < calls.results.size(); ++i) taken.push_back(results.take(i));
  operands_.clear();
  return taken;
}

}  // namespace shardwise
