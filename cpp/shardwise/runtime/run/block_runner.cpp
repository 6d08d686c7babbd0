// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/block_runner.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/run/loop_rehearsal.h"
#include "shardwise/runtime/run/scan_slots.h"

namespace shardwise {

BlockRunner::BlockRunner(const Module& module, const Plan& plan, const RunOptions& options, Slots& slots,
                         Communicator& communicator)
    : module_(module),
      plan_(plan),
      options_(options),
      slots_(slots),
      kernels_(module, slots),
      chains_(module, slots, plan.runners),
      collectives_(slots, communicator),
      timer_(module, slots, options.trace) {}

void BlockRunner::run_main() {
  const InterruptScope interrupt(options_.between_ops);
  run(plan_.main);
}

void BlockRunner::run(const Block& block) {
  run_steps(block);
  slots_.move(block.moves);
}

void BlockRunner::run_steps(const Block& block) {
  slots_.free(block.dead);
  for (const Step& step : block.steps) {
    ++steps_;
    if (options_.between_ops) options_.between_ops();
    std::visit([&](const auto& work) { run_work(step, work); }, step.work);
    slots_.free(step.dead);
  }
}

template <class Work>
void BlockRunner::run_work(const Step& step, const Work& work) {
  // The step inside a loop, branch or function names its own errors.
  try {
    if (!step.outputs.empty()) slots_.label_allocations(step.outputs[0]);
    timer_.begin();
    run_op(step, work);
    for (uint32_t slot : step.outputs) slots_.poison_padding(slot);
    timer_.end(step);
  } catch (const OutOfMemoryError& error) {
    fail_out_of_memory(step, error);
  } catch (const std::bad_alloc&) {
    fail_out_of_memory(step, OutOfMemoryError({}, {}, 0));
  } catch (Error& error) {
    error.at(module_.context().location_text(module_.op(step.op).loc));
    throw;
  }
}

void BlockRunner::run_work(const Step& step, const Loop& loop) {
  if (!is_rehearsal()) return run_trips(step, loop);
  rehearsed_.run(step, slots_, [&] { run_trips(step, loop); });
}

void BlockRunner::run_trips(const Step& step, const Loop& loop) {
  if (loop.rows) return run_scan(step, loop);
  // A loop without steps reaches no check between steps, and Ctrl-C could not end it.
  const bool is_empty = loop.condition.steps.empty() && loop.body.steps.empty();
  slots_.move(loop.enter);
  if (is_rehearsal()) {
    rehearse_trips(slots_, loop, [&](int64_t) {
      run(loop.condition);
      run(loop.body);
    });
  }
  while (true) {
    run(loop.condition);
    // A rehearsal has no values to decide by: it has run its trips above, and only evaluates the condition.
    if (is_rehearsal() || predicate(step, loop.condition.results[0]) == 0) break;
    if (is_empty && options_.between_ops) options_.between_ops();
    run(loop.body);
  }
  // Unless the condition returns a carry or what it captures, nothing reads its result any more.
  const uint32_t result = loop.condition.results[0];
  const bool is_own = std::ranges::any_of(loop.condition.steps, [&](const Step& each) {
    return std::ranges::find(each.outputs, result) != each.outputs.end();
  });
  if (is_own) slots_.free({&result, 1});
}

void BlockRunner::run_scan(const Step&, const Loop& loop) {
  const ScanRows& rows = *loop.rows;
  const int64_t trips = *loop.trips;
  slots_.move(loop.enter);
  start_stacks(slots_, rows);
  const auto run_trip = [&](int64_t trip) {
    const int64_t row = rows.is_reverse ? trips - 1 - trip : trip;
    read_rows(slots_, rows, row);
    if (loop.body.steps.empty() && options_.between_ops) options_.between_ops();
    run_steps(loop.body);
    write_rows(slots_, rows, trips, row);
    // After the rows are written: a value may be a row and the next carry, and the move takes it away.
    slots_.move(loop.body.moves);
  };
  if (is_rehearsal()) {
    rehearse_trips(slots_, loop, run_trip);
  } else {
    for (int64_t trip = 0; trip < trips; ++trip) run_trip(trip);
  }
  finish_stacks(slots_, rows, trips);
}

void BlockRunner::run_work(const Step& step, const Branches& branches) {
  const int64_t count = std::ssize(branches.blocks);
  int64_t branch = is_rehearsal() ? rehearsed_branch(step.op) : predicate(step, step.inputs[0]);
  // The first branch of an `if` is for true.
  if (!is_rehearsal() && slots_[step.inputs[0]].dtype() == DType::kBool) branch = branch != 0 ? 0 : 1;
  // StableHLO case: an index out of range selects the last branch.
  if (branch < 0 || branch >= count) branch = count - 1;
  run(branches.blocks[static_cast<size_t>(branch)]);
}

void BlockRunner::run_work(const Step&, const Call& call) {
  slots_.move(call.enter);
  run(plan_.functions[call.function].block);
  slots_.move(call.leave);
}

int64_t BlockRunner::rehearsed_branch(OpId op) const {
  const auto found = options_.rehearsed_branches->find(op);
  return found == options_.rehearsed_branches->end() ? 0 : found->second;
}

int64_t BlockRunner::predicate(const Step& step, uint32_t slot) const {
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

// The error names the op's results, because the buffer is one of them, or a temporary of the kernel.
void BlockRunner::fail_out_of_memory(const Step& step, const OutOfMemoryError& error) const {
  const OpView op(module_, step.op);
  std::string results;
  for (size_t i = 0; i < op.result_count(); ++i) results.append(i > 0 ? ", " : "").append(op.result_type(i).text());
  // The buffer may hold the shards of all of them side by side, so that the result type alone would look too small.
  if (const int64_t count = product(step.axes); count > 1) results += str(" for each of ", count, " devices");
  OutOfMemoryError named = error.named(op.name(), results);
  named.at(module_.context().location_text(op.loc()));
  throw named;
}

}  // namespace shardwise
