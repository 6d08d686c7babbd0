// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/chain_steps.h"

#include <algorithm>
#include <array>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/base/array_view.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/kernel_context.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// The scalar operand of a chain (a select's predicate, a clamp's bounds), with one stride-0 dim for each dim of the
// result.
NdArray stretched(NdArray array, DimSpan shape) {
  // A scalar operand has the dims of the axes only: [x=4] becomes [x=4, 8, 16] with two strides of 0.
  for (size_t d = array.shape().size(); d < shape.size(); ++d) array = insert_dim(array, d, shape[d]);
  return array;
}

void run_tiles_of(const FusedChain& chain, std::span<const NdArray> inputs, const NdArray& result, int64_t shards) {
  if (result.size() != 0 && !leaves_out(result.nbytes() / shards))
    run_tiles(chain.program, inputs, std::array{result}, pool_for());
}

}  // namespace

void ChainSteps::run(const Step& step, const FusedChain& chain) {
  if (chain.lanes > 0 && run_contiguous(step, chain)) return;
  bool is_stacked = true;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    inputs_.push_back(slots_.read(step, i, step.axes));
    is_stacked = is_stacked && inputs_.back().is_stacked();
  }
  slots_[step.outputs[0]] = is_stacked ? run_stack(step, chain) : run_list(step, chain);
  // They would keep their buffers alive until the next chain runs.
  inputs_.clear();
  arrays_.clear();
}

// Contiguous arrays, such as a loop's counter, without a look at shapes and strides, which would take longer.
bool ChainSteps::run_contiguous(const Step& step, const FusedChain& chain) {
  addresses_.clear();
  for (uint32_t slot : step.inputs) {
    const Shards& input = slots_[slot];
    if (!input.is_stacked() || input.axes() != step.axes || !input.stacked().is_contiguous()) return false;
    addresses_.push_back(input.stacked().data());
  }
  make_result(step, chain);
  const NdArray& result = slots_[step.outputs[0]].stacked();
  if (leaves_out(result.nbytes() / product(step.axes))) return true;
  const std::array<void*, 1> output{result.data()};
  // Outside loops and functions a workspace is used once, so that none is kept.
  if (!chain.runner) {
    TileRunner(chain.program, chain.lanes).run(addresses_, output, chain.lanes);
    return true;
  }
  std::unique_ptr<TileRunner>& runner = runners_[*chain.runner];
  if (runner == nullptr) runner = std::make_unique<TileRunner>(chain.program, chain.lanes);
  runner->run(addresses_, output, chain.lanes);
  return true;
}

// A contiguous array for the result, in its slot.
void ChainSteps::make_result(const Step& step, const FusedChain& chain) {
  const DType dtype = chain.program.output_dtype(0);
  const auto is_free = [&](const Shards& shards) {
    return shards.stacked().owner().use_count() == 1 && shards.stacked().dtype() == dtype;
  };
  Shards& result = slots_[step.outputs[0]];  // with what the last trip left there
  // In a loop, the slot holds the result of the last trip: its memory serves again unless something else refers to it.
  if (!is_free(result) || !result.stacked().is_contiguous()) result = Shards();
  for (uint32_t slot : step.inputs) {
    if (is_free(result)) break;
    if (is_dead_after(step, slot) && is_free(slots_[slot])) result = std::move(slots_[slot]);
  }
  if (!is_free(result)) result = Shards(step.axes, pooled_empty(dtype, stack_shape(step)));
}

Dims ChainSteps::stack_shape(const Step& step) const {
  return concatenated(sizes_of(step.axes), OpView(module_, step.op).result_type().shape);
}

Shards ChainSteps::run_stack(const Step& step, const FusedChain& chain) {
  const DType dtype = chain.program.output_dtype(0);
  const Dims shape = stack_shape(step);
  for (Shards& input : inputs_) arrays_.push_back(stretched(std::move(input).release_stack(), shape));
  const ChainMemory memory = chain_memory(arrays_, dtype, shape);
  const NdArray result = memory.over ? arrays_[*memory.over] : empty_in_order(dtype, shape, memory.order);
  run_tiles_of(chain, arrays_, result, product(step.axes));
  return {step.axes, result};
}

Shards ChainSteps::run_list(const Step& step, const FusedChain& chain) const {
  const OpView op(module_, step.op);
  const Dims& shape = op.result_type().shape;
  StepResults results(op.def(), {&op.result_type(), 1}, step.axes, slots_.poison());
  const int64_t count = product(step.axes);
  const auto run_shards = [&](int64_t begin, int64_t end) {
    std::vector<NdArray> arrays(inputs_.size());
    for (int64_t k = begin; k < end; ++k) {
      for (size_t i = 0; i < inputs_.size(); ++i) arrays[i] = stretched(inputs_[i][k], shape);
      const NdArray result = results.allocate(0, k);
      run_tiles_of(chain, arrays, result, 1);
    }
  };
  if (runs_in_parallel(count, static_cast<double>(op.result_type().size() * count * chain.ops))) {
    parallel_for(count, 1, run_shards);
  } else {
    run_shards(0, count);
  }
  return results.take(0);
}

}  // namespace shardwise
