// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/live_bytes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/analysis/elementwise_chains.h"
#include "shardwise/analysis/live_memory.h"
#include "shardwise/analysis/live_ranges.h"
#include "shardwise/analysis/rehearsed_kernel.h"
#include "shardwise/base/array_view.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// The arrays of values; of a carry, the one of its home.
class LiveValues {
 public:
  LiveValues(const Module& module, const LiveRanges& ranges)
      : module_(module), ranges_(ranges), arrays_(module.value_count()) {}

  const TensorType& type(ValueId home) const { return module_.type(home); }
  NdArray& at(ValueId home) { return arrays_[home.index]; }
  NdArray& of(ValueId value) { return at(ranges_.home(value)); }
  // Has a second owner of the value's memory until the end of the step after which it has no other, so that nothing
  // writes over it.
  void keep_from_writing(ValueId home) { shared_.push_back(at(home).owner()); }

  void free(std::span<const ValueId> homes) {
    for (const ValueId home : homes) at(home) = NdArray();
    if (!shared_.empty()) std::erase_if(shared_, [](const auto& owner) { return owner.use_count() == 1; });
  }
  void free_all() {
    arrays_.clear();
    shared_.clear();
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

 private:
  const Module& module_;
  const LiveRanges& ranges_;
  std::vector<NdArray> arrays_;
  std::vector<std::shared_ptr<void>> shared_;
};

class StepContext final : public KernelContext {
 public:
  StepContext(const OpView& op, LiveMemory& memory, std::vector<NdArray> operands)
      : op_(op), memory_(memory), operands_(std::move(operands)), results_(op.result_count()) {}

  const NdArray& operand(size_t i) const override { return operands_[i]; }
  std::optional<NdArray> take_operand(size_t i) override {
    const NdArray& array = operands_[i];
    return array.owner().use_count() == 1 && is_gapless(array) ? std::optional(array) : std::nullopt;
  }
  NdArray allocate_result(size_t i) override { return results_[i] = memory_.allocate(op_.result_type(i)); }
  void set_result(size_t i, NdArray view) override {
    results_[i] = memory_.is_here(view) ? std::move(view) : memory_.of_program(view);
  }
  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count);
  }

  const std::vector<NdArray>& operands() const { return operands_; }
  std::vector<NdArray>& results() { return results_; }

 private:
  const OpView& op_;
  LiveMemory& memory_;
  std::vector<NdArray> operands_, results_;
};

struct OwnerOfAll : Owner {
  std::vector<std::shared_ptr<void>> others = {};
  std::shared_ptr<void> own = {};
};

std::shared_ptr<Owner> owner_of_all(std::vector<std::shared_ptr<void>> others, std::shared_ptr<void> own,
                                    int64_t bytes) {
  auto all = std::make_shared<OwnerOfAll>();
  all->bytes = bytes;
  all->may_be_sole = !others.empty();
  all->others = std::move(others);
  all->own = std::move(own);
  return all;
}

// A result of an op with branches, of which one runs: memory of its own, or of a value around the op.
class BranchResult {
 public:
  // `owner` is alive only if something around the branch keeps it.
  void add(const std::weak_ptr<void>& owner, int64_t bytes) {
    std::shared_ptr<void> other = owner.lock();
    if (other == nullptr) {
      own_bytes_ = std::max(own_bytes_, bytes);
    } else if (std::ranges::find(others_, other) == others_.end()) {
      others_.push_back(std::move(other));
      others_bytes_ += bytes;
    }
  }
  // Those of the first branch, or of one where the array is not row-major: more is copied then.
  void add_strides(const NdArray& array) {
    if (!has_strides_ || !array.is_contiguous()) strides_ = array.strides();
    has_strides_ = true;
  }

  bool may_be_of_others() const { return !others_.empty(); }

  NdArray make(const TensorType& type, LiveMemory& memory) const {
    std::shared_ptr<void> own;
    if (own_bytes_ >= 0) own = memory.allocate(DType::kI8, {own_bytes_}).owner();
    const int64_t bytes = others_bytes_ + std::max<int64_t>(own_bytes_, 0);
    return memory.view(type, strides_, owner_of_all(others_, std::move(own), bytes));
  }

 private:
  std::vector<std::shared_ptr<void>> others_;
  int64_t others_bytes_ = 0;
  int64_t own_bytes_ = -1;  // the most of all branches; -1: in none it has its own
  Dims strides_;
  bool has_strides_ = false;
};

// The values that an op with branches reads last: each branch may free them, or write over them.
class BranchInputs {
 public:
  BranchInputs(LiveValues& values, const LiveStep& step) {
    for (const ValueId home : step.dead) {
      const bool is_read = std::ranges::find(step.inputs, home) != step.inputs.end();
      if (is_read && values.at(home).owner() != nullptr) homes_.push_back(home);
    }
    for (const ValueId home : homes_) {
      const NdArray& array = values.at(home);
      const auto* const owner = static_cast<const Owner*>(array.owner().get());
      const auto same = std::ranges::find(buffers_, owner, &BufferOf::address);
      arrays_.push_back({array.strides(), static_cast<size_t>(same - buffers_.begin())});
      if (same == buffers_.end())
        buffers_.push_back({owner, owner->bytes, owner->label, array.owner().use_count(), {}});
    }
    for (const ArrayOf& array : arrays_) --buffers_[array.buffer].others;
    for (size_t i = 0; i < homes_.size(); ++i) {
      BufferOf& buffer = buffers_[arrays_[i].buffer];
      // A branch does not free a buffer that has other owners.
      if (buffer.others > 0) buffer.kept = values.at(homes_[i]).owner();
    }
  }

  std::span<const ValueId> homes() const { return homes_; }

  // As before the first branch, in new buffers.
  void restore(LiveValues& values, LiveMemory& memory) const {
    std::vector<std::shared_ptr<Owner>> owners;
    for (const BufferOf& buffer : buffers_) {
      memory.set_label(ValueId{buffer.label});
      std::shared_ptr<void> owner = buffer.kept;
      if (owner == nullptr) owner = memory.allocate(DType::kI8, {buffer.bytes}).owner();
      owners.push_back(std::static_pointer_cast<Owner>(std::move(owner)));
    }
    for (size_t i = 0; i < homes_.size(); ++i) {
      values.at(homes_[i]) = memory.view(values.type(homes_[i]), arrays_[i].strides, owners[arrays_[i].buffer]);
    }
  }

 private:
  struct BufferOf {
    const Owner* address;
    int64_t bytes;
    uint32_t label;
    int64_t others;  // owners other than these values
    std::shared_ptr<void> kept;
  };
  struct ArrayOf {
    Dims strides;
    size_t buffer;
  };

  std::vector<ValueId> homes_;
  std::vector<ArrayOf> arrays_;
  std::vector<BufferOf> buffers_;
};

// By a step of the region, and not an argument or a value from around it.
bool is_made_in(const Module& module, RegionId region, ValueId home) {
  const OpId op = module.value(home).op;
  return op && module.op(op).parent == region;
}

// A loop on one device: its carries, the rows that a scan reads, and the stacks that it writes.
class LoopOnDevice {
 public:
  LoopOnDevice(const OpView& op, const LiveRanges& ranges, LiveValues& values, LiveMemory& memory)
      : op_(op), parts_(loop_parts(op)), order_(scan_order(op)), ranges_(ranges), values_(values), memory_(memory) {}

  RegionId condition() const { return parts_.condition; }
  RegionId body() const { return parts_.body; }
  // An initial buffer may pass through all carries before it is gone: (a, b, c) -> (b, c, new).
  int64_t most_trips() const {
    return std::min<int64_t>(trip_count(op_).value_or(INT64_MAX), std::ssize(parts_.carries) + 2);
  }

  void enter(const LiveStep& step) {
    std::vector<NdArray> entries = values_.read(step, parts_.carries.size());
    for (size_t i = 0; i < entries.size(); ++i) values_.at(parts_.carries[i].result) = std::move(entries[i]);
    // In a loop around this one, the stack of the trip before may still be read.
    for (const LoopParts::Output& output : parts_.outputs) values_.of(output.stack) = NdArray();
  }

  void begin_trip(int64_t trip) {
    for (const LoopParts::Input& input : parts_.inputs) {
      const NdArray& stack = values_.of(input.stack);
      const bool is_border = input.border && (trip == 0 || stack.shape()[dim()] == 0);
      values_.of(input.row) = is_border ? values_.of(input.border) : select(stack, dim(), 0);
    }
  }

  // All carries are read before one is written: (a, b) -> (b, a). Rows that were written are free.
  void end_trip() {
    for (const LoopParts::Output& output : parts_.outputs) add_stack(output);
    std::vector<NdArray> next;
    for (const LoopParts::Carry& carry : parts_.carries) next.push_back(values_.of(carry.next));
    for (const LoopParts::Output& output : parts_.outputs) drop(parts_.body, output.row);
    for (const LoopParts::Carry& carry : parts_.carries) drop(parts_.body, carry.next);
    for (const LoopParts::Input& input : parts_.inputs) values_.of(input.row) = NdArray();
    for (size_t i = 0; i < next.size(); ++i) values_.at(parts_.carries[i].result) = std::move(next[i]);
  }

  void leave() {
    // Until then it is alive beside the body.
    if (parts_.condition) drop(parts_.condition, parts_.predicate);
    for (const LoopParts::Output& output : parts_.outputs) {
      if (most_trips() == 0) values_.of(output.stack) = memory_.allocate(op_.module().type(output.stack));
    }
  }

  // For each carry: which of them is the first in the same memory, the number of its owners, and the strides.
  std::vector<int64_t> sharing() {
    std::vector<int64_t> found;
    std::vector<const void*> known;
    for (const LoopParts::Carry& carry : parts_.carries) {
      const NdArray& array = values_.at(carry.result);
      const auto place = std::ranges::find(known, array.owner().get());
      found.push_back(place - known.begin());
      if (place == known.end()) known.push_back(array.owner().get());
      found.push_back(array.owner().use_count());
      found.insert(found.end(), array.strides().begin(), array.strides().end());
    }
    return found;
  }

 private:
  size_t dim() const { return static_cast<size_t>(order_->dimension); }

  // Allocated by the first row, because only then the memory order of the rows is known.
  void add_stack(const LoopParts::Output& output) {
    NdArray& stack = values_.of(output.stack);
    if (stack.data() != nullptr) return;
    const NdArray& row = values_.of(output.row);
    Dims shape = row.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim()), order_->trips);
    memory_.set_label(ranges_.home(output.stack));
    stack = memory_.allocate_in_order(row.dtype(), shape, stack_order(row, dim()));
  }

  void drop(RegionId region, ValueId value) {
    if (is_made_in(op_.module(), region, ranges_.home(value))) values_.of(value) = NdArray();
  }

  const OpView& op_;
  const LoopParts parts_;
  const std::optional<ScanOrder> order_;
  const LiveRanges& ranges_;
  LiveValues& values_;
  LiveMemory& memory_;
};

class Walk {
 public:
  explicit Walk(const Module& module)
      : module_(module),
        chains_(elementwise_chains(module, std::vector<DigitSet>(module.value_count(), 0))),
        ranges_(module, chains_),
        memory_(module),
        values_(module, ranges_),
        lies_in_(module.value_count()) {}

  LiveWalk run(std::span<const size_t> donated) {
    const LiveBlock& main = ranges_.of(module_.main().body);
    const std::vector<ValueId>& arguments = module_.region(module_.main().body).arguments;
    std::vector<NdArray> callers;
    for (const ValueId argument : arguments) {
      memory_.set_label(argument);
      callers.push_back(at(argument) = memory_.allocate(module_.type(argument)));
    }
    const int64_t argument_bytes = memory_.bytes();
    for (const size_t i : donated) callers.at(i) = NdArray();
    run_steps(main);
    std::vector<NdArray> results;
    for (const ValueId result : main.results) results.push_back(at(result));
    values_.free_all();
    MemoryUse use = memory_use(memory_.events());
    use.steps = steps_;
    use.argument_bytes = argument_bytes;
    callers.clear();
    use.result_bytes = memory_.bytes();
    return {std::move(use), std::move(lies_in_)};
  }

 private:
  NdArray& at(ValueId home) { return values_.at(home); }

  void run_steps(const LiveBlock& block) {
    values_.free(block.dead);
    for (const LiveStep& step : block.steps) {
      ++steps_;
      run_step(step);
      values_.free(step.dead);
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

  void run_chain(const LiveStep& step) {
    const TensorType& type = module_.type(step.outputs[0]);
    std::vector<NdArray> arrays = values_.read(step, step.inputs.size());
    for (NdArray& array : arrays) {
      // A scalar has one stride of 0 for each dim.
      for (size_t d = array.shape().size(); d < type.shape.size(); ++d) array = insert_dim(array, d, type.shape[d]);
    }
    const ChainMemory memory = chain_memory(arrays, type.dtype, type.shape);
    NdArray result =
        memory.over ? arrays[*memory.over] : memory_.allocate_in_order(type.dtype, type.shape, memory.order);
    at(step.outputs[0]) = std::move(result);
    hold_what_may_be_overwritten(arrays, step.outputs[0]);
  }

  void run_kernel(const LiveStep& step, const OpView& op) {
    const bool is_asked = op.def().traits.shares_memory;
    StepContext context(op, memory_, values_.read(step, step.inputs.size()));
    rehearse_kernel(op.def(), is_asked ? kernel_of(op) : Kernel(), op.result_count(), context);
    for (size_t i = 0; i < step.outputs.size(); ++i) at(step.outputs[i]) = std::move(context.results()[i]);
    if (!is_asked) return;
    for (const ValueId output : step.outputs) {
      const auto same = std::ranges::find(context.operands(), at(output).owner(), &NdArray::owner);
      const bool is_own = at(output).owner() == nullptr || same == context.operands().end();
      lies_in_[output.index] = is_own ? ValueId{} : step.inputs[static_cast<size_t>(same - context.operands().begin())];
    }
    for (const ValueId output : step.outputs) hold_what_may_be_overwritten(context.operands(), output);
  }

  // A result over one of `inputs` has the memory of which that is a view, which may be more than memory of its own.
  void hold_what_may_be_overwritten(std::span<const NdArray> inputs, ValueId output) {
    for (const NdArray& input : inputs) {
      const auto* const owner = static_cast<const Owner*>(input.owner().get());
      const NdArray& result = at(output);
      if (owner == nullptr || !owner->may_be_sole || input.owner() == result.owner()) continue;
      const int64_t own_bytes = bytes_kept_by(result);
      if (input.nbytes() != result.nbytes() || owner->bytes <= own_bytes || !is_gapless(input)) continue;
      at(output) = memory_.view(module_.type(output), result.strides(),
                                owner_of_all({input.owner()}, result.owner(), owner->bytes + own_bytes));
      values_.keep_from_writing(output);
    }
  }

  const Kernel& kernel_of(const OpView& op) {
    const auto found = kernels_.find(op.id());
    if (found != kernels_.end()) return found->second;
    std::vector<TensorType> operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result_type(i));
    return kernels_.emplace(op.id(), op.def().prepare(op, {operands, results}).value()).first->second;
  }

  void run_loop(const LiveStep& step, const OpView& op) {
    LoopOnDevice loop(op, ranges_, values_, memory_);
    loop.enter(step);
    std::vector<int64_t> before;
    for (int64_t trip = 0; trip < loop.most_trips(); ++trip) {
      if (loop.condition()) run_steps(ranges_.of(loop.condition()));
      loop.begin_trip(trip);
      run_steps(ranges_.of(loop.body()));
      loop.end_trip();
      std::vector<int64_t> now = loop.sharing();
      // Once a trip ends with carries that share buffers as they did before it, all later trips allocate the same.
      if (now == before) break;
      before = std::move(now);
    }
    if (loop.condition()) run_steps(ranges_.of(loop.condition()));
    loop.leave();
  }

  void run_branches(const LiveStep& step, const OpView& op) {
    std::vector<BranchResult> found(op.result_count());
    const BranchInputs inputs(values_, step);
    for (const RegionId branch : op.regions()) {
      if (branch != op.regions()[0]) inputs.restore(values_, memory_);
      const LiveBlock& block = ranges_.of(branch);
      run_steps(block);
      std::vector<std::weak_ptr<void>> owners;
      std::vector<int64_t> bytes;
      for (size_t i = 0; i < block.results.size(); ++i) {
        const NdArray& array = at(block.results[i]);
        owners.push_back(array.owner());
        bytes.push_back(bytes_kept_by(array));
        found[i].add_strides(array);
      }
      for (const ValueId result : block.results) {
        if (is_made_in(module_, branch, result)) at(result) = NdArray();
      }
      values_.free(inputs.homes());
      for (size_t i = 0; i < found.size(); ++i) found[i].add(owners[i], bytes[i]);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      at(step.outputs[i]) = found[i].make(op.result_type(i), memory_);
      // In the branch that returns memory of others, the result is never overwritten.
      if (found[i].may_be_of_others()) values_.keep_from_writing(step.outputs[i]);
    }
  }

  void run_call(const LiveStep& step) {
    const Region& body = module_.region(called_function(module_, step.op).body);
    std::vector<NdArray> arguments = values_.read(step, step.inputs.size());
    for (size_t i = 0; i < arguments.size(); ++i) at(body.arguments[i]) = std::move(arguments[i]);
    arguments.clear();
    const LiveBlock& block = ranges_.of(called_function(module_, step.op).body);
    run_steps(block);
    for (size_t i = 0; i < block.results.size(); ++i) at(step.outputs[i]) = at(block.results[i]);
    values_.free(block.results);
  }

  const Module& module_;
  const ElementwiseChains chains_;
  const LiveRanges ranges_;
  LiveMemory memory_;
  LiveValues values_;
  std::vector<ValueId> lies_in_;
  std::unordered_map<OpId, Kernel> kernels_;
  int64_t steps_ = 0;
};

}  // namespace

MemoryUse live_bytes(const Module& local, std::span<const size_t> donated) { return live_walk(local, donated).use; }

LiveWalk live_walk(const Module& local, std::span<const size_t> donated) { return Walk(local).run(donated); }

}  // namespace shardwise
