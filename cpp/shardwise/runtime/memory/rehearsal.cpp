// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/rehearsal.h"

#include <algorithm>
#include <vector>

#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

struct HasAllResults {};  // thrown through a kernel, which would compute now

class RehearsedKernelContext final : public ShardKernelContext {
 public:
  RehearsedKernelContext(const StepOperands& all, std::span<const NdArray> operands, StepResults& results,
                         int64_t shard)
      : ShardKernelContext(all, operands, results, shard), has_(results.size(), false) {}

  // The kernel writes the taken buffer as soon as it is a result.
  std::optional<NdArray> take_operand(size_t i) override {
    std::optional<NdArray> taken = ShardKernelContext::take_operand(i);
    takes_ = takes_ || taken;
    return taken;
  }

  NdArray allocate_result(size_t) override {
    for (size_t i = 0; i < has_.size(); ++i) {
      // All missing results, because the kernel would ask for them before or after it computes this one.
      if (!has_[i]) ShardKernelContext::allocate_result(i);
    }
    throw HasAllResults();
  }

  void set_result(size_t i, NdArray view) override {
    ShardKernelContext::set_result(i, std::move(view));
    has_[i] = true;
    // A kernel that took nothing only made a view, and ends by itself.
    if (takes_ && std::find(has_.begin(), has_.end(), false) == has_.end()) throw HasAllResults();
  }

  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count);
  }

 private:
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

// Shapes are enough: there are no other shards, and nothing is computed.
Shards OneDevice::run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.kind == CollectiveKind::kAxisIndex) return allocated(DType::kI32, {});
  Dims shape = operands[0].local_shape();
  for (size_t d = 0; d < call.dims.size(); ++d) {
    const int64_t parts = product(call.dims[d]);
    shape[d] = call.kind == CollectiveKind::kAllGather ? shape[d] * parts : shape[d] / parts;
  }
  for (const AllToAllMove& move : call.moves) {
    shape[static_cast<size_t>(move.to_dim)] /= product(move.axes);
    shape[static_cast<size_t>(move.from_dim)] *= product(move.axes);
  }
  if (call.kind == CollectiveKind::kExchange) {
    shape.clear();
    for (const ExchangeTarget& to : call.exchange.to) shape.push_back(to.rows);
  }
  return allocated(operands[0].dtype(), std::move(shape));
}

}  // namespace shardwise
