// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/activity.h"

#include <algorithm>
#include <functional>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"

namespace shardwise {

Activity::Activity(const Module& module, std::span<const ValueId> wrt)
    // Values that the gradient adds later have a larger index, so they count as inactive.
    : module_(module), active_(module.value_count()) {
  for (const ValueId value : wrt) active_[value.index] = true;
}

void Activity::mark(ValueId value) {
  // The result of a comparison or of argmax depends on `wrt`, but has no derivative that could flow back.
  if (is_inexact(module_.type(value).dtype)) active_[value.index] = true;
}

void Activity::visit(OpId op) {
  switch (module_.op(op).def->regions) {
    case Regions::kLoop: return visit_loop(op);
    case Regions::kBranches: return visit_branches(op);
    case Regions::kInline: return visit_inline(op);
    case Regions::kNone:
    case Regions::kCombiner:
    case Regions::kCall:
    case Regions::kManual: break;
  }
  check_no_capture(op);
  visit_operands(op);
}

void Activity::visit_operands(OpId op) {
  if (std::ranges::none_of(module_.operands(op), std::cref(*this))) return;
  for (const ValueId result : results_of(module_, op)) mark(result);
}

void Activity::visit_ops(RegionId region) {
  for (const OpId op : module_.region(region).ops) visit(op);
}

// A carry that is active in one trip is active in the next one.
void Activity::visit_loop(OpId op) {
  const LoopParts parts = loop_parts(OpView(module_, op));
  for (const LoopParts::Carry& carry : parts.carries) mark_if((*this)(carry.entry), carry.argument);
  // Each sweep but the last marks a carry, so there are at most as many sweeps as carries, and one.
  for (bool changed = true; changed;) {
    visit_ops(parts.body);
    changed = false;
    for (const LoopParts::Carry& carry : parts.carries) {
      if (!(*this)(carry.next) || (*this)(carry.argument)) continue;
      mark(carry.argument);
      changed = true;
    }
  }
  // By the argument, not by the body's result: a loop without trips returns its operands.
  for (const LoopParts::Carry& carry : parts.carries) mark_if((*this)(carry.argument), carry.result);
}

// Branches have no arguments: their active values are captures, which are marked already.
void Activity::visit_branches(OpId op) {
  for (const RegionId branch : module_.regions(op)) {
    visit_ops(branch);
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) {
      mark_if((*this)(module_.region(branch).results[i]), module_.result(op, i));
    }
  }
}

void Activity::visit_inline(OpId op) {
  // Its ops may break the path: a straight-through round does.
  if (has_given_derivative(module_, op)) return visit_operands(op);
  const Region& body = module_.region(module_.regions(op)[0]);
  for (size_t i = 0; i < body.arguments.size(); ++i) mark_if((*this)(module_.operands(op)[i]), body.arguments[i]);
  visit_ops(module_.regions(op)[0]);
  for (uint32_t i = 0; i < body.results.size(); ++i) mark_if((*this)(body.results[i]), module_.result(op, i));
}

// The regions of other ops have one kernel with the op.
void Activity::check_no_capture(OpId op) const {
  if (module_.regions(op).empty()) return;
  for (const ValueId value : captures_of(module_, op)) {
    if (!(*this)(value)) continue;
    fail<ShapeError>(module_.op(op).def->name, "a value that is differentiated must reach the region as an operand",
                     "a captured value", "pass it as an argument");
  }
}

}  // namespace shardwise
