// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/forward/tangent_walk.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/forward/push_forward.h"
#include "shardwise/transforms/forward/tangent_regions.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"

namespace shardwise {

TangentWalk::TangentWalk(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                         std::span<const ValueId> tangents)
    : builder_(builder),
      module_(builder.module()),
      ops_(module_.region(builder.region()).ops),
      activity_(module_, wrt),
      replaced_(module_) {
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!tangents[i]) continue;
    const TypeId wanted = module_.value(wrt[i]).type;
    check_internal(module_.value(tangents[i]).type == wanted, "a tangent has the type of its variable");
    tangents_[wrt[i]] = tangents[i];
  }
  for (const OpId op : ops_) located(module_, op, [&] { activity_.visit(op); });
  find_needed(outputs);
}

// The ops with a float on a path to an output. An op that others need only for integers, as the places that a pooling
// selects, may have no derivative.
void TangentWalk::find_needed(std::span<const ValueId> outputs) {
  std::unordered_set<ValueId> needed(outputs.begin(), outputs.end());
  const auto is_needed = [&](ValueId value) { return needed.contains(value) && is_inexact(module_.type(value).dtype); };
  for (const OpId op : ops_ | std::views::reverse) {
    if (!any_result(module_, op, is_needed)) continue;
    needed_.insert(op);
    visit_reads(module_, op, [&](ValueId value) { needed.insert(value); });
  }
}

ValueId TangentWalk::tangent(ValueId value) const {
  const auto found = tangents_.find(value);
  return found == tangents_.end() ? ValueId{} : found->second;
}

// The list of ops is made anew, so that the ops of a tangent follow the op.
void TangentWalk::run() {
  const LocId loc = builder_.loc();
  module_.region(builder_.region()).ops.clear();
  for (const OpId op : ops_) {
    replaced_.apply(op);
    located(module_, op, [&] { visit(op); });
  }
  builder_.set_loc(loc);
}

void TangentWalk::visit(OpId op) {
  const bool is_reached =
      needed_.contains(op) && reads_any(module_, op, [&](ValueId value) { return tangents_.contains(value); });
  const Regions regions = module_.op(op).def->regions;
  if (is_reached && (regions == Regions::kLoop || regions == Regions::kBranches || regions == Regions::kInline)) {
    return replace(op);
  }
  module_.region(builder_.region()).ops.push_back(op);
  if (is_reached) push(op);
}

void TangentWalk::replace(OpId op) {
  builder_.set_loc(module_.op(op).loc);
  switch (module_.op(op).def->regions) {
    case Regions::kLoop: return push_through_loop(*this, op);
    case Regions::kBranches: return push_through_branches(*this, op);
    default:
      return has_given_derivative(module_, op) ? push_through_given(*this, op) : push_through_checkpoint(*this, op);
  }
}

std::vector<ValueId> TangentWalk::tangents_of(std::span<const ValueId> values) const {
  std::vector<ValueId> tangents;
  for (const ValueId value : values) tangents.push_back(tangent(value));
  return tangents;
}

void TangentWalk::put_in_place_of(OpId op, std::span<const ValueId> results, std::span<const ValueId> tangents) {
  for (uint32_t i = 0; i < module_.op(op).result_count; ++i) {
    replaced_.add(module_.result(op, i), results[i]);
    if (tangents[i]) tangents_[results[i]] = tangents[i];
  }
  // The op leaves the region but not the module, where it would still count as a user of its operands.
  module_.drop_uses(op);
}

// ---- ops without regions -------------------------------------------------------------------------------------------

void TangentWalk::push(OpId op) {
  // An op that was expanded stays where its results may be known; what follows reads those of the expansion.
  if (module_.op(op).def->is_differentiated_as_ops()) return;
  const std::vector<ValueId> of_operands = tangents_of(module_.operands(op));
  if (std::ranges::none_of(of_operands, [](ValueId tangent) { return bool{tangent}; })) return;
  builder_.set_loc(module_.context().without_names(module_.op(op).loc));
  const size_t first = module_.op_count();
  const std::vector<ValueId> tangents = push_forward(builder_, OpView(module_, op), of_operands);
  if (times_before(module_, op) > 0) unmark(module_, first);
  for (uint32_t i = 0; i < tangents.size(); ++i) {
    const ValueId result = module_.result(op, i);
    // A variable has the tangent that it was given, whatever op makes it.
    if (tangents[i]) tangents_.emplace(result, tangents[i]);
  }
}

void TangentWalk::capture(OpId op, std::vector<ValueId>& wrt, std::vector<ValueId>& tangents) const {
  for (const ValueId value : captures_of(module_, op)) {
    if (!tangent(value)) continue;
    wrt.push_back(value);
    tangents.push_back(tangent(value));
  }
}

ValueId tangent_or_zeros(Builder& builder, ValueId tangent, ValueId like) {
  return tangent ? tangent : build_zeros(builder, TensorType(builder.module().type(like)));
}

}  // namespace shardwise
