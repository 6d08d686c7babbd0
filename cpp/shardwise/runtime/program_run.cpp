// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/program_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/array_view.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/kernel_context.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/memory/rehearsal.h"
#include "shardwise/runtime/poison.h"
#include "shardwise/runtime/scan_rows.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {
namespace {

// Flops and bytes below which waking a thread costs more than it saves.
constexpr double kParallelWork = 1 << 16;

const ParallelFor& pool_for() {
  static const ParallelFor kPool = [](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    parallel_for(count, grain, body);
  };
  return kPool;
}

// The scalar operand of a chain (a select's predicate, a clamp's bounds), with one stride-0 dim for each dim of the
// result.
NdArray stretched(NdArray array, DimSpan shape) {
  // A scalar operand has the dims of the axes only: [x=4] becomes [x=4, 8, 16] with two strides of 0.
  for (size_t d = array.shape().size(); d < shape.size(); ++d) array = insert_dim(array, d, shape[d]);
  return array;
}

// A splat has the shape, but no order in memory that could be copied.
bool has_shape(const NdArray& array, const Dims& shape) { return array.shape() == shape && !array.is_splat(); }

// An array with the memory order of `like`, so that a chain runs along memory, and shards of one array stay adjacent.
NdArray empty_in_order_of(const NdArray& like, DType dtype) {
  const std::vector<size_t> order = memory_order(like);
  Dims shape;
  std::vector<size_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    shape.push_back(like.shape()[order[i]]);
    back[order[i]] = i;
  }
  return reorder_dims(pooled_empty(dtype, std::move(shape)), back);
}

// Whether the result may overwrite this buffer: it has no other owner, and the result's dtype and shape without gaps.
bool is_reusable(const NdArray& array, DType dtype, const Dims& shape) {
  // is_gapless excludes broadcast arrays, whose elements share memory.
  return array.dtype() == dtype && array.shape() == shape && array.owner().use_count() == 1 && is_gapless(array);
}

bool is_dead(const Step& step, uint32_t slot) {
  return std::find(step.dead.begin(), step.dead.end(), slot) != step.dead.end();
}

int64_t bytes_of(const Shards& shards) {
  return shards.count() * element_count(shards.local_shape()) * item_size(shards.dtype());
}

int64_t bytes_of_one_shard(const StepOperands& operands, std::span<const TensorType> results) {
  int64_t bytes = 0;
  for (const TensorType& type : results) bytes += type.size() * item_size(type.dtype);
  for (size_t i = 0; i < operands.size(); ++i) {
    bytes += element_count(operands[i].local_shape()) * item_size(operands[i].dtype());
  }
  return bytes;
}

}  // namespace

ProgramRun::ProgramRun(const Module& module, const Plan& plan, const RunOptions& options, const DeviceSet& devices,
                       Communicator& communicator)
    : module_(module),
      plan_(plan),
      options_(options),
      devices_(devices),
      communicator_(communicator),
      slots_(plan.slots.size()),
      runners_(plan.runners),
      start_(std::chrono::steady_clock::now()) {}

void ProgramRun::set(uint32_t slot, const Shards& shards) {
  // Steps read each slot along the axes that the plan has for it.
  slots_[slot] = shards.along(plan_.slot_axes[slot]);
  if (options_.poison) poison_padding(slot);
}

void ProgramRun::execute() {
  const InterruptScope interrupt(options_.between_ops);
  run_block(plan_.main);
}

void ProgramRun::run_block(const Block& block) {
  run_steps(block);
  move(block.moves);
}

void ProgramRun::run_steps(const Block& block) {
  free(block.dead);
  for (const Step& step : block.steps) {
    if (options_.between_ops) options_.between_ops();
    // The step inside a loop, branch or function names its own errors.
    if (const auto* loop = std::get_if<Loop>(&step.work)) {
      run_loop(step, *loop);
      continue;
    }
    if (const auto* branches = std::get_if<Branches>(&step.work)) {
      run_branch(step, *branches);
      continue;
    }
    if (const auto* call = std::get_if<Call>(&step.work)) {
      run_call(step, *call);
      continue;
    }
    try {
      run_step(step);
    } catch (const OutOfMemoryError& error) {
      fail_out_of_memory(step, error);
    } catch (const std::bad_alloc&) {
      fail_out_of_memory(step, OutOfMemoryError({}, {}, 0));
    } catch (Error& error) {
      error.at(module_.context().location_text(module_.op(step.op).loc));
      throw;
    }
  }
}

void ProgramRun::run_loop(const Step& step, const Loop& loop) {
  if (loop.rows) return run_scan(step, loop);
  // A loop without steps reaches no check between steps, and Ctrl-C could not end it.
  const bool is_empty = loop.condition.steps.empty() && loop.body.steps.empty();
  move(loop.enter);
  if (is_rehearsal()) {
    rehearse_trips(loop, [&](int64_t) {
      run_block(loop.condition);
      run_block(loop.body);
    });
  }
  while (true) {
    run_block(loop.condition);
    // A rehearsal has no values to decide by: it has run its trips above, and only evaluates the condition.
    if (is_rehearsal() || predicate(step, loop.condition.results[0]) == 0) break;
    if (is_empty && options_.between_ops) options_.between_ops();
    run_block(loop.body);
  }
  free(step.dead);
}

void ProgramRun::run_scan(const Step& step, const Loop& loop) {
  const ScanRows& rows = *loop.rows;
  const int64_t trips = *loop.trips;
  move(loop.enter);
  // In a loop around this one, the stack of the trip before may still be read: each run of the step gets a new one.
  for (const ScanRows::Write& write : rows.writes) slots_[write.to] = Shards();
  const auto run_trip = [&](int64_t trip) {
    const int64_t row = rows.is_reverse ? trips - 1 - trip : trip;
    read_rows(rows, row);
    if (loop.body.steps.empty() && options_.between_ops) options_.between_ops();
    run_steps(loop.body);
    write_rows(rows, trips, row);
    // After the rows are written: a value may be a row and the next carry, and the move takes it away.
    move(loop.body.moves);
  };
  if (is_rehearsal()) {
    rehearse_trips(loop, run_trip);
  } else {
    for (int64_t trip = 0; trip < trips; ++trip) run_trip(trip);
  }
  for (const ScanRows::Write& write : rows.writes) {
    if (trips == 0) slots_[write.to] = no_rows(module_.type(plan_.slots[write.to]), plan_.slot_axes[write.to]);
    if (options_.poison) poison_padding(write.to);
  }
  free(step.dead);
}

void ProgramRun::read_rows(const ScanRows& rows, int64_t row) {
  for (const ScanRows::Read& read : rows.reads) {
    const int64_t at = row + read.offset;
    // Offset -1 lacks row -1 in trip 0, offset +1 the row after the last one.
    const bool is_border = read.border && (at < 0 || at == slots_[read.from].local_shape()[rows.dim]);
    const AxisList& axes = plan_.slot_axes[read.to];
    slots_[read.to] =
        is_border ? slots_[*read.border].along(axes) : row_of(slots_[read.from], rows.dim, at).along(axes);
    if (options_.poison) poison_padding(read.to);
  }
}

void ProgramRun::write_rows(const ScanRows& rows, int64_t trips, int64_t row) {
  for (const ScanRows::Write& write : rows.writes) {
    const Shards value = slots_[write.from].along(plan_.slot_axes[write.to]);
    Shards& stack = slots_[write.to];
    // Allocated by the first row, because only then the memory order of the rows is known (scan_rows.h).
    if (stack.axes().empty() && stack.stacked().data() == nullptr) {
      if (AllocationLog* log = AllocationLog::current()) log->set_label(plan_.slots[write.to].index);
      stack = empty_stack_of(value, trips, rows.dim);
    }
    if (!leaves_out(bytes_of(stack) / stack.count())) copy_row(stack, rows.dim, row, value);
    if (write.is_last) slots_[write.from] = Shards();
  }
}

// The first trips enter with buffers of others. Once a trip ends with carries that share buffers as they did before it,
// all later trips allocate the same.
void ProgramRun::rehearse_trips(const Loop& loop, const std::function<void(int64_t trip)>& run_trip) {
  // An initial buffer may pass through all carries before it is gone: (a, b, c) -> (b, c, new).
  const int64_t most = std::min<int64_t>(loop.trips.value_or(INT64_MAX), std::ssize(loop.enter) + 2);
  std::vector<int64_t> before;
  for (int64_t trip = 0; trip < most; ++trip) {
    run_trip(trip);
    std::vector<int64_t> now = sharing_of_carries(loop);
    if (now == before) break;
    before = std::move(now);
  }
}

// For each buffer of the carries: which of them is the first in the same memory, its number of owners, and its strides.
std::vector<int64_t> ProgramRun::sharing_of_carries(const Loop& loop) const {
  std::vector<int64_t> sharing;
  std::vector<const void*> known;
  const auto add = [&](const NdArray& array) {
    const auto found = std::find(known.begin(), known.end(), array.owner().get());
    sharing.push_back(found - known.begin());
    if (found == known.end()) known.push_back(array.owner().get());
    sharing.push_back(array.owner().use_count());
    sharing.insert(sharing.end(), array.strides().begin(), array.strides().end());
  };
  for (const Move& carry : loop.enter) {
    const Shards& shards = slots_[carry.to];
    if (shards.is_stacked()) add(shards.stacked());
    for (int64_t i = 0; !shards.is_stacked() && i < shards.count(); ++i) add(shards[i]);
  }
  return sharing;
}

void ProgramRun::run_branch(const Step& step, const Branches& branches) {
  const int64_t count = std::ssize(branches.blocks);
  int64_t branch = is_rehearsal() ? rehearsed_branch(step.op) : predicate(step, step.inputs[0]);
  if (!is_rehearsal() && slots_[step.inputs[0]].dtype() == DType::kBool)
    branch = branch != 0 ? 0 : 1;  // if: the first one is for true
  // StableHLO case: an index out of range selects the last branch.
  if (branch < 0 || branch >= count) branch = count - 1;
  run_block(branches.blocks[static_cast<size_t>(branch)]);
  free(step.dead);
}

void ProgramRun::run_call(const Step& step, const Call& call) {
  move(call.enter);
  run_block(plan_.functions[call.function].block);
  move(call.leave);
  free(step.dead);
}

int64_t ProgramRun::rehearsed_branch(OpId op) const {
  const auto found = options_.rehearsed_branches->find(op);
  return found == options_.rehearsed_branches->end() ? 0 : found->second;
}

int64_t ProgramRun::predicate(const Step& step, uint32_t slot) const {
  const Shards& shards = slots_[slot];
  const auto value_of = [](const NdArray& scalar) -> int64_t {
    if (scalar.dtype() == DType::kBool) return scalar.data()[0] != std::byte{0} ? 1 : 0;
    int32_t index = 0;
    std::memcpy(&index, scalar.data(), sizeof(index));
    return index;
  };
  const int64_t value = value_of(shards[0]);
  for (int64_t k = 1; k < shards.count(); ++k) {  // of a faithful run
    const std::string_view name = module_.op(step.op).def->name;
    check_internal(value_of(shards[k]) == value, str(name, ": all devices take the same way"));
  }
  return value;
}

void ProgramRun::move(const std::vector<Move>& moves) {
  // All moves read before one writes: (a, b) -> (b, a) would otherwise lose a.
  moving_.clear();
  for (const Move& move : moves) {
    const AxisList& axes = plan_.slot_axes[move.to];
    Shards& from = slots_[move.from];
    if (move.is_last && from.axes() == axes) {
      moving_.push_back(std::move(from));
    } else {
      moving_.push_back(from.along(axes));
      if (move.is_last) from = Shards();
    }
  }
  for (size_t i = 0; i < moves.size(); ++i) {
    slots_[moves[i].to] = std::move(moving_[i]);
    if (options_.poison) poison_padding(moves[i].to);
  }
}

// The error names the op's results, because the buffer is one of them, or a temporary of the kernel.
void ProgramRun::fail_out_of_memory(const Step& step, const OutOfMemoryError& error) const {
  const OpView op(module_, step.op);
  std::string results;
  for (size_t i = 0; i < op.result_count(); ++i) results.append(i > 0 ? ", " : "").append(op.result_type(i).text());
  // The buffer may hold the shards of all of them side by side, so that the result type alone would look too small.
  if (const int64_t count = product(step.axes); count > 1) results += str(" for each of ", count, " devices");
  OutOfMemoryError named = error.named(op.name(), results);
  named.at(module_.context().location_text(op.loc()));
  throw named;
}

void ProgramRun::run_step(const Step& step) {
  const auto begin = options_.trace != nullptr ? std::chrono::steady_clock::now() : start_;
  if (AllocationLog* log = AllocationLog::current(); log != nullptr && !step.outputs.empty()) {
    log->set_label(plan_.slots[step.outputs[0]].index);
  }
  if (const auto* call = std::get_if<KernelCall>(&step.work)) run_kernel(step, *call);
  if (const auto* chain = std::get_if<FusedChain>(&step.work)) run_fused(step, *chain);
  if (const auto* collective = std::get_if<CollectiveCall>(&step.work)) run_collective(step, *collective);
  if (options_.poison) {
    for (uint32_t slot : step.outputs) poison_padding(slot);
  }
  if (options_.trace != nullptr) trace(step, begin);
  free(step.dead);
}

void ProgramRun::run_kernel(const Step& step, const KernelCall& call) {
  // Merging was possible by types; now the shards must also be adjacent in memory.
  if (call.merge && run_merged(step, call)) return;
  // The result does not vary along the reduced axes, but without a merge each partial result is computed first.
  const AxisList axes = in_mesh_order(joined(step.axes, call.reduced));
  std::vector<Shards> operands;
  operands.reserve(step.inputs.size());
  for (uint32_t slot : step.inputs) operands.push_back(slots_[slot].along(axes));
  std::vector<Shards> results = call_kernel(
      step, {call.kernel, call.results, call.work * static_cast<double>(product(axes))}, std::move(operands), axes);
  for (size_t i = 0; i < results.size(); ++i) {
    Shards& result = results[i];
    if (!call.reduced.empty()) result = VirtualCommunicator().all_reduce(result, call.reduced, call.reducer);
    slots_[step.outputs[i]] = call.reduced.empty() ? std::move(result) : result.along(step.axes);
  }
}

bool ProgramRun::run_merged(const Step& step, const KernelCall& call) {
  const Merge& merge = *call.merge;
  std::vector<const Shards*> operands;
  for (uint32_t slot : step.inputs) operands.push_back(&slots_[slot]);
  std::vector<size_t> order;
  auto merged = merged_operands(merge, operands, order);
  if (!merged) return false;
  AxisList rest = step.axes;
  std::erase_if(rest, [&](const AxisRef& axis) {
    return std::any_of(merge.digits.begin(), merge.digits.end(),
                       [&](const Merge::Digit& digit) { return digit.axis == axis; });
  });
  // An operand that does not vary along the axes that stay apart is given to each of these calls.
  for (Shards& operand : *merged) operand = operand.along(rest);
  const double work = call.work * static_cast<double>(product(step.axes) * product(call.reduced));
  const std::vector<Shards> results = call_kernel(step, {merge.kernel, merge.results, work}, std::move(*merged), rest);
  for (size_t i = 0; i < results.size(); ++i) {
    slots_[step.outputs[i]] = unmerged_result(merge, order, i, results[i], step.axes);
  }
  return true;
}

std::vector<Shards> ProgramRun::call_kernel(const Step& step, const ShardCall& call, std::vector<Shards> shards,
                                            const AxisList& axes) {
  for (uint32_t slot : step.inputs) {  // so that a kernel may take the memory
    if (is_dead(step, slot)) slots_[slot] = Shards();
  }
  const OpView op(module_, step.op);
  const StepOperands operands(std::move(shards));
  StepResults results(op.name(), call.results, axes, options_.poison);
  const bool is_left_out = is_rehearsal() && leaves_out(bytes_of_one_shard(operands, call.results));
  const auto run_shards = [&](int64_t begin, int64_t end) {
    std::vector<NdArray> shard(operands.size());
    for (int64_t k = begin; k < end; ++k) {
      for (size_t i = 0; i < operands.size(); ++i) shard[i] = operands[i][k];
      if (is_left_out) {
        rehearse_kernel(call.kernel, operands, shard, results, k);
        continue;
      }
      ShardKernelContext context(operands, shard, results, k);
      call.kernel(context);
    }
  };
  const int64_t count = product(axes);
  int64_t first = 0;
  bool in_parallel = !is_rehearsal() && count > 1 && count >= thread_count() && call.work >= kParallelWork;
  if (in_parallel && op.def().traits.movement) {  // the first shard shows whether the kernel only makes a view
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
  for (size_t i = 0; i < call.results.size(); ++i) taken.push_back(results.take(i));
  return taken;
}

Shards ProgramRun::read(const Step& step, size_t input) {
  const uint32_t slot = step.inputs[input];
  // Moved, so that the array has one owner and the chain may write its result over it.
  if (is_dead(step, slot) && slots_[slot].axes() == step.axes) return std::move(slots_[slot]);
  return slots_[slot].along(step.axes);
}

// Contiguous arrays, such as a loop's counter, without a look at shapes and strides, which would take longer.
bool ProgramRun::run_few_lanes(const Step& step, const FusedChain& chain) {
  few_lanes_.clear();
  for (uint32_t slot : step.inputs) {
    const Shards& input = slots_[slot];
    if (!input.is_stacked() || input.axes() != step.axes || !input.stacked().is_contiguous()) return false;
    few_lanes_.push_back(input.stacked().data());
  }
  const DType dtype = chain.program.output_dtype(0);
  const auto is_free = [&](const Shards& shards) {
    return shards.stacked().owner().use_count() == 1 && shards.stacked().dtype() == dtype;
  };
  Shards& result = slots_[step.outputs[0]];  // with what the last trip left there
  // In a loop, the slot holds the result of the last trip: its memory serves again unless something else refers to it.
  if (!is_free(result) || !result.stacked().is_contiguous()) result = Shards();
  for (uint32_t slot : step.inputs) {
    if (is_free(result)) break;
    if (is_dead(step, slot) && is_free(slots_[slot])) result = std::move(slots_[slot]);
  }
  if (!is_free(result)) result = Shards(step.axes, pooled_empty(dtype, stack_shape(step)));
  const std::array<void*, 1> output{result.stacked().data()};
  // Outside loops and functions a workspace is used once, so that none is kept.
  if (!chain.runner) {
    TileRunner(chain.program, chain.lanes).run(few_lanes_, output, chain.lanes);
    return true;
  }
  std::unique_ptr<TileRunner>& runner = runners_[*chain.runner];
  if (runner == nullptr) runner = std::make_unique<TileRunner>(chain.program, chain.lanes);
  runner->run(few_lanes_, output, chain.lanes);
  return true;
}

void ProgramRun::run_fused(const Step& step, const FusedChain& chain) {
  if (chain.lanes > 0 && run_few_lanes(step, chain)) return;
  std::vector<Shards> inputs;
  inputs.reserve(step.inputs.size());
  bool is_stacked = true;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    inputs.push_back(read(step, i));
    is_stacked = is_stacked && inputs.back().is_stacked();
  }
  slots_[step.outputs[0]] = is_stacked ? fused_stack(step, chain, inputs) : fused_list(step, chain, inputs);
}

Dims ProgramRun::stack_shape(const Step& step) const {
  Dims shape;
  for (const AxisRef& axis : step.axes) shape.push_back(axis.size);
  const Dims& local = OpView(module_, step.op).result_type().shape;
  shape.insert(shape.end(), local.begin(), local.end());
  return shape;
}

Shards ProgramRun::fused_stack(const Step& step, const FusedChain& chain, std::vector<Shards>& inputs) {
  const TensorType& type = OpView(module_, step.op).result_type();
  Dims shape = stack_shape(step);
  std::vector<NdArray> arrays;
  arrays.reserve(inputs.size());
  for (Shards& input : inputs) arrays.push_back(stretched(std::move(input).release_stack(), shape));
  NdArray result;
  for (const NdArray& array : arrays) {
    if (is_reusable(array, type.dtype, shape)) {
      result = array;
      break;
    }
  }
  if (result.data() == nullptr) {
    const auto like = std::find_if(arrays.begin(), arrays.end(), [&](const NdArray& a) { return has_shape(a, shape); });
    result = like == arrays.end() ? pooled_empty(type.dtype, std::move(shape)) : empty_in_order_of(*like, type.dtype);
  }
  run_chain(chain, arrays, result, product(step.axes));
  return {step.axes, std::move(result)};
}

Shards ProgramRun::fused_list(const Step& step, const FusedChain& chain, const std::vector<Shards>& inputs) {
  const OpView op(module_, step.op);
  const Dims& shape = op.result_type().shape;
  StepResults results(op.name(), {&op.result_type(), 1}, step.axes, options_.poison);
  const int64_t count = product(step.axes);
  const auto run_shards = [&](int64_t begin, int64_t end) {
    std::vector<NdArray> arrays(inputs.size());
    for (int64_t k = begin; k < end; ++k) {
      for (size_t i = 0; i < inputs.size(); ++i) arrays[i] = stretched(inputs[i][k], shape);
      const NdArray result = results.allocate(0, k);
      run_chain(chain, arrays, result, 1);
    }
  };
  const double work = static_cast<double>(op.result_type().size() * count * chain.ops);
  if (!is_rehearsal() && count >= thread_count() && work >= kParallelWork) {
    parallel_for(count, 1, run_shards);
  } else {
    run_shards(0, count);
  }
  return results.take(0);
}

void ProgramRun::run_chain(const FusedChain& chain, std::span<const NdArray> inputs, const NdArray& result,
                           int64_t shards) const {
  if (result.size() != 0 && !leaves_out(result.nbytes() / shards))
    run_tiles(chain.program, inputs, std::array{result}, pool_for());
}

void ProgramRun::reduce_together(std::span<const Step> batch) {
  std::vector<Shards> operands;
  std::vector<Reducer> reducers;
  for (const Step& step : batch) {
    operands.push_back(slots_[step.inputs[0]]);
    reducers.push_back(std::get<CollectiveCall>(step.work).reducer);
  }
  communicator_.begin(batch[0].op);
  reduced_ = communicator_.all_reduce_together(operands, std::get<CollectiveCall>(batch[0].work).axes, reducers);
  // The steps of the batch follow one by one, and each takes the last of these.
  std::ranges::reverse(reduced_);
}

void ProgramRun::run_collective(const Step& step, const CollectiveCall& collective) {
  if (collective.together > 1) reduce_together({&step, collective.together});
  if (!reduced_.empty()) {
    slots_[step.outputs[0]] = reduced_.back().along(step.axes);
    reduced_.pop_back();
    return;
  }
  std::vector<Shards> operands;
  operands.reserve(step.inputs.size());
  for (const uint32_t slot : step.inputs) operands.push_back(slots_[slot]);
  // Reports and counters name the op whose bytes travel.
  communicator_.begin(step.op);
  slots_[step.outputs[0]] = collective.run(communicator_, operands).along(step.axes);
}

void ProgramRun::poison_padding(uint32_t slot) {
  slots_[slot] = poisoned(std::move(slots_[slot]), slot, module_, plan_, devices_);
}

void ProgramRun::free(const std::vector<uint32_t>& dead) {
  for (uint32_t slot : dead) slots_[slot] = Shards();
}

void ProgramRun::trace(const Step& step, std::chrono::steady_clock::time_point begin) {
  const auto nanoseconds = [](auto duration) {
    return static_cast<int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  };
  const OpView op(module_, step.op);
  const auto* chain = std::get_if<FusedChain>(&step.work);
  TraceRow row{.op = op.name(), .id = step.op, .loc = op.loc(), .fused_ops = chain == nullptr ? 1 : chain->ops};
  row.duration_ns = nanoseconds(std::chrono::steady_clock::now() - begin);
  row.start_ns = nanoseconds(begin - start_);
  row.shards = product(step.axes);
  for (uint32_t slot : step.outputs) row.bytes += bytes_of(slots_[slot]);
  options_.trace->push_back(row);
}

}  // namespace shardwise
