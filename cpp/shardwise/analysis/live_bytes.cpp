// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/live_bytes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/analysis/live_ranges.h"
#include "shardwise/analysis/rehearsed_kernel.h"
#include "shardwise/analysis/untouched_memory.h"
#include "shardwise/base/array_view.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// Memory that was allocated and not freed yet. Buffers share the events, because results outlive the walk.
class Buffer {
 public:
  Buffer(std::shared_ptr<std::vector<MemoryEvent>> events, MemoryEvent made) : events_(std::move(events)), made_(made) {
    events_->push_back(made_);
  }
  ~Buffer() { events_->push_back({made_.label, -made_.bytes}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int64_t bytes() const { return made_.bytes; }

 private:
  std::shared_ptr<std::vector<MemoryEvent>> events_;
  MemoryEvent made_;
};

// All arrays lie at one address, where nothing is written; they are told apart by their owners, which are Buffers.
class Memory {
 public:
  explicit Memory(const Module& module)
      : untouched_(module), events_(std::make_shared<std::vector<MemoryEvent>>()) {}

  void set_label(ValueId value) { label_ = value.index; }  // of what is allocated next
  const std::vector<MemoryEvent>& events() const { return *events_; }

  NdArray allocate(DType dtype, Dims shape) {
    const int64_t item = item_size(dtype), bytes = element_count(shape) * item;
    Dims strides = row_major_strides(shape, item);
    return {dtype, std::move(shape), std::move(strides), untouched_.data(),
            std::make_shared<Buffer>(events_, MemoryEvent{label_, bytes})};
  }
  NdArray allocate(const TensorType& type) { return allocate(type.dtype, type.shape); }

  // Of a constant, whose memory is the program's.
  NdArray constant(const TensorType& type) const {
    return {type.dtype, type.shape, Dims(type.shape.size(), 0), untouched_.data(), nullptr};
  }

  NdArray allocate_in_order(DType dtype, const Dims& shape, std::span<const size_t> order) {
    Dims in_memory;
    for (const size_t dim : order) in_memory.push_back(shape[dim]);
    return in_shape_order(allocate(dtype, std::move(in_memory)), order);
  }

 private:
  UntouchedMemory untouched_;
  std::shared_ptr<std::vector<MemoryEvent>> events_;
  uint32_t label_ = 0;
};

class StepContext final : public KernelContext {
 public:
  StepContext(const OpView& op, Memory& memory, std::vector<NdArray> operands)
      : op_(op), memory_(memory), operands_(std::move(operands)), results_(op.result_count()) {}

  const NdArray& operand(size_t i) const override { return operands_[i]; }
  std::optional<NdArray> take_operand(size_t i) override {
    const NdArray& array = operands_[i];
    return array.owner().use_count() == 1 && is_gapless(array) ? std::optional(array) : std::nullopt;
  }
  NdArray allocate_result(size_t i) override { return results_[i] = memory_.allocate(op_.result_type(i)); }
  void set_result(size_t i, NdArray view) override { results_[i] = std::move(view); }
  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count);
  }

  std::vector<NdArray> take_results() && { return std::move(results_); }

 private:
  const OpView& op_;
  Memory& memory_;
  std::vector<NdArray> operands_, results_;
};

class Walk {
 public:
  explicit Walk(const Module& module)
      : module_(module),
        chains_(elementwise_chains(module, std::vector<DigitSet>(module.value_count(), 0))),
        ranges_(module, chains_),
        memory_(module),
        values_(module.value_count()) {}

  MemoryUse run(std::span<const size_t> donated) {
    const LiveBlock& main = ranges_.of(module_.main().body);
    const std::vector<ValueId>& arguments = module_.region(module_.main().body).arguments;
    std::vector<NdArray> callers;
    for (const ValueId argument : arguments) {
      memory_.set_label(argument);
      callers.push_back(at(argument) = memory_.allocate(module_.type(argument)));
    }
    const int64_t argument_bytes = live();
    for (const size_t i : donated) callers.at(i) = NdArray();
    run_steps(main);
    std::vector<NdArray> results;
    for (const ValueId result : main.results) results.push_back(at(result));
    values_.clear();
    MemoryUse use = memory_use(memory_.events());
    use.steps = steps_;
    use.argument_bytes = argument_bytes;
    callers.clear();
    use.result_bytes = live();
    return use;
  }

 private:
  int64_t live() const {
    int64_t sum = 0;
    for (const MemoryEvent& event : memory_.events()) sum += event.bytes;
    return sum;
  }

  NdArray& at(ValueId home) { return values_[home.index]; }
  NdArray& of(ValueId value) { return at(ranges_.home(value)); }

  void free(const std::vector<ValueId>& values) {
    for (const ValueId value : values) at(value) = NdArray();
  }

  void run_steps(const LiveBlock& block) {
    free(block.dead);
    for (const LiveStep& step : block.steps) {
      ++steps_;
      run_step(step);
      free(step.dead);
    }
  }

  void run_step(const LiveStep& step) {
    const OpView op(module_, step.op);
    if (!step.outputs.empty()) memory_.set_label(step.outputs[0]);
    if (step.chain != nullptr) return run_chain(step);
    if (op.def().regions == Regions::kLoop) return run_loop(step, op);
    if (op.def().regions == Regions::kBranches) return run_branches(step, op);
    if (is_call(module_, step.op)) return run_call(step);
    run_kernel(step, op);
  }

  // The first inputs of a step, moved out of their places where the step reads them last.
  std::vector<NdArray> read(const LiveStep& step, size_t count) {
    std::vector<NdArray> arrays;
    const std::span<const ValueId> inputs(step.inputs);
    for (size_t i = 0; i < count; ++i) {
      const bool is_last = std::ranges::find(step.dead, inputs[i]) != step.dead.end() &&
                           std::ranges::find(inputs.subspan(i + 1), inputs[i]) == inputs.end();
      if (is_last) {
        arrays.push_back(std::exchange(at(inputs[i]), NdArray()));
      } else {
        arrays.push_back(at(inputs[i]));
      }
    }
    return arrays;
  }

  void run_chain(const LiveStep& step) {
    const TensorType& type = module_.type(step.outputs[0]);
    std::vector<NdArray> arrays = read(step, step.inputs.size());
    for (NdArray& array : arrays) {
      // A scalar has one stride of 0 for each dim.
      for (size_t d = array.shape().size(); d < type.shape.size(); ++d) array = insert_dim(array, d, type.shape[d]);
    }
    const ChainMemory memory = chain_memory(arrays, type.dtype, type.shape);
    NdArray result =
        memory.over ? arrays[*memory.over] : memory_.allocate_in_order(type.dtype, type.shape, memory.order);
    at(step.outputs[0]) = std::move(result);
  }

  void run_kernel(const LiveStep& step, const OpView& op) {
    const Traits& traits = op.def().traits;
    if (traits.constant_like && step.inputs.empty()) {
      at(step.outputs[0]) = memory_.constant(op.result_type());
      return;
    }
    StepContext context(op, memory_, read(step, step.inputs.size()));
    rehearse_kernel(op.def(), traits.shares_memory ? kernel_of(op) : Kernel(), op.result_count(), context);
    std::vector<NdArray> results = std::move(context).take_results();
    for (size_t i = 0; i < results.size(); ++i) at(step.outputs[i]) = std::move(results[i]);
  }

  const Kernel& kernel_of(const OpView& op) {
    const auto found = kernels_.find(op.id());
    if (found != kernels_.end()) return found->second;
    std::vector<TensorType> operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result_type(i));
    return kernels_.emplace(op.id(), op.def().prepare(op, {operands, results}).value()).first->second;
  }

  // ---- loops -------------------------------------------------------------------------------------------------------

  void run_loop(const LiveStep& step, const OpView& op) {
    const LoopParts parts = loop_parts(op);
    std::vector<NdArray> entries = read(step, parts.carries.size());
    for (size_t i = 0; i < entries.size(); ++i) at(parts.carries[i].result) = std::move(entries[i]);
    entries.clear();
    const std::optional<ScanOrder> order = scan_order(op);
    const std::optional<int64_t> trips = trip_count(op);
    // In a loop around this one, the stack of the trip before may still be read.
    for (const LoopParts::Output& output : parts.outputs) of(output.stack) = NdArray();
    // An initial buffer may pass through all carries before it is gone: (a, b, c) -> (b, c, new).
    const int64_t most = std::min<int64_t>(trips.value_or(INT64_MAX), std::ssize(parts.carries) + 2);
    std::vector<int64_t> before;
    for (int64_t trip = 0; trip < most; ++trip) {
      run_condition(parts);
      if (order) read_rows(parts, static_cast<size_t>(order->dimension), trip);
      run_steps(ranges_.of(parts.body));
      if (order) write_rows(parts, static_cast<size_t>(order->dimension), order->trips);
      next_carries(parts);
      std::vector<int64_t> now = sharing(parts);
      // Once a trip ends with carries that share buffers as they did before it, all later trips allocate the same.
      if (now == before) break;
      before = std::move(now);
    }
    run_condition(parts);
    for (const LoopParts::Output& output : parts.outputs) {
      if (most == 0) of(output.stack) = memory_.allocate(module_.type(output.stack));
    }
  }

  void run_condition(const LoopParts& parts) {
    if (!parts.condition) return;
    run_steps(ranges_.of(parts.condition));
    if (is_made_in(parts.condition, ranges_.home(parts.predicate))) of(parts.predicate) = NdArray();
  }

  // By a step of the region, and not an argument or a value from around it.
  bool is_made_in(RegionId region, ValueId home) const {
    const OpId op = module_.value(home).op;
    return op && module_.op(op).parent == region;
  }

  void read_rows(const LoopParts& parts, size_t dim, int64_t trip) {
    for (const LoopParts::Input& input : parts.inputs) {
      const NdArray& stack = of(input.stack);
      const bool is_border = input.border && (trip == 0 || stack.shape()[dim] == 0);
      of(input.row) = is_border ? of(input.border) : select(stack, dim, 0);
    }
  }

  void write_rows(const LoopParts& parts, size_t dim, int64_t trips) {
    for (const LoopParts::Output& output : parts.outputs) {
      NdArray& stack = of(output.stack);
      if (stack.data() != nullptr) continue;
      const NdArray& row = of(output.row);
      Dims shape = row.shape();
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), trips);
      memory_.set_label(ranges_.home(output.stack));
      stack = memory_.allocate_in_order(row.dtype(), shape, stack_order(row, dim));
    }
  }

  // All carries are read before one is written: (a, b) -> (b, a). Rows that were written are free.
  void next_carries(const LoopParts& parts) {
    std::vector<NdArray> next;
    for (const LoopParts::Carry& carry : parts.carries) next.push_back(of(carry.next));
    const auto drop = [&](ValueId value) {
      if (is_made_in(parts.body, ranges_.home(value))) of(value) = NdArray();
    };
    for (const LoopParts::Output& output : parts.outputs) drop(output.row);
    for (const LoopParts::Carry& carry : parts.carries) drop(carry.next);
    for (const LoopParts::Input& input : parts.inputs) of(input.row) = NdArray();
    for (size_t i = 0; i < next.size(); ++i) at(parts.carries[i].result) = std::move(next[i]);
  }

  // For each carry: which of them is the first in the same memory, the number of its owners, and the strides.
  std::vector<int64_t> sharing(const LoopParts& parts) {
    std::vector<int64_t> found;
    std::vector<const void*> known;
    for (const LoopParts::Carry& carry : parts.carries) {
      const NdArray& array = at(carry.result);
      const auto place = std::ranges::find(known, array.owner().get());
      found.push_back(place - known.begin());
      if (place == known.end()) known.push_back(array.owner().get());
      found.push_back(array.owner().use_count());
      found.insert(found.end(), array.strides().begin(), array.strides().end());
    }
    return found;
  }

  // ---- branches and calls ------------------------------------------------------------------------------------------

  // What the results of an op with branches may be: views of memory around it, or memory of their own.
  struct Either {
    std::vector<std::shared_ptr<void>> others;
    int64_t own_bytes = -1;  // the most of all branches; -1: none has its own
    Dims strides;            // of the first branch, or of one that is not row-major
    std::shared_ptr<void> own;
  };

  void run_branches(const LiveStep& step, const OpView& op) {
    std::vector<Either> eithers(op.result_count());
    for (const RegionId branch : op.regions()) {
      const LiveBlock& block = ranges_.of(branch);
      run_steps(block);
      std::vector<std::weak_ptr<void>> owners;
      std::vector<int64_t> bytes;
      for (size_t i = 0; i < block.results.size(); ++i) {
        const NdArray& array = at(block.results[i]);
        owners.push_back(array.owner());
        bytes.push_back(array.owner() == nullptr ? 0 : static_cast<const Buffer*>(array.owner().get())->bytes());
        if (eithers[i].strides.empty() || !array.is_contiguous()) eithers[i].strides = array.strides();
      }
      for (const ValueId result : block.results) {
        if (is_made_in(branch, result)) at(result) = NdArray();
      }
      for (size_t i = 0; i < owners.size(); ++i) {
        // What is alive without the values of the branch is memory around it.
        if (std::shared_ptr<void> other = owners[i].lock()) {
          eithers[i].others.push_back(std::move(other));
        } else {
          eithers[i].own_bytes = std::max(eithers[i].own_bytes, bytes[i]);
        }
      }
    }
    for (size_t i = 0; i < eithers.size(); ++i) at(step.outputs[i]) = either(op.result_type(i), std::move(eithers[i]));
  }

  NdArray either(const TensorType& type, Either either) {
    NdArray array = memory_.constant(type);
    if (either.own_bytes >= 0) either.own = memory_.allocate(DType::kI8, {either.own_bytes}).owner();
    std::shared_ptr<void> owner = either.own;
    if (owner == nullptr && either.others.size() == 1) owner = either.others[0];
    Dims strides = either.strides;
    // The buffer comes first, so that its bytes can be read through the owner of all.
    if (!either.others.empty() && either.own != nullptr) {
      auto all = std::make_shared<Either>(std::move(either));
      owner = {all, all->own.get()};
    } else if (either.others.size() > 1) {
      auto all = std::make_shared<Either>(std::move(either));
      owner = {all, all->others[0].get()};
    }
    return {type.dtype, type.shape, std::move(strides), array.data(), std::move(owner)};
  }

  void run_call(const LiveStep& step) {
    const Region& body = module_.region(called_function(module_, step.op).body);
    std::vector<NdArray> arguments = read(step, step.inputs.size());
    for (size_t i = 0; i < arguments.size(); ++i) at(body.arguments[i]) = std::move(arguments[i]);
    arguments.clear();
    const LiveBlock& block = ranges_.of(called_function(module_, step.op).body);
    run_steps(block);
    for (size_t i = 0; i < block.results.size(); ++i) at(step.outputs[i]) = at(block.results[i]);
    free(block.results);
  }

  const Module& module_;
  const ElementwiseChains chains_;
  const LiveRanges ranges_;
  Memory memory_;
  std::vector<NdArray> values_;  // by value: homes
  std::unordered_map<OpId, Kernel> kernels_;
  int64_t steps_ = 0;
};

}  // namespace

MemoryUse live_bytes(const Module& local, std::span<const size_t> donated) { return Walk(local).run(donated); }

}  // namespace shardwise
