// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/visit_replay.h"

#include "shardwise/base/error.h"

namespace shardwise {

VisitReplay::VisitReplay(const Module& module, AxisHistory& history)
    : module_(module),
      history_(history),
      ops_(module.context(), history.provenance().basic ? Strategy::kBasic : Strategy::kAggressive,
           history.provenance().conservative) {}

AxisObserver VisitReplay::observe(const AxisQuestion& question, size_t time, int round, bool only_two) {
  AxisObserver observer{.tensor = question.tensor, .factor = question.factor, .axis = question.axis};
  const OpPropagation::Visit again = visit(question.op, question.result, round);
  ops_.replay(again, history_.seen_by(question.op, time, question.result), observer,
              only_two ? std::optional(question.other) : std::nullopt);
  if (again.part.direction == Direction::kNone && round < kLastRound) observer.verdict = Verdict::kLaterRound;
  return observer;
}

void VisitReplay::verify() {
  const auto& steps = history_.steps();
  // The first steps write down constraints, groups and edges: they are no visits.
  const auto starts = [&](const PropagationStep& step) {
    if (!step.op) return false;
    const Traits& traits = module_.op(step.op).def->traits;
    return traits.constraint || traits.sharding_group || traits.data_flow_edge ||
           module_.op(step.op).def->flow != nullptr;
  };
  size_t s = 0;
  while (s < steps.size() && starts(steps[s])) ++s;
  for (; s < steps.size(); ++s) {
    if (steps[s].first && steps[s].round != PropagationStep::kByPriority) verify_visit(s);
  }
}

// Of the visit whose first step is `begin`.
void VisitReplay::verify_visit(size_t begin) {
  const auto& steps = history_.steps();
  const OpId op = steps[begin].op;
  const uint32_t result = op ? 0 : steps[begin].tensor;
  if (history_.rule(op, result).factors().empty()) return;
  const std::vector<TensorRef> tensors = history_.tensors(op, result);
  AxisObserver observer;
  const auto after = ops_.replay(visit(op, result, steps[begin].round), history_.seen_by(op, begin, result), observer);
  for (size_t s = begin; s < steps.size() && (s == begin || !steps[s].first); ++s) {
    const size_t t = op ? steps[s].tensor : (steps[s].value ? 0 : 1);
    if (changed_by(steps[s]) != tensors[t]) continue;  // the other values of a data-flow edge follow
    if (history_.seen_by(op, tensors[t], steps[s].after).index == after[t]) continue;
    const std::string name(op ? module_.op(op).def->name : "return");
    fail<InternalError>("why", "a replayed visit must end as it was recorded", name, "report this as a bug");
  }
}

// As propagation visits it.
OpPropagation::Visit VisitReplay::visit(OpId op, uint32_t result, int round) {
  const ShardingRule& rule = history_.rule(op, result);
  if (!op) return {.rule = rule, .part = {}, .elementwise = true};
  const OpView view(module_, op);
  const Participation part = participation(view, round);
  const bool elementwise = history_.edge_of(op) == nullptr && (view.def().traits.constraint || is_elementwise(view));
  return {.rule = rule, .part = part, .elementwise = elementwise, .conservative = history_.provenance().conservative};
}

}  // namespace shardwise
