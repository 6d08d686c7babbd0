// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/rehearsal.h"

#include <algorithm>
#include <vector>

#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

struct HasAllResults {};  // thrown through a kernel, which would compute now

class RehearsedKernelContext final : public KernelContext {
 public:
  RehearsedKernelContext(const StepOperands& all, std::span<const NdArray> operands, StepResults& results,
                         int64_t shard)
      : context_(all, operands, results, shard), results_(results), shard_(shard), has_(results.size(), false) {}

  const NdArray& operand(size_t i) const override { return context_.operand(i); }

  // The kernel writes the taken buffer as soon as it is a result.
  std::optional<NdArray> take_operand(size_t i) override {
    std::optional<NdArray> taken = context_.take_operand(i);
    takes_ = takes_ || taken;
    return taken;
  }

  NdArray allocate_result(size_t) override {
    for (size_t i = 0; i < has_.size(); ++i) {
      // All missing results, because the kernel would ask for them before or after it computes this one.
      if (!has_[i]) results_.allocate(i, shard_);
    }
    throw HasAllResults();
  }

  void set_result(size_t i, NdArray view) override {
    context_.set_result(i, std::move(view));
    has_[i] = true;
    // A kernel that took nothing only made a view, and ends by itself.
    if (takes_ && std::find(has_.begin(), has_.end(), false) == has_.end()) throw HasAllResults();
  }

  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count);
  }

 private:
  ShardKernelContext context_;
  StepResults& results_;
  int64_t shard_;
  std::vector<bool> has_;
  bool takes_ = false;
};

Shards allocated(DType dtype, Dims shape) { return {AxisList(), pooled_empty(dtype, std::move(shape))}; }

}  // namespace

// An exception ends the kernel, so that kernels need no code for rehearsals.
void rehearse_kernel(const Kernel& kernel, const StepOperands& all, std::span<const NdArray> operands,
                     StepResults& results, int64_t shard) {
  RehearsedKernelContext context(all, operands, results, shard);
  try {
    kernel(context);
  } catch (const HasAllResults&) {
  }
}

Shards OneDevice::axis_index(AxisSpan) { return allocated(DType::kI32, {}); }

Shards OneDevice::all_reduce(const Shards& operand, AxisSpan, Reducer) {
  return allocated(operand.dtype(), operand.local_shape());
}

Shards OneDevice::all_gather(const Shards& operand, std::span<const AxisList> gather) {
  Dims shape = operand.local_shape();
  // Shapes are enough: there are no other shards, and nothing is computed.
  for (size_t d = 0; d < gather.size(); ++d) shape[d] *= product(gather[d]);
  return allocated(operand.dtype(), std::move(shape));
}

Shards OneDevice::reduce_scatter(const Shards& operand, AxisSpan, std::span<const AxisList> scatter, Reducer) {
  Dims shape = operand.local_shape();
  for (size_t d = 0; d < scatter.size(); ++d) shape[d] /= product(scatter[d]);
  return allocated(operand.dtype(), std::move(shape));
}

Shards OneDevice::all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) {
  Dims shape = operand.local_shape();
  for (const AllToAllMove& move : moves) {
    shape[static_cast<size_t>(move.to_dim)] /= product(move.axes);
    shape[static_cast<size_t>(move.from_dim)] *= product(move.axes);
  }
  return allocated(operand.dtype(), std::move(shape));
}

Shards OneDevice::permute(const Shards& operand, AxisSpan, AxisSpan) {
  return allocated(operand.dtype(), operand.local_shape());
}

Shards OneDevice::shift(const Shards& operand, AxisSpan, int64_t, bool) {
  return allocated(operand.dtype(), operand.local_shape());
}

Shards OneDevice::chain(const Shards& operand, AxisSpan, int64_t, Reducer) {
  return allocated(operand.dtype(), operand.local_shape());
}

Shards OneDevice::exchange(std::span<const Shards> operands, const Shards*, const ExchangeMap& map, const Mesh*) {
  Dims shape;
  for (const ExchangeTarget& to : map.to) shape.push_back(to.rows);
  return allocated(operands[0].dtype(), std::move(shape));
}

}  // namespace shardwise
