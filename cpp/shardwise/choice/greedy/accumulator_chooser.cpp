// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/accumulator_chooser.h"

#include <algorithm>

#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

AxisList intersection(const AxisList& a, const AxisList& b) { return difference(a, difference(a, b)); }

// The operands that must come unreduced if those in `dependent` do; none if the op does not pass them on.
std::vector<bool> pending_operands(const OpLinearity& passing, const std::vector<bool>& dependent) {
  std::vector<bool> pending = dependent;
  for (size_t i = 0; passing.kind == Linear::kJoint && i < pending.size(); ++i) {
    // Each device would add a whole operand once.
    pending[i] = pending[i] || (passing.may_be_pending(i) && !passing.is_free(i));
  }
  return passing.passes(pending) ? pending : std::vector<bool>{};
}

// The axes of each factor, if those dims of one operand are to stay sharded. None if the op cannot keep them so.
bool add_factor_axes(const OpView& op, const ShardingRule& rule, size_t operand, const Placement& placement,
                     std::vector<AxisList>& factors) {
  for (size_t d = 0; d < placement.dims.size(); ++d) {
    const AxisList& axes = placement.dims[d].axes;
    if (axes.empty()) continue;
    const auto ids = rule.dim(operand, d);
    // Only a pass-through factor has the same axes in the result, so that the next op finds the carry where it was.
    if (ids.size() != 1 || rule.factors()[ids[0]].kind != FactorKind::kPassThrough) return false;
    AxisList& known = factors[ids[0]];
    if (!known.empty() && known != axes) return false;
    known = axes;
  }
  // The ops of an accumulator are computed by their rules, which keep no factor of a method sharded.
  for (const Method& method : op.def().methods) {
    for (const FactorId id : method.factors(op, rule)) {
      if (!factors[id].empty()) return false;
    }
  }
  return true;
}

// An annotation must ask for the carry as it is.
std::optional<OpChoice> annotated(ProgramPlacements& placements, const OpView& op, PlacementId carry) {
  if (placements.annotated(op.result(), carry) != carry) return std::nullopt;
  return OpChoice{.operands = {carry}, .results = {carry}};
}

// Where an op takes an addend, if the operands that depend on the carry are where propagation has them; where propagation has
// the addend, if the op cannot keep them there.
PlacementId place_of_addend(ProgramPlacements& placements, const OpView& op, ValueId addend, const MeshPtr& mesh,
                            const std::unordered_map<ValueId, PlacementId>& dependents) {
  const ShardingRule& rule = sharding_rule(op);
  const PlacementId declared_place = placements.declared(addend);
  if (rule.empty()) return declared_place;
  ComputeSharding compute{
      .mesh = mesh, .factors = std::vector<AxisList>(rule.factors().size()), .passed = {}, .reduced = {}};
  size_t place = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand(i) == addend) place = i;
    if (!dependents.contains(op.operand(i))) continue;
    const Placement& declared = *placements.find(placements.declared(op.operand(i)));
    if (!declared.is_fully_replicated() && declared.mesh != mesh) return declared_place;
    if (!add_factor_axes(op, rule, i, declared, compute.factors)) return declared_place;
  }
  return candidate_of(placements, op, rule, compute, {}).choice.operands[place];
}

// Rounds alone are not worth more memory: a stack of the gradients of all layers would be whole on every device. Nor are they
// worth a wait, where what a trip sends would be hidden behind its kernels.
bool is_worth(const Cost& unreduced, const Cost& in_each_trip, bool grows, bool is_hidden) {
  const bool sends_less = unreduced.bytes < in_each_trip.bytes;
  if ((grows || is_hidden) && !sends_less) return false;
  return grows ? unreduced < in_each_trip : unreduced <= in_each_trip;
}

double local_size(const Placement& placement) {
  double size = 1;
  for (const DimPlacement& dim : placement.dims) size *= static_cast<double>(dim.block);
  return size;
}

}  // namespace

// Unreduced operands of ops that combine them with a value that depends on the carry.
void AccumulatorChooser::read_addends(const Accumulator& accumulator, const Placed& dependents) {
  addends_.clear();
  for (const OpId id : accumulator.ops) {
    const OpView op(module_, id);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (dependents.contains(op.operand(i))) continue;
      const Placement* home = placements_.find(versions_.home(op.operand(i), {}));
      if (home == nullptr || home->unreduced.empty()) continue;
      const OpLinearity passing = linearity_.of(id, home->reducer);
      // The other operand of a multiply (kEach) scales the carry. It is not an addend, and must be reduced.
      if (passing.kind == Linear::kJoint && passing.may_be_pending(i)) addends_.push_back({id, op.operand(i), home});
    }
  }
  axes_ = addends_.empty() ? AxisList{} : addends_[0].home->unreduced;
  reducer_ = addends_.empty() ? Reducer::kNone : addends_[0].home->reducer;
  for (const Addend& addend : addends_) {
    // One reduction after the loop completes all addends, so it has only the axes over which each of them is unreduced.
    const bool fits = addend.home->reducer == reducer_ && addend.home->mesh == addends_[0].home->mesh;
    axes_ = fits ? intersection(axes_, addend.home->unreduced) : AxisList{};
  }
}

// The carry sharded as propagation has it, or as an addend is.
std::vector<PlacementId> AccumulatorChooser::carry_placements(ValueId carry) const {
  std::vector<PlacementId> found;
  const TypeId type = module_.value(carry).type;
  const auto add = [&](std::vector<AxisList> dims) {
    // An axis of a pending reduction cannot shard a dim as well.
    for (AxisList& axes : dims) axes = truncate_at_overlap(axes, axes_);
    const PlacementId placement = placements_.of(type, std::move(dims), axes_, reducer_, addends_[0].home->mesh);
    if (std::ranges::find(found, placement) == found.end()) found.push_back(placement);
  };
  const Placement& declared = *placements_.find(placements_.declared(carry));
  if (declared.is_fully_replicated() || declared.mesh == addends_[0].home->mesh) add(declared.dim_axes());
  for (const Addend& addend : addends_) {
    const OpView op(module_, addend.op);
    const ShardingRule& rule = sharding_rule(op);
    if (module_.value(op.result()).type != type) continue;
    const auto operand = static_cast<size_t>(std::ranges::find(op.operands(), addend.value) - op.operands().begin());
    ComputeSharding compute{.factors = std::vector<AxisList>(rule.factors().size()), .passed = {}, .reduced = {}};
    if (!add_factor_axes(op, rule, operand, *addend.home, compute.factors)) continue;
    add(compute.dims(rule, rule.result_tensor(0)));
  }
  return found;
}

std::optional<OpChoice> AccumulatorChooser::place_op(const OpView& op, const Placed& placed) const {
  if (op.def().traits.annotates()) return annotated(placements_, op, placed.at(op.operand(0)));
  const ShardingRule& rule = sharding_rule(op);
  if (rule.empty()) return std::nullopt;
  std::vector<bool> dependent;
  for (const ValueId operand : op.operands()) dependent.push_back(placed.contains(operand));
  ComputeSharding compute{.mesh = addends_[0].home->mesh,
                          .factors = std::vector<AxisList>(rule.factors().size()),
                          .passed = axes_,
                          .reducer = reducer_,
                          .reduced = {}};
  const std::vector<bool> parts = pending_operands(linearity_.of(op.id(), reducer_), dependent);
  Pending pending{.axes = axes_, .reducer = reducer_, .operands = parts, .owned = {}, .mesh = compute.mesh};
  if (pending.operands.empty()) return std::nullopt;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const ValueId operand = op.operand(i);
    // Each device would add a replicated operand once.
    const bool is_addend = std::ranges::find(addends_, operand, &Addend::value) != addends_.end();
    if (pending.operands[i] && !dependent[i] && !is_addend) return std::nullopt;
    const PlacementId home = dependent[i] ? placed.at(operand) : versions_.home(operand, {});
    pending.owned.push_back(pending.operands[i] && placements_.find(home)->is_owned);
    if (!dependent[i]) continue;
    if (!add_factor_axes(op, rule, i, *placements_.find(placed.at(operand)), compute.factors)) return std::nullopt;
  }
  return candidate_of(placements_, op, rule, compute, pending).choice;
}

bool AccumulatorChooser::place_ops(const Accumulator& accumulator, Placed& placed,
                                   std::vector<OpChoice>& choices) const {
  for (const OpId id : accumulator.ops) {
    const OpView op(module_, id);
    const auto choice = place_op(op, placed);
    if (!choice) return false;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const auto found = placed.find(op.operand(i));
      // The carry, or a value that depends on it, would be resharded in each iteration.
      if (found != placed.end() && choice->operands[i] != found->second) return false;
    }
    placed[op.result()] = choice->results[0];
    choices.push_back(*choice);
  }
  return true;
}

// Moves the other operands to where the accumulator is.
Cost AccumulatorChooser::cost_in_trip(const Accumulator& accumulator, const Placed& placed,
                                      const std::vector<OpChoice>& choices) {
  Cost cost;
  for (size_t k = 0; k < choices.size(); ++k) {
    const OpView op(module_, accumulator.ops[k]);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (!placed.contains(op.operand(i))) cost += versions_.cost(op.operand(i), choices[k].operands[i]);
    }
  }
  return cost;
}

Cost AccumulatorChooser::cost_if_reduced(const Placed& dependents) {
  Cost cost;
  for (const Addend& addend : addends_) {
    const OpView op(module_, addend.op);
    const double count = sharers(module_, linearity_, addend.value, op, reducer_);
    // No sharers: another user needs the addend reduced anyway, so its reduction costs the loop nothing more.
    if (count == 0) continue;
    const PlacementId declared = placements_.declared(addend.value);
    const PlacementId taken = place_of_addend(placements_, op, addend.value, addend.home->mesh, dependents);
    cost += std::min(versions_.cost(addend.value, declared), versions_.cost(addend.value, taken)) / count;
  }
  return cost;
}

std::vector<AccumulatorChooser::PlacedCarry> AccumulatorChooser::candidates(const Region& body,
                                                                            const Accumulator& accumulator) const {
  std::vector<PlacedCarry> found;
  const ValueId argument = body.arguments[accumulator.carry];
  for (const PlacementId carry : carry_placements(argument)) {
    PlacedCarry candidate{{carry, {}, addends_[0].value}, {{argument, carry}}};
    if (!place_ops(accumulator, candidate.placed, candidate.choice.ops)) continue;
    // The body must return the carry as it takes it, for the next trip.
    if (candidate.placed[body.results[accumulator.carry]] == carry) found.push_back(std::move(candidate));
  }
  return found;
}

const AccumulatorChooser::PlacedCarry* AccumulatorChooser::cheapest(std::span<const PlacedCarry> candidates,
                                                                    const Accumulator& accumulator,
                                                                    const AccumulatorSite& site,
                                                                    const Placed& dependents) {
  const PlacementId declared = placements_.declared(site.result);
  // A loop around this one may defer the reduction of the result further.
  const double after = module_.uses(site.result).empty() ? 0 : deferred_.share(site.result);
  // Versions::cost spreads a reshard before the loop over its trips, so that the product counts it once.
  Cost best = site.trips * (cost_if_reduced(dependents) + versions_.cost(site.entry, declared));
  const bool is_hidden =
      addends_.size() == 1 && is_hidden_by_product(module_, versions_, placements_, costs_, choice_, addends_[0].value);
  const PlacedCarry* found = nullptr;
  for (const PlacedCarry& candidate : candidates) {
    const PlacementId carry = candidate.choice.carry;
    const Cost entry = versions_.cost(site.entry, versions_.entry(site.entry, carry));
    const Cost in_trip = entry + cost_in_trip(accumulator, candidate.placed, candidate.choice.ops);
    const Cost cost = site.trips * in_trip + after * costs_.reshard(module_.value(site.result).type, carry, declared);
    const bool grows = local_size(*placements_.find(carry)) > local_size(*placements_.find(declared));
    if (found == nullptr ? !is_worth(cost, best, grows, is_hidden) : cost >= best) continue;
    best = cost;
    found = &candidate;
  }
  return found;
}

std::optional<AccumulatorChoice> AccumulatorChooser::choose(const OpView& loop, const Accumulator& accumulator,
                                                            const AccumulatorSite& site) {
  const Region& body = module_.region(loop_parts(loop).body);
  Placed dependents{{body.arguments[accumulator.carry], {}}};
  for (const OpId op : accumulator.ops) dependents[module_.result(op)] = {};
  read_addends(accumulator, dependents);
  if (axes_.empty()) return std::nullopt;
  const std::vector<PlacedCarry> possible = candidates(body, accumulator);
  const auto text_of = [&](const PlacedCarry& found) -> const auto& { return placements_.text(found.choice.carry); };
  const auto best_text = [&] {
    const PlacedCarry* best = cheapest(possible, accumulator, site, dependents);
    return best == nullptr ? std::string() : text_of(*best);
  };
  const ChosenText& decided = choice_.carry(loop.result(accumulator.carry), best_text);
  if (decided.chosen.empty()) return std::nullopt;
  const auto found = std::ranges::find(possible, decided.chosen, text_of);
  if (found == possible.end()) {
    const std::string best = best_text(), pinned = str("carry ", accumulator.carry, " as ", decided.chosen);
    fail_as_impossible(module_, loop.id(),
                       {"carries", decided.at, pinned, best.empty() ? std::string("to reduce it in each trip") : best});
  }
  return found->choice;
}

}  // namespace shardwise
