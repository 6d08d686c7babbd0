// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_history.h"

#include <algorithm>

#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/propagation/propagate_factors.h"

namespace shardwise {

AxisHistory::AxisHistory(const Module& module, const Provenance& provenance) : VisitReplay(module, provenance) {
  // A walk would miss them: groups are dropped from the program after propagation.
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    if (!is_group(OpId{i})) continue;
    const ValueId member = module.operands(OpId{i})[0];
    members_[module.attrs(OpId{i}).get_int("group_id")].push_back(member);
    groups_.try_emplace(member, OpId{i});
  }
  // An op may have a value as several operands.
  const auto add = [&](ValueId value, OpId op) {
    std::vector<VisitedOp>& visits = visits_of_[value];
    if (visits.empty() || visits.back().op != op) visits.push_back({op});
  };
  walk(module, [&](OpId op) {
    has_barrier_ = has_barrier_ || module.op(op).def->traits.barrier;
    for (const ValueId operand : module.operands(op)) add(operand, op);
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) add(module.result(op, i), op);
  });
  for (const auto& [op, edge] : provenance.edges) {
    for (const TensorRef& tensor : tensors({op})) add(tensor.value, op);
  }
  const std::vector<ValueId>& results = module.region(module.main().body).results;
  for (uint32_t i = 0; i < results.size(); ++i) visits_of_[results[i]].push_back({{}, i});
}

const std::vector<VisitedOp>& AxisHistory::visits_of(ValueId value) const {
  static const std::vector<VisitedOp> kNone;
  const auto found = visits_of_.find(value);
  return found == visits_of_.end() ? kNone : found->second;
}

// Compares Shardy's intervals of digits, as propagation does (propagate_factors.h).
bool AxisHistory::has(ShardingId id, size_t dim, const AxisRef& axis) const {
  if (!id) return false;
  const auto& dims = module().context().sharding(id).dims;
  return dim < dims.size() &&
         std::ranges::any_of(dims[dim].axes, [&](const AxisRef& own) { return reaches_into(axis, own); });
}

std::optional<size_t> AxisHistory::arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis,
                                           size_t time) const {
  // Also where a user's priority defers the annotation: the axis still comes from it, not from an op.
  if (has(initial(tensor), dim, axis)) return std::nullopt;
  const std::optional<size_t> first = next_arrival(tensor, dim, axis, 0);
  return first && *first < time ? first : std::nullopt;
}

std::optional<size_t> AxisHistory::next_arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis,
                                                size_t time) const {
  for (const size_t s : steps_of(tensor)) {
    if (s >= time && has(steps()[s].after, dim, axis)) return s;
  }
  return std::nullopt;
}

// All steps of a visit were decided on the shardings before its first step.
size_t AxisHistory::visit_begin(size_t s) const {
  while (!steps()[s].first) --s;
  return s;
}

OpId AxisHistory::disagreeing_group(OpId op) const {
  if (!op || !module().op(op).def->traits.constraint) return {};
  const ValueId result = module().result(op);
  const auto group = groups_.find(result);
  return result.index < provenance().initial.size() || group == groups_.end() ? OpId{} : group->second;
}

// Members without a sharding begin with that of the members that have one.
std::vector<AxisSource> AxisHistory::source_in_group(size_t s, size_t dim, const AxisRef& axis) const {
  for (const ValueId member : members_.at(module().attrs(steps()[s].op).get_int("group_id"))) {
    if (member == steps()[s].value || !has(at({member}, s), dim, axis)) continue;
    return {{.axis = axis, .from = {member}, .dim = dim, .tensor = 1}};
  }
  return {};
}

// The first tensor that had all that the factor has now; what it is short of can only be what another one had.
std::optional<AxisSource> AxisHistory::source_of(const AxisRef& digits, size_t target, FactorId factor,
                                                 AxisSpan grown) const {
  const auto reaches = [&](const AxisRef& own) { return reaches_into(digits, own); };
  for (const bool whole : {true, false}) {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const FactorSharding* sharding = factors_->find(t, factor);
      if (t == target || sharding == nullptr) continue;
      if (whole ? !begins(grown, sharding->axes) : std::ranges::none_of(sharding->axes, reaches)) continue;
      const size_t dim = dim_of(factors_->rule(), t, factor);
      return AxisSource{.axis = digits, .from = tensors_[t], .dim = dim, .tensor = t, .factor = factor};
    }
  }
  return std::nullopt;
}

std::vector<AxisSource> AxisHistory::sources(size_t s, size_t dim, const AxisRef& axis) {
  const PropagationStep& step = steps()[s];
  if (is_group(step.op)) return source_in_group(s, dim, axis);
  const VisitedOp op = visited_by(step);
  const TensorRef tensor = changed_by(step);
  std::vector<AxisSource> found;
  const ShardingId old = at(tensor, visit_begin(s));  // not at s: a value may be several operands
  const AxisList before = old ? module().context().sharding(old).dims[dim].axes : AxisList{};
  for (const AxisRef& own : before) {
    if (const auto digits = overlap(own, axis)) {
      found.push_back({.axis = *digits, .from = tensor, .dim = dim, .own = true});
    }
  }
  const ShardingRule& op_rule = rule(op);
  if (op_rule.empty()) return found;
  const size_t target = position_of(step);
  factors_ = &project(op, visit_begin(s));
  tensors_ = tensors(op);
  // The other tensors are left out: the same visit changed them, so they are no source.
  std::vector<const TensorSharding*> after(tensors_.size(), nullptr);
  after[target] = &module().context().sharding(seen_by(op, tensors_[target], step.after));
  grown_.project(op_rule, after);
  AxisList missing = difference(AxisSpan(&axis, 1), before);
  // Digits that no split of the axis has together with those before: "x":(1)5 in place of "x":(1)2.
  if (missing.empty() && found.empty()) missing.push_back(axis);
  for (const AxisRef& left : missing) {
    for (const FactorId factor : op_rule.dim(target, dim)) {
      const FactorSharding* grown = grown_.find(target, factor);
      if (grown == nullptr) continue;
      for (const AxisRef& own : grown->axes) {
        const std::optional<AxisRef> digits = reaches_into(left, own) ? left : overlap(own, left);
        if (!digits) continue;
        auto source = source_of(*digits, target, factor, grown->axes);
        // An axis of size 1 fits any factor of its dim, not only that to which the dim as it is now projects it.
        for (const FactorId other : op_rule.dim(target, dim)) {
          if (!source) source = source_of(*digits, target, other, AxisSpan(&*digits, 1));
        }
        if (source) found.push_back(*source);
      }
    }
  }
  std::ranges::stable_sort(found, {}, [](const AxisSource& source) { return source.axis; });
  return found;
}

}  // namespace shardwise
