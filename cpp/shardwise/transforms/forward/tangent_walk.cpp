// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/forward/tangent_walk.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/transforms/forward/differentiate_forward.h"
#include "shardwise/transforms/forward/push_forward.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/given_derivatives.h"

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
  const bool is_reached = needed_.contains(op) &&
                          reads_any(module_, op, [&](ValueId value) { return tangents_.contains(value); });
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
    case Regions::kLoop: return loop(op);
    case Regions::kBranches: return branches(op);
    default: return has_given_derivative(module_, op) ? given(op) : checkpoint(op);
  }
}

std::vector<ValueId> TangentWalk::tangents_of(std::span<const ValueId> values) const {
  std::vector<ValueId> tangents;
  for (const ValueId value : values) tangents.push_back(tangent(value));
  return tangents;
}

ValueId TangentWalk::or_zeros(Builder& builder, ValueId tangent, ValueId like) const {
  return tangent ? tangent : build_zeros(builder, TensorType(module_.type(like)));
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
  if (module_.op(op).def->vjp == nullptr) return;
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

// ---- loops ---------------------------------------------------------------------------------------------------------

void TangentWalk::capture(OpId op, std::vector<ValueId>& wrt, std::vector<ValueId>& tangents) const {
  for (const ValueId value : captures_of(module_, op)) {
    if (!tangent(value)) continue;
    wrt.push_back(value);
    tangents.push_back(tangent(value));
  }
}

// The tangent of a carry that the body returns unchanged is that of the operand, and no carry.
void TangentWalk::loop(OpId id) {
  const LoopParts parts = loop_parts(OpView(module_, id));
  const RegionId body = module_.add_region(), condition = module_.add_region();
  Builder inner(module_, body, builder_.loc());
  GraphCopy copy(module_, module_), tested(module_, module_);
  std::vector<ValueId> operands, wrt, tangents, results;
  std::vector<size_t> moving;  // the carries with a tangent of their own
  const auto add_carry = [&](ValueId operand, ValueId like) {
    operands.push_back(operand);
    const Value known = module_.value(like);
    return std::pair(module_.add_argument(body, known.type, known.loc),
                     module_.add_argument(condition, known.type, known.loc));
  };
  for (const LoopParts::Carry& carry : parts.carries) {
    const auto [argument, in_condition] = add_carry(carry.entry, carry.argument);
    copy.map(carry.argument, argument);
    tested.map(carry.tested, in_condition);
  }
  for (size_t i = 0; i < parts.carries.size(); ++i) {
    const LoopParts::Carry& carry = parts.carries[i];
    const ValueId of_entry = tangent(carry.entry);
    if (!activity_(carry.argument) || (carry.is_invariant() && !of_entry)) continue;
    wrt.push_back(copy(carry.argument));
    if (carry.is_invariant()) {
      tangents.push_back(of_entry);
      continue;
    }
    moving.push_back(i);
    tangents.push_back(add_carry(or_zeros(builder_, of_entry, carry.argument), carry.argument).first);
  }
  capture(id, wrt, tangents);

  copy.ops(parts.body, body);
  for (const LoopParts::Carry& carry : parts.carries) results.push_back(copy(carry.next));
  const Tangents next = append_jvp(inner, results, wrt, tangents);
  for (ValueId& result : results) result = next.replaced(result);
  for (const size_t i : moving) results.push_back(or_zeros(inner, next.values[i], parts.carries[i].argument));
  module_.region(body).results = results;
  tested.ops(parts.condition, condition);
  module_.region(condition).results = {tested(parts.predicate)};

  const RegionId regions[] = {condition, body};
  const OpId made = builder_.create_op(*module_.op(id).def, operands, module_.op(id).attrs, {}, regions);
  const std::vector<ValueId> values = list_of_results(module_, made);
  std::vector<ValueId> of_results(parts.carries.size());
  for (size_t i = 0; i < parts.carries.size(); ++i) {
    if (parts.carries[i].is_invariant()) of_results[i] = tangent(parts.carries[i].entry);
  }
  for (size_t k = 0; k < moving.size(); ++k) of_results[moving[k]] = values[parts.carries.size() + k];
  put_in_place_of(id, values, of_results);
}

// ---- branches ------------------------------------------------------------------------------------------------------

void TangentWalk::branches(OpId id) {
  const std::vector<RegionId> originals(module_.regions(id).begin(), module_.regions(id).end());
  const uint32_t count = module_.op(id).result_count;
  std::vector<ValueId> wrt, tangents;
  capture(id, wrt, tangents);
  std::vector<Joint> joint;
  std::vector<bool> has_tangent(count);
  for (const RegionId original : originals) {
    Builder inner(module_, module_.add_region(), builder_.loc());
    GraphCopy copy(module_, module_);
    copy.ops(original, inner.region());
    std::vector<ValueId> results;
    for (const ValueId result : std::vector<ValueId>(module_.region(original).results)) {
      results.push_back(copy(result));
    }
    Tangents made = append_jvp(inner, results, wrt, tangents);
    for (uint32_t i = 0; i < count; ++i) {
      results[i] = made.replaced(results[i]);
      if (made.values[i]) has_tangent[i] = true;
    }
    joint.push_back({.region = inner.region(), .results = results, .tangents = std::move(made.values)});
  }
  std::vector<RegionId> regions;
  for (const Joint& branch : joint) {
    Builder inner(module_, branch.region, builder_.loc());
    std::vector<ValueId> results = branch.results;
    for (uint32_t i = 0; i < count; ++i) {
      if (has_tangent[i]) results.push_back(or_zeros(inner, branch.tangents[i], branch.results[i]));
    }
    module_.region(branch.region).results = std::move(results);
    regions.push_back(branch.region);
  }
  const ValueId selector = module_.operands(id)[0];
  const OpId made = builder_.create_op(*module_.op(id).def, {&selector, 1}, module_.op(id).attrs, {}, regions);
  const std::vector<ValueId> values = list_of_results(module_, made);
  std::vector<ValueId> of_results(count);
  size_t next = count;
  for (uint32_t i = 0; i < count; ++i) {
    if (has_tangent[i]) of_results[i] = values[next++];
  }
  put_in_place_of(id, values, of_results);
}

// ---- inline regions ------------------------------------------------------------------------------------------------

// It stays a checkpoint, whose gradient computes both again.
void TangentWalk::checkpoint(OpId id) {
  const RegionId original = module_.regions(id)[0];
  std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
  const size_t count = operands.size();
  Builder inner(module_, module_.add_region(), builder_.loc());
  GraphCopy copy(module_, module_);
  std::vector<ValueId> wrt, tangents, results;
  for (size_t i = 0; i < count; ++i) {
    const ValueId argument = module_.region(original).arguments[i];
    const Value known = module_.value(argument);
    copy.map(argument, module_.add_argument(inner.region(), known.type, known.loc));
    module_.value(copy(argument)).sharding = known.sharding;
  }
  for (size_t i = 0; i < count; ++i) {
    const ValueId of_operand = tangent(operands[i]);
    if (!of_operand) continue;
    const ValueId argument = copy(module_.region(original).arguments[i]);
    wrt.push_back(argument);
    tangents.push_back(module_.add_argument(inner.region(), module_.value(argument).type, builder_.loc()));
    operands.push_back(of_operand);
  }
  copy.ops(original, inner.region());
  for (const ValueId result : std::vector<ValueId>(module_.region(original).results)) results.push_back(copy(result));
  const Tangents made = append_jvp(inner, results, wrt, tangents);
  const size_t result_count = results.size();
  for (size_t i = 0; i < result_count; ++i) results[i] = made.replaced(results[i]);
  for (size_t i = 0; i < result_count; ++i) {
    if (made.values[i]) results.push_back(made.values[i]);
  }
  module_.region(inner.region()).results = results;
  const RegionId region = inner.region();
  const OpId joint =
      builder_.create_op(*module_.op(id).def, operands, module_.op(id).attrs, types_of(module_, results), {&region, 1});
  const std::vector<ValueId> values = list_of_results(module_, joint);
  std::vector<ValueId> of_results(result_count);
  size_t next = result_count;
  for (size_t i = 0; i < result_count; ++i) {
    if (made.values[i]) of_results[i] = values[next++];
  }
  put_in_place_of(id, values, of_results);
}

// ---- given derivatives ---------------------------------------------------------------------------------------------

void TangentWalk::given(OpId id) {
  const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
  const uint32_t count = module_.op(id).result_count;
  const GivenDerivative derivative = given_derivative(module_, id);
  const std::vector<ValueId> of_operands = tangents_of(operands);
  refuse_closed_over(module_, id, derivative, [&](size_t i) { return bool{of_operands[i]}; });
  std::vector<ValueId> inputs = operands;
  if (derivative.tangents) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (derivative.has_gradient[i]) inputs.push_back(or_zeros(builder_, of_operands[i], operands[i]));
    }
    const std::vector<ValueId> made = append_given(builder_, *derivative.tangents, inputs);
    std::vector<ValueId> tangents(count);
    size_t next = count;
    for (uint32_t i = 0; i < count; ++i) {
      if (derivative.has_cotangent[i]) tangents[i] = made[next++];
    }
    return put_in_place_of(id, made, tangents);
  }
  if (derivative.is_reverse_only) {
    fail<UnsupportedError>("jvp", "forward mode cannot pass a function of custom_vjp, which has a reverse rule alone",
                           derivative.forward.name, "use sw.custom_jvp, or differentiate in reverse mode");
  }
  // The transpose of its vjp, as in push_forward.h.
  const std::vector<ValueId> forward = append_given(builder_, derivative.forward, operands);
  Builder scratch(module_, module_.add_region(), builder_.loc());
  std::vector<ValueId> residuals(forward.begin() + count, forward.end()), variables, outputs, seeds;
  for (uint32_t i = 0; i < count; ++i) {
    if (!derivative.has_cotangent[i]) continue;
    variables.push_back(module_.add_argument(scratch.region(), module_.value(forward[i]).type));
    residuals.push_back(variables.back());
  }
  const std::vector<ValueId> gradients = append_given(scratch, derivative.backward, residuals);
  size_t next = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!derivative.has_gradient[i]) continue;
    if (of_operands[i]) {
      outputs.push_back(gradients[next]);
      seeds.push_back(of_operands[i]);
    }
    ++next;
  }
  const Gradients made = append_vjp_without_zeros(scratch, outputs, seeds, variables);
  move_needed_ops(builder_, scratch.region(), made.values);
  std::vector<ValueId> tangents(count);
  next = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (derivative.has_cotangent[i]) tangents[i] = made.values[next++];
  }
  put_in_place_of(id, std::span(forward).first(count), tangents);
}

}  // namespace shardwise
