// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/batch_dependence.h"

#include <optional>
#include <utility>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/collectives/device_numbers.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/transforms/batch/manual_axes.h"

namespace shardwise {

bool is_pass_through(const OpView& op) {
  return op.def().passes_through() && op.operand_count() > 1 && op.operand_count() == op.result_count();
}

AxisSet BatchDependence::varies(ValueId value) const {
  const auto found = varies_.find(value);
  return known_(value) | (found == varies_.end() ? 0 : found->second);
}

AxisSet BatchDependence::read_by(OpId op) const {
  AxisSet set = 0;
  for (const ValueId value : module_.operands(op)) set |= varies(value);
  if (module_.regions(op).empty()) return set;
  for (const ValueId value : captures_of(module_, op)) set |= varies(value);
  return set;
}

bool BatchDependence::sees_devices(OpId op) const {
  if (axes_.mesh() == nullptr && axes_.are_examples()) return false;
  const bool is_manual = module_.op(op).def->regions == Regions::kManual && !axes_.are_examples();
  // A call is expanded to find the ops that it contains.
  if (find_device_op(OpView(module_, op), axes_) != nullptr || is_manual || is_call(module_, op)) return true;
  bool found = false;
  for (const RegionId region : module_.regions(op)) {
    for (const OpId inner : module_.region(region).ops) found = found || sees_devices(inner);
  }
  return found;
}

LoopBatching BatchDependence::loop(OpId op) {
  const LoopParts parts = loop_parts(OpView(module_, op));
  LoopBatching found;
  for (const LoopParts::Carry& carry : parts.carries) found.carries.push_back(varies(carry.entry));
  // (a, b) -> (b, c) with a batched c: one sweep finds b, the next one a. A carry that is batched stays so.
  const auto grow = [&] {
    for (bool grows = true; grows;) {
      grows = false;
      mark(module_.region(parts.body).arguments, found.carries);
      visit(parts.body);
      for (size_t i = 0; i < found.carries.size(); ++i) {
        const AxisSet next = found.carries[i] | varies(parts.carries[i].next);
        grows = grows || next != found.carries[i];
        found.carries[i] = next;
      }
    }
    mark(module_.region(parts.condition).arguments, found.carries);
    visit(parts.condition);
    found.predicate = varies(parts.predicate);
  };
  const AxisSet decided = decided_;
  grow();
  // A row that is done keeps its carries, while those of the others change. That may batch more carries, along more
  // axes than the predicate had, and these may batch the predicate.
  for (bool grows = found.predicate != 0; grows;) {
    const std::vector<AxisSet> before = found.carries;
    for (size_t i = 0; i < found.carries.size(); ++i) {
      if (!parts.carries[i].is_invariant()) found.carries[i] |= found.predicate;
    }
    decided_ |= found.predicate;
    grow();
    grows = found.carries != before;
  }
  decided_ = decided;
  return found;
}

std::vector<AxisSet> BatchDependence::branches(OpId op) {
  // An index per row selects between the results of all branches, so that each result differs between rows.
  const AxisSet index = varies(module_.operands(op)[0]);
  std::vector<AxisSet> sets(module_.op(op).result_count, index);
  const AxisSet decided = std::exchange(decided_, decided_ | index);
  for (const RegionId branch : module_.regions(op)) {
    visit(branch);
    const std::vector<ValueId>& results = module_.region(branch).results;
    for (size_t i = 0; i < sets.size(); ++i) sets[i] |= varies(results[i]);
  }
  decided_ = decided;
  return sets;
}

void BatchDependence::visit(RegionId region) {
  for (const OpId op : module_.region(region).ops) visit(op);
}

void BatchDependence::visit(OpId op) {
  const auto results = results_of(module_, op);
  switch (module_.op(op).def->regions) {
    case Regions::kLoop: return mark(results, loop(op).carries);
    case Regions::kBranches: return mark(results, branches(op));
    case Regions::kInline: return visit_body(op, module_.regions(op)[0]);
    case Regions::kManual:
      // One device of vmap's rows sees no other: all operands count for all results.
      if (!axes_.are_examples()) return visit_manual(op);
      break;
    default: break;
  }
  const bool has_devices = axes_.mesh() != nullptr || !axes_.are_examples();
  if (has_devices && is_call(module_, op)) return visit_body(op, called_function(module_, op).body);
  mark(results, of_results(op));
}

// Marks from other calls are kept, so its values may differ along more axes than in this call.
void BatchDependence::visit_body(OpId op, RegionId body) {
  const std::vector<ValueId>& arguments = module_.region(body).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) mark(arguments[i], varies(module_.operands(op)[i]));
  visit(body);
  const std::vector<ValueId>& results = module_.region(body).results;
  for (uint32_t i = 0; i < results.size(); ++i) mark(module_.result(op, i), varies(results[i]));
}

void BatchDependence::visit_manual(OpId op) {
  const ManualAxes manual(OpView(module_, op), axes_);
  std::vector<AxisSet> sets = manual_results(op, manual);
  for (AxisSet& set : sets) set &= manual.around();
  mark(results_of(module_, op), sets);
}

std::vector<AxisSet> BatchDependence::manual_results(OpId op, const ManualAxes& manual) const {
  BatchDependence inner(module_, manual.axes(), [this](ValueId value) { return varies(value); });
  inner.decided_ = decided_;
  inner.known_sums_ = known_sums_;
  inner.found_sums_ = found_sums_;
  const RegionId body = module_.regions(op)[0];
  const std::vector<ValueId>& arguments = module_.region(body).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inner.mark(arguments[i], varies(module_.operands(op)[i]) | manual.of(manual.sharding(arguments[i])));
  }
  inner.visit(body);
  std::vector<AxisSet> sets;
  for (const ValueId result : module_.region(body).results) sets.push_back(inner.varies(result));
  return sets;
}

std::vector<AxisSet> BatchDependence::of_results(OpId id) const {
  const OpView op(module_, id);
  if (is_match_varying(op.def()) && (known_sums_ != nullptr || found_sums_ != nullptr)) return {matched(id)};
  if (is_pass_through(op)) {
    std::vector<AxisSet> own;
    for (const ValueId operand : op.operands()) own.push_back(varies(operand));
    return own;
  }
  std::vector<AxisSet> sets(op.result_count(), read_by(id));
  if (!axes_.are_examples()) {
    if (const std::optional<DeviceNumber> number = device_number(op, axes_)) return {number->axes()};
  }
  if (!sees_devices(id)) return sets;
  const DeviceOp* device = find_device_op(op, axes_);
  for (size_t i = 0; i < sets.size(); ++i) {
    // A manual computation inside may ask for the number of a device.
    sets[i] =
        device == nullptr ? axes_.all() : of_device_op(op, *device, i < op.operand_count() ? varies(op.operand(i)) : 0);
  }
  return sets;
}

AxisSet BatchDependence::of_device_op(const OpView& op, const DeviceOp& device, AxisSet operand) const {
  const bool counts = found_sums_ != nullptr && device.counts_as_varying != nullptr;
  return (counts ? device.counts_as_varying : device.varies)(op, axes_, operand);
}

// Where a predicate varies, each device runs the op for itself: the sum is taken around the branch.
AxisSet BatchDependence::matched(OpId id) const {
  const AxisSet cotangent = varies(module_.operands(id)[0]);
  if (known_sums_ != nullptr) {
    const auto known = known_sums_->find(id);
    return known == known_sums_->end() ? cotangent : cotangent & ~known->second.set;
  }
  const AxisSet value = varies(module_.operands(id)[1]) | decided_;
  const AxisSet summed = cotangent & ~value;
  (*found_sums_)[id] = {.set = summed, .axes = axes_.refs(summed), .mesh = axes_.mesh()};
  return value;
}

}  // namespace shardwise
