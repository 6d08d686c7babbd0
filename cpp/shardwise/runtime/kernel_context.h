// SPDX-License-Identifier: Apache-2.0
//
// The view that a kernel has of a run: the shard of one device. All shards of a step share a StepResults. It places the
// arrays that kernels allocate side by side in one buffer, so that gathering a dim-0 shard is a view:
//
//   StepOperands operands(shards);
//   StepResults results(add, {tensor<2xf32>}, {x = 4}, poison);
//   for each shard k: ShardKernelContext context(operands, shards k of them, results, k);  kernel(context);
//   results.take(0)        // a stack {4, …} if every kernel allocated; else whatever views they set
//
// Several threads may use contexts of one StepResults at once. A step of one call, whose values are unsharded, has a
// OneCallContext instead, which indexes no shards:
//
//   std::vector<NdArray> results;
//   OneCallContext context(add, shards, {tensor<8xf32>}, results, poison);
//   kernel(context);
//   context.check_results();
//   results[0]             // what the kernel allocated or set
#pragma once

#include <deque>
#include <mutex>

#include "shardwise/ir/op_def.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

// Whether the calls for the shards of a step run in parallel: if there is a call per thread, and enough work in flops
// and bytes. Otherwise the calls are sequential, and each uses all threads.
bool runs_in_parallel(int64_t shards, double work);

// The operands of all shards, which outlive it. Those that nothing else refers to now may be taken by the kernels.
class StepOperands {
 public:
  explicit StepOperands(std::span<const Shards> shards);

  size_t size() const { return shards_.size(); }
  const Shards& operator[](size_t i) const { return shards_[i]; }
  bool may_be_taken(size_t i) const;

 private:
  std::span<const Shards> shards_;
  uint64_t sole_ = 0;  // bit i: nothing else refers to the buffer of operand i (of the first 64)
};

class StepResults {
 public:
  StepResults(const OpDef& def, std::span<const TensorType> types, const AxisList& axes, bool poison);

  size_t size() const { return results_.size(); }
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

  const OpDef& def_;
  const AxisList& axes_;
  int64_t count_;
  bool poison_;
  std::deque<Result> results_;
};

// The base of a step's contexts: it tells which operands a kernel may take over, and runs loops on the pool's threads.
class StepKernelContext : public KernelContext {
 public:
  std::optional<NdArray> take_operand(size_t i) override;
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;

 protected:
  explicit StepKernelContext(const StepOperands& all) : all_(all) {}

 private:
  const StepOperands all_;
};

class ShardKernelContext : public StepKernelContext {
 public:
  ShardKernelContext(const StepOperands& all, std::span<const NdArray> operands, StepResults& results, int64_t shard)
      : StepKernelContext(all), operands_(operands), results_(results), shard_(shard) {}

  const NdArray& operand(size_t i) const override { return operands_[i]; }
  NdArray allocate_result(size_t i) override { return results_.allocate(i, shard_); }
  void set_result(size_t i, NdArray view) override { results_.set(i, shard_, std::move(view)); }

 private:
  std::span<const NdArray> operands_;
  StepResults& results_;
  int64_t shard_;
};

class OneCallContext final : public StepKernelContext {
 public:
  // `results` receives the results; it is empty.
  OneCallContext(const OpDef& def, std::span<const Shards> operands, std::span<const TensorType> types,
                 std::vector<NdArray>& results, bool poison)
      : StepKernelContext(StepOperands(operands)),
        def_(def),
        operands_(operands),
        types_(types),
        results_(results),
        poison_(poison) {
    results_.resize(types.size());
  }

  const NdArray& operand(size_t i) const override { return operands_[i].stacked(); }
  NdArray allocate_result(size_t i) override;
  void set_result(size_t i, NdArray view) override;

  // After the kernel. Throws InternalError if it set no result, or one of another type.
  void check_results() const;

 private:
  const OpDef& def_;
  std::span<const Shards> operands_;
  std::span<const TensorType> types_;
  std::vector<NdArray>& results_;
  bool poison_;
};

}  // namespace shardwise
