// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/kernel_context.h"

#include <algorithm>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// Flops and bytes below which waking a thread costs more than it saves.
constexpr double kParallelWork = 1 << 16;

// A kernel that does not write every element leaves poison, which tests detect.
NdArray new_result(DType dtype, Dims shape, bool poison) {
  NdArray buffer = pooled_empty(dtype, std::move(shape));
  if (poison) buffer.copy_from(NdArray::full(buffer.dtype(), buffer.shape(), poison_value(buffer.dtype())));
  return buffer;
}

// Who counts memory without running kernels relies on it.
void check_shares(const OpDef& def) {
  check_internal(def.traits.shares_memory, str(def.name, ": a kernel that sets memory of others has shares_memory"));
}

void check_view(const OpDef& def, const TensorType& type, const NdArray& view) {
  if (view.shape() == type.shape && view.dtype() == type.dtype) return;
  check_internal(
      false, str(def.name, ": the kernel sets a result of type ", type.text(), ", not ", view.dtype(), view.shape()));
}

}  // namespace

bool runs_in_parallel(int64_t shards, double work) {
  return shards > 1 && shards >= thread_count() && work >= kParallelWork && !is_rehearsal();
}

StepOperands::StepOperands(std::span<const Shards> shards) : shards_(shards) {
  for (size_t i = 0; i < std::min<size_t>(shards_.size(), 64); ++i) {
    if (shards_[i].is_stacked() && shards_[i].stacked().owner().use_count() == 1) sole_ |= uint64_t{1} << i;
  }
}

// Without gaps no two shards share an element.
bool StepOperands::may_be_taken(size_t i) const {
  return i < 64 && (sole_ >> i & 1) != 0 && is_gapless(shards_[i].stacked());
}

StepResults::StepResults(const OpDef& def, std::span<const TensorType> types, const AxisList& axes, bool poison)
    : def_(def), axes_(axes), count_(product(axes)), poison_(poison) {
  for (const TensorType& type : types) {
    Result& result = results_.emplace_back();
    result.type = &type;
    result.views.resize(static_cast<size_t>(count_));
    result.allocated.resize(static_cast<size_t>(count_), 0);
  }
}

NdArray StepResults::allocate(size_t result, int64_t shard) {
  Result& slot = results_[result];
  // Allocated on first use: a kernel that only sets views needs no buffer.
  // Shards may run on several threads, and they share the buffer.
  std::call_once(slot.once, [&] {
    Dims shape = concatenated(sizes_of(axes_), slot.type->shape);
    slot.buffer = Shards(axes_, new_result(slot.type->dtype, std::move(shape), poison_));
  });
  NdArray array = slot.buffer[shard];
  slot.views[static_cast<size_t>(shard)] = array;
  slot.allocated[static_cast<size_t>(shard)] = 1;
  return array;
}

void StepResults::set(size_t result, int64_t shard, NdArray view) {
  check_shares(def_);
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
  // StepResults::set may have replaced an array that was allocated, so the flags count, not the buffer.
  const bool one_buffer = std::all_of(slot.allocated.begin(), slot.allocated.end(), [](uint8_t a) { return a != 0; });
  if (one_buffer) return std::move(slot.buffer);
  for (const NdArray& view : slot.views) check_view(def_, *slot.type, view);
  return {axes_, std::move(slot.views)};
}

std::optional<NdArray> StepKernelContext::take_operand(size_t i) {
  return all_.may_be_taken(i) ? std::optional(operand(i)) : std::nullopt;
}

void StepKernelContext::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  shardwise::parallel_for(count, grain, body);
}

NdArray OneCallContext::allocate_result(size_t i) {
  results_[i] = new_result(types_[i].dtype, types_[i].shape, poison_);
  return results_[i];
}

void OneCallContext::set_result(size_t i, NdArray view) {
  check_shares(def_);
  results_[i] = std::move(view);
}

void OneCallContext::check_results() const {
  for (size_t i = 0; i < results_.size(); ++i) check_view(def_, types_[i], results_[i]);
}

}  // namespace shardwise
