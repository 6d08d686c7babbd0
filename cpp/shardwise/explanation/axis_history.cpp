// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_history.h"

#include <algorithm>

#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/propagation/propagate_factors.h"

namespace shardwise {
namespace {}  // namespace

AxisHistory::AxisHistory(const Module& module, const Provenance& provenance)
    : module_(module), provenance_(provenance), identities_(module.context()) {
  for (size_t s = 0; s < steps().size(); ++s) {
    const PropagationStep& step = steps()[s];
    (step.value ? by_value_[step.value.index] : by_result_[step.tensor]).push_back(s);
  }
  if (!provenance.edges_are_sunk) return;
  for (const auto& [op, edge] : provenance.edges) {
    if (edge.target_inside && edge.outside) arguments_.emplace(edge.owner, &edge);
  }
}

const std::vector<size_t>& AxisHistory::steps_of(const TensorRef& tensor) const {
  static const std::vector<size_t> kNone;
  const auto& map = tensor.value ? by_value_ : by_result_;
  const auto it = map.find(tensor.value ? tensor.value.index : tensor.result);
  return it == map.end() ? kNone : it->second;
}

ShardingId AxisHistory::initial(const TensorRef& tensor) const {
  const auto& list = tensor.value ? provenance_.initial : provenance_.initial_results;
  const size_t index = tensor.value ? tensor.value.index : tensor.result;
  return index < list.size() ? list[index] : ShardingId{};
}

ShardingId AxisHistory::at(const TensorRef& tensor, size_t time) const {
  ShardingId id = initial(tensor);
  for (size_t s : steps_of(tensor)) {
    if (s >= time) break;
    id = steps()[s].after;
  }
  return id;
}

bool AxisHistory::has(ShardingId id, size_t dim, const AxisRef& axis) const {
  if (!id) return false;
  const auto& dims = module_.context().sharding(id).dims;
  return dim < dims.size() &&
         std::ranges::any_of(dims[dim].axes, [&](const AxisRef& own) { return reaches_into(axis, own); });
}

size_t AxisHistory::arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const {
  if (has(initial(tensor), dim, axis)) return now();
  for (size_t s : steps_of(tensor)) {
    if (s < time && has(steps()[s].after, dim, axis)) return s;
  }
  return now();
}

size_t AxisHistory::visit_begin(size_t s) const {
  while (!steps()[s].first) --s;
  return s;
}

const DataFlowEdge* AxisHistory::edge_of(OpId op) const {
  const auto it = std::ranges::lower_bound(provenance_.edges, op, {}, [](const auto& known) { return known.first; });
  return it == provenance_.edges.end() || it->first != op ? nullptr : &it->second;
}

std::vector<TensorRef> AxisHistory::tensors(OpId op, uint32_t result) const {
  if (!op) return {TensorRef{module_.region(module_.main().body).results[result]}, TensorRef{{}, result}};
  std::vector<TensorRef> found;
  if (const DataFlowEdge* edge = edge_of(op)) {
    for (const ValueId source : edge->sources) found.push_back({source});
    found.push_back({provenance_.edges_are_sunk ? edge->owner : module_.result(op)});
    return found;
  }
  for (const ValueId operand : module_.operands(op)) found.push_back({operand});
  for (uint32_t i = 0; i < module_.op(op).result_count; ++i) found.push_back({module_.result(op, i)});
  return found;
}

const ShardingRule& AxisHistory::rule(OpId op, uint32_t result) {
  static const ShardingRule kNone;
  if (!op) return identities_.of(module_.value(module_.region(module_.main().body).results[result]).type, 1);
  if (const DataFlowEdge* edge = edge_of(op)) {
    return identities_.of(module_.value(edge->owner).type, edge->sources.size());
  }
  if (module_.op(op).def->flow != nullptr) return kNone;
  return module_.context().propagation_rule(OpView(module_, op), provenance_.conservative);
}

ShardingId AxisHistory::seen_by(OpId op, const TensorRef& tensor, ShardingId id) const {
  if (!id || !op) return id;
  Context& context = module_.context();
  const DataFlowEdge* edge = edge_of(op);
  if (edge != nullptr && tensor.value == (provenance_.edges_are_sunk ? edge->owner : module_.result(op))) {
    if (edge->manual_axes.empty()) return id;
    if (!edge->target_inside) return context.intern(seen_from_inside(context.sharding(id), edge->manual_axes));
    if (provenance_.edges_are_sunk) return id;
    return context.intern(seen_from_outside(context.sharding(id), context.sharding(edge->outside), edge->manual_axes));
  }
  const auto argument = arguments_.find(tensor.value);
  if (argument == arguments_.end() || module_.op(op).def->flow != nullptr) return id;
  return context.intern(seen_from_inside(context.sharding(id), argument->second->manual_axes));
}

std::vector<ShardingId> AxisHistory::seen_by(OpId op, size_t time, uint32_t result) const {
  std::vector<ShardingId> seen;
  for (const TensorRef& tensor : tensors(op, result)) seen.push_back(seen_by(op, tensor, at(tensor, time)));
  return seen;
}

const FactorProjection& AxisHistory::project(OpId op, size_t time, uint32_t result) {
  tensors_ = tensors(op, result);
  std::vector<const TensorSharding*> shardings;
  for (const ShardingId id : seen_by(op, time, result)) {
    shardings.push_back(id ? &module_.context().sharding(id) : nullptr);
  }
  projection_.project(rule(op, result), shardings);
  return projection_;
}

// The first tensor that had all that the factor has now; what it is short of can only be what another one had.
std::optional<AxisSource> AxisHistory::source_of(const AxisRef& digits, size_t target, FactorId factor,
                                                 const AxisList& grown) {
  std::optional<AxisSource> found;
  for (const bool whole : {true, false}) {
    for (size_t t = 0; t < tensors_.size() && !found; ++t) {
      const FactorSharding* sharding = projection_.find(t, factor);
      if (t == target || sharding == nullptr) continue;
      const bool had =
          whole ? begins(grown, sharding->axes)
                : std::ranges::any_of(sharding->axes, [&](const AxisRef& own) { return reaches_into(digits, own); });
      if (!had) continue;
      found = AxisSource{.axis = digits,
                         .from = tensors_[t],
                         .dim = dim_of(projection_.rule(), t, factor),
                         .tensor = t,
                         .factor = factor,
                         .own = false};
    }
  }
  return found;
}

// An axis of size 1 fits any factor of its dim, and need not be where the projection of the dim as it is now puts it.
std::optional<AxisSource> AxisHistory::source_in_dim(const AxisRef& digits, size_t target,
                                                     std::span<const FactorId> factors) {
  const AxisList alone{digits};
  for (const FactorId factor : factors) {
    if (const auto source = source_of(digits, target, factor, alone)) return source;
  }
  return std::nullopt;
}

std::vector<AxisSource> AxisHistory::sources(size_t s, size_t dim, const AxisRef& axis) {
  const PropagationStep& step = steps()[s];
  const TensorRef tensor = changed_by(step);
  std::vector<AxisSource> found;
  const ShardingId old = at(tensor, visit_begin(s));  // not step.before: a value may be several operands
  const AxisList before = old ? module_.context().sharding(old).dims[dim].axes : AxisList{};
  for (const AxisRef& own : before) {
    if (const std::optional<AxisRef> digits = overlap(own, axis)) {
      found.push_back({.axis = *digits, .from = tensor, .dim = dim, .tensor = 0, .factor = 0, .own = true});
    }
  }
  const uint32_t result = step.op ? 0 : step.tensor;
  const size_t target = step.op ? step.tensor : (step.value ? 0 : 1);
  const ShardingRule& op_rule = rule(step.op, result);
  if (op_rule.empty()) return found;
  project(step.op, visit_begin(s), result);
  std::vector<const TensorSharding*> after(tensors_.size(), nullptr);
  after[target] = &module_.context().sharding(seen_by(step.op, tensors_[target], step.after));
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
        if (const auto source = source_of(*digits, target, factor, grown->axes)) {
          found.push_back(*source);
        } else if (const auto other = source_in_dim(*digits, target, op_rule.dim(target, dim))) {
          found.push_back(*other);
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, [](const AxisSource& source) { return source.axis; });
  return found;
}

}  // namespace shardwise
