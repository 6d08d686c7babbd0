// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/gathers_in_trips.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/analysis/schedule/region_times.h"
#include "shardwise/choice/memory/aligned_scans.h"
#include "shardwise/choice/memory/made_stacks.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/emission/row_of_op.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/partition/rows_in_trips.h"

namespace shardwise {
namespace {

bool is_transfer(const Module& local, OpId op) { return local.op(op).def->traits.collective != CollectiveKind::kNone; }

// Whether a transfer makes the stack, and each row of it could be made alone.
bool is_transferred_by_rows(const Module& local, ValueId stack, size_t dim) {
  for (std::optional<size_t> rows = dim; local.value(stack).op; stack = local.operands(local.value(stack).op)[0]) {
    const OpId maker = local.value(stack).op;
    rows = operand_dim_of_rows(OpView(local, maker), *rows);
    if (!rows || is_transfer(local, maker)) return rows.has_value();
  }
  return false;
}

// Needs no walk through the memory of the program, which nearly all programs are spared by it.
bool may_read_made_stack(const Module& local, OpId op) {
  const std::optional<RowCourse> course = row_course(local, op);
  if (!course) return false;
  const std::vector<LoopParts::Input> inputs = loop_parts(OpView(local, op)).inputs;
  return std::ranges::any_of(inputs, [&](const LoopParts::Input& input) {
    return is_transferred_by_rows(local, input.stack, static_cast<size_t>(course->dimension));
  });
}

bool may_read_made_stacks(const Module& local) {
  return !find_ops(local, [&](OpId op) { return may_read_made_stack(local, op); }).empty();
}

// The first scan runs once for each time that the stack is made, and reads all of its rows, each in the trip of its number.
bool has_scan_of_all_rows(const Module& local, const MadeStack& stack) {
  const OpId scan = stack.readers.front();
  if (local.op(scan).parent != local.op(stack.ops.back()).parent) return false;
  const RowCourse course = *row_course(local, scan);
  if (local.type(stack.stack).shape[static_cast<size_t>(course.dimension)] != course.trips) return false;
  const std::vector<LoopParts::Input> inputs = loop_parts(OpView(local, scan)).inputs;
  return std::ranges::all_of(
      inputs, [&](const LoopParts::Input& input) { return input.stack != stack.stack || input.offset == 0; });
}

// Writes all stacks of one scan at once: a walk through the memory and a new scan for each of 40 stacks would take seconds.
bool write_next(Module& local, const PassContext& context, const Hardware& hardware) {
  if (!may_read_made_stacks(local)) return false;
  std::vector<MadeStack> stacks = made_stacks(local, live_walk(local, context.options.donated), hardware);
  std::erase_if(stacks, [&](const MadeStack& stack) {
    return std::ranges::none_of(stack.ops, [&](OpId op) { return is_transfer(local, op); }) ||
           !has_scan_of_all_rows(local, stack);
  });
  if (stacks.empty()) return false;
  const OpId scan = stacks.front().readers.front();
  std::erase_if(stacks, [&](const MadeStack& stack) { return stack.readers.front() != scan; });
  make_rows_in_first_scan(local, stacks);
  return true;
}

}  // namespace

Module gathers_in_trips(Module module, PassContext& context) {
  if (!may_read_made_stacks(module)) return module;
  const HardwarePtr hardware = hardware_called(context.options.hardware);
  Module made = module;
  if (!write_next(made, context, *hardware)) return module;
  while (write_next(made, context, *hardware)) {
  }
  const auto step_time = [&](const Module& local) { return RegionTimer(local, *hardware, TimeMode::kEstimate).run(); };
  if (step_time(made) >= step_time(module)) return module;
  const int64_t limit = context.options.memory_limit;
  if (limit != 0 && live_bytes(made, context.options.donated).peak_bytes > limit) return module;
  return made;
}

}  // namespace shardwise
