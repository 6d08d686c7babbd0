// SPDX-License-Identifier: Apache-2.0
//
// The view that a kernel has of a run: the shard of one device. All shards of a step share a StepResults. It places the
// arrays that kernels allocate side by side in one buffer, so that gathering a dim-0 shard is a view:
//
//   StepResults results(op, {x = 4}, poison);
//   for each shard k: ShardKernelContext context(op, operands of k, results, k);  op.def().kernel(context);
//   results.take(0)        // a stack {4, …} if every kernel allocated; else the views that they set
//
// Several threads may use contexts of one StepResults at once.
#pragma once

#include <deque>
#include <mutex>

#include "shardwise/ir/op_def.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

class StepResults {
 public:
  StepResults(const OpView& op, const AxisList& axes, bool poison);

  NdArray allocate(size_t result, int64_t shard);
  void set(size_t result, int64_t shard, NdArray view);
  bool is_view(size_t result, int64_t shard) const;  // set rather than allocated
  // The shards of a result, after all kernels ran. Throws InternalError if a kernel set none, or one of another shape.
  Shards take(size_t result);

 private:
  struct Result {
    const TensorType* type;
    std::once_flag once;
    Shards buffer;
    std::vector<NdArray> views;
    std::vector<uint8_t> allocated;
  };

  OpView op_;
  const AxisList& axes_;
  int64_t count_;
  bool poison_;
  std::deque<Result> results_;
};

class ShardKernelContext final : public KernelContext {
 public:
  ShardKernelContext(const OpView& op, std::span<const NdArray> operands, StepResults& results, int64_t shard)
      : op_(op), operands_(operands), results_(results), shard_(shard) {}

  OpView op() const override { return op_; }
  const NdArray& operand(size_t i) const override { return operands_[i]; }
  NdArray allocate_result(size_t i) override { return results_.allocate(i, shard_); }
  void set_result(size_t i, NdArray view) override { results_.set(i, shard_, std::move(view)); }
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;

 private:
  OpView op_;
  std::span<const NdArray> operands_;
  StepResults& results_;
  int64_t shard_;
};

}  // namespace shardwise
