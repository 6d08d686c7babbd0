// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/visit_replay.h"

#include <algorithm>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

// Constraints, groups and edges are applied before the first visit. Their steps are no visits.
bool applies_annotations(const Module& module, const PropagationStep& step) {
  if (!step.op) return false;
  const OpDef& def = *module.op(step.op).def;
  return def.traits.constraint || def.traits.sharding_group || def.traits.data_flow_edge || def.flow != nullptr;
}

}  // namespace

VisitReplay::VisitReplay(const Module& module, const Provenance& provenance)
    : module_(module),
      provenance_(provenance),
      rules_(module, provenance.options),
      ops_(module.context(), provenance.options) {
  for (size_t s = 0; s < steps().size(); ++s) steps_of_[changed_by(steps()[s])].push_back(s);
  if (!provenance.edges_are_sunk) return;
  for (const auto& [op, edge] : provenance.edges) {
    if (edge.target_inside && edge.outside) inner_arguments_.emplace(edge.owner, &edge);
  }
}

const PropagationRound& VisitReplay::round_of(size_t s) const {
  static const PropagationRound kBeforePropagation;
  const auto next = std::ranges::upper_bound(provenance_.rounds, s, {}, &PropagationRound::first_step);
  return next == provenance_.rounds.begin() ? kBeforePropagation : *std::prev(next);
}

std::span<const size_t> VisitReplay::steps_of(const TensorRef& tensor) const {
  const auto it = steps_of_.find(tensor);
  return it == steps_of_.end() ? std::span<const size_t>() : it->second;
}

ShardingId VisitReplay::at(const TensorRef& tensor, size_t time) const {
  const std::span<const size_t> changes = steps_of(tensor);
  // The last change before step `time` gives the sharding.
  const auto end = std::ranges::lower_bound(changes, time);
  if (end != changes.begin()) return steps()[*std::prev(end)].after;
  const auto& list = tensor.value ? provenance_.initial : provenance_.initial_results;
  const size_t index = tensor.value ? tensor.value.index : tensor.result;
  return index < list.size() ? list[index] : ShardingId{};
}

std::vector<TensorRef> VisitReplay::tensors(VisitedOp visited) const {
  if (!visited.op)
    return {TensorRef{module_.region(module_.main().body).results[visited.result]}, TensorRef{{}, visited.result}};
  std::vector<TensorRef> found;
  if (const DataFlowEdge* edge = edge_of(visited.op)) {
    for (const ValueId source : edge->sources) found.push_back({source});
    found.push_back({provenance_.edges_are_sunk ? edge->owner : module_.result(visited.op)});
    return found;
  }
  for (const ValueId operand : module_.operands(visited.op)) found.push_back({operand});
  for (uint32_t i = 0; i < module_.op(visited.op).result_count; ++i) found.push_back({module_.result(visited.op, i)});
  return found;
}

const ShardingRule& VisitReplay::rule(VisitedOp visited) {
  static const ShardingRule kNone;
  if (!visited.op) {
    return rules_.identity(module_.value(module_.region(module_.main().body).results[visited.result]).type, 1);
  }
  if (const DataFlowEdge* edge = edge_of(visited.op)) {
    return rules_.identity(module_.value(edge->owner).type, edge->sources.size());
  }
  // Its data-flow edges are visited in its place.
  if (module_.op(visited.op).def->flow != nullptr) return kNone;
  return rules_[visited.op];
}

ShardingId VisitReplay::seen_by(VisitedOp visited, const TensorRef& tensor, ShardingId sharding) const {
  if (!sharding || !visited.op) return sharding;
  Context& context = module_.context();
  if (const DataFlowEdge* edge = edge_of(visited.op); edge != nullptr && tensor == tensors(visited).back()) {
    // Once edges are sunk, the record has an inner argument as its sources see it.
    const bool is_seen = provenance_.edges_are_sunk && edge->target_inside;
    return is_seen ? sharding : seen_from_sources(context, *edge, sharding);
  }
  const auto argument = inner_arguments_.find(tensor.value);
  if (argument == inner_arguments_.end() || module_.op(visited.op).def->flow != nullptr) return sharding;
  return seen_from_target(context, *argument->second, sharding);
}

std::vector<ShardingId> VisitReplay::seen_by(VisitedOp visited, size_t time) const {
  std::vector<ShardingId> seen;
  for (const TensorRef& tensor : tensors(visited)) seen.push_back(seen_by(visited, tensor, at(tensor, time)));
  return seen;
}

const FactorProjection& VisitReplay::project(VisitedOp visited, size_t time) {
  std::vector<const TensorSharding*> shardings;
  for (const ShardingId id : seen_by(visited, time))
    shardings.push_back(id ? &module_.context().sharding(id) : nullptr);
  projection_.project(rule(visited), shardings);
  return projection_;
}

Visit VisitReplay::visit(VisitedOp visited, int round) {
  const ShardingRule& op_rule = rule(visited);
  if (!visited.op) return {.rule = op_rule, .elementwise = true, .is_return = true};
  const RoundOrder order(OpView(module_, visited.op));
  return {.rule = op_rule,
          .part = order.participation(round),
          .elementwise = edge_of(visited.op) == nullptr && order.is_elementwise()};
}

std::span<const uint32_t> VisitReplay::replay(VisitedOp visited, size_t time, int round, AxisObserver& observer,
                                              std::optional<size_t> only) {
  const Visit again = visit(visited, round);
  const std::span<const uint32_t> after = ops_.replay(again, seen_by(visited, time), observer, only);
  // The op takes no part in this round; a later one decides.
  if (again.part.direction == Direction::kNone && round < kLastRound) observer.verdict = Verdict::kLaterRound;
  return after;
}

void VisitReplay::verify() {
  bool has_begun = false;
  for (size_t begin = 0, end = 0; begin < steps().size(); begin = end) {
    end = begin + 1;
    // The steps of one visit saw the same shardings, so they are replayed together.
    while (end < steps().size() && !steps()[end].first) ++end;
    has_begun = has_begun || !applies_annotations(module_, steps()[begin]);
    if (has_begun && round_of(begin).round != PropagationRound::kByPriority) verify_visit(begin, end);
  }
}

// Replays the visit that recorded the steps from `begin` to `end`.
void VisitReplay::verify_visit(size_t begin, size_t end) {
  const VisitedOp visited = visited_by(steps()[begin]);
  if (rule(visited).factors().empty()) return;
  const std::vector<TensorRef> all = tensors(visited);
  AxisObserver observer;
  const std::span<const uint32_t> after = replay(visited, begin, round_of(begin).round, observer);
  for (size_t s = begin; s < end; ++s) {
    const size_t t = position_of(steps()[s]);
    // The other values after a data-flow edge follow the one that was visited.
    if (changed_by(steps()[s]) != all[t] || seen_by(visited, all[t], steps()[s].after).index == after[t]) continue;
    const std::string name(visited.op ? module_.op(visited.op).def->name : "return");
    fail<InternalError>("why", "a replayed visit must end as it was recorded", name, "report this as a bug");
  }
}

}  // namespace shardwise
