// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/kernel_context.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/array_view.h"
#include "shardwise/runtime/buffer_pool.h"

namespace shardwise {

StepResults::StepResults(const OpView& op, const AxisList& axes, bool poison)
    : op_(op), axes_(axes), count_(product(axes)), poison_(poison) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    Result& result = results_.emplace_back();
    result.type = &op.result_type(i);
    result.views.resize(static_cast<size_t>(count_));
    result.allocated.resize(static_cast<size_t>(count_), 0);
  }
}

NdArray StepResults::allocate(size_t result, int64_t shard) {
  Result& slot = results_[result];
  // Allocated on first use: a kernel that only sets views needs no buffer.
  std::call_once(slot.once, [&] {
    Dims shape;
    for (const AxisRef& axis : axes_) shape.push_back(axis.size);
    shape.insert(shape.end(), slot.type->shape.begin(), slot.type->shape.end());
    NdArray buffer = pooled_empty(slot.type->dtype, std::move(shape));
    // A kernel that does not write every element leaves poison, which tests detect.
    if (poison_) buffer.copy_from(NdArray::full(buffer.dtype(), buffer.shape(), poison_value(buffer.dtype())));
    slot.buffer = Shards(axes_, std::move(buffer));
  });
  NdArray array = slot.buffer[shard];
  slot.views[static_cast<size_t>(shard)] = array;
  slot.allocated[static_cast<size_t>(shard)] = 1;
  return array;
}

void StepResults::set(size_t result, int64_t shard, NdArray view) {
  Result& slot = results_[result];
  slot.views[static_cast<size_t>(shard)] = std::move(view);
  slot.allocated[static_cast<size_t>(shard)] = 0;
}

bool StepResults::is_view(size_t result, int64_t shard) const {
  return results_[result].allocated[static_cast<size_t>(shard)] == 0;
}

Shards StepResults::take(size_t result) {
  Result& slot = results_[result];
  // One view among the shards makes the result a list, which the Shards constructor stacks again if it can.
  const bool one_buffer = std::all_of(slot.allocated.begin(), slot.allocated.end(), [](uint8_t a) { return a != 0; });
  if (one_buffer) return std::move(slot.buffer);
  for (const NdArray& view : slot.views) {
    if (view.shape() == slot.type->shape && view.dtype() == slot.type->dtype) continue;
    check_internal(false, str(op_.name(), ": the kernel sets a result of type ", slot.type->text(), ", not ",
                              view.dtype(), view.shape()));
  }
  return {axes_, std::move(slot.views)};
}

void ShardKernelContext::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  shardwise::parallel_for(count, grain, body);
}

}  // namespace shardwise
