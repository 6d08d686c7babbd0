// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/aligned_scans.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

void visit_whole_reads(const Module& module, const LiveRanges& ranges, const LiveStep& step,
                       const std::function<void(ValueId)>& visit) {
  size_t next = 0;
  if (row_course(module, step.op)) {
    const LoopParts parts = loop_parts(OpView(module, step.op));
    for (const LoopParts::Carry& carry : parts.carries) visit(ranges.home(carry.entry));
    for (const LoopParts::Input& input : parts.inputs) {
      if (!reads_aligned(module, step.op, input)) visit(ranges.home(input.stack));
      if (input.border) visit(ranges.home(input.border));
      next += input.border ? 2 : 1;
    }
    next += parts.carries.size();
  }
  // Captures stand behind what a loop is given.
  for (; next < step.inputs.size(); ++next) visit(step.inputs[next]);
}

}  // namespace

std::optional<RowCourse> row_course(const Module& module, OpId op) {
  if (module.op(op).def->regions != Regions::kLoop) return std::nullopt;
  const std::optional<ScanOrder> order = scan_order(OpView(module, op));
  if (!order) return std::nullopt;
  return RowCourse{order->dimension, order->trips};
}

bool makes_stack(const Module& module, OpId scan, ValueId value) {
  if (!row_course(module, scan)) return false;
  const LoopParts parts = loop_parts(OpView(module, scan));
  return std::ranges::find(parts.outputs, value, &LoopParts::Output::stack) != parts.outputs.end();
}

bool reads_aligned(const Module& module, OpId scan, const LoopParts::Input& input) {
  if (input.offset != 0 || input.border) return false;
  const OpId maker = module.value(input.stack).op;
  return maker && row_course(module, maker) == row_course(module, scan) && makes_stack(module, maker, input.stack);
}

std::vector<RowCourse> aligned_courses(const Module& module, const LiveBlock& block, size_t at) {
  std::vector<RowCourse> courses;
  for (size_t i = at; i < block.steps.size(); ++i) {
    const OpId op = block.steps[i].op;
    const std::optional<RowCourse> course = row_course(module, op);
    if (!course || std::ranges::find(courses, *course) != courses.end()) continue;
    const LoopParts parts = loop_parts(OpView(module, op));
    const bool meets = std::ranges::any_of(
        parts.inputs, [&](const LoopParts::Input& input) { return reads_aligned(module, op, input); });
    if (meets) courses.push_back(*course);
  }
  return courses;
}

WholeReads whole_reads(const Module& module, const LiveRanges& ranges, const LiveBlock& block, size_t at) {
  WholeReads reads;
  visit_whole_reads(module, ranges, block.steps[at], [&](ValueId home) { reads.at.insert(home); });
  for (size_t i = at + 1; i < block.steps.size(); ++i) {
    visit_whole_reads(module, ranges, block.steps[i], [&](ValueId home) { reads.late.insert(home); });
  }
  reads.late.insert(block.results.begin(), block.results.end());
  return reads;
}

}  // namespace shardwise
