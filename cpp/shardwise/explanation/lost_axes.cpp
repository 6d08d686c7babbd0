// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/lost_axes.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/explanation/verdict_text.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

// How many of `mine` the other list begins with.
size_t count_common(AxisSpan mine, AxisSpan theirs) {
  size_t count = 0;
  while (count < mine.size() && is_prefix_of(mine.first(count + 1), theirs)) ++count;
  return count;
}

}  // namespace

LostAxisFinder::LostAxisFinder(ExplanationContext& context, ValueId value, const Mesh& mesh)
    : context_(context),
      module_(context.module()),
      history_(context.history()),
      tracer_(context.tracer(mesh)),
      value_(value),
      mesh_(mesh) {}

void LostAxisFinder::find_at(OpId op, uint32_t result, std::vector<LostAxis>& lost) {
  tensors_ = history_.tensors(op, result);
  const auto own = std::ranges::find(tensors_, TensorRef{value_});
  // A sharding that singles out one device has no dims.
  const bool on_one_device = std::ranges::any_of(tensors_, [&](const TensorRef& tensor) {
    const Mesh* mesh = mesh_of(tensor);
    return mesh != nullptr && mesh->is_maximal();
  });
  if (own == tensors_.end() || on_one_device || history_.rule(op, result).empty()) return;
  projection_ = history_.project(op, history_.now(), result);
  AxisQuestion question{.op = op, .result = result, .tensor = static_cast<size_t>(own - tensors_.begin())};
  for (size_t f = 0; f < projection_.rule().factors().size(); ++f) {
    question.factor = static_cast<FactorId>(f);
    if (projection_.find(question.tensor, question.factor) == nullptr) continue;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      question.other = t;
      if (t != question.tensor && projection_.find(t, question.factor) != nullptr) compare(question, lost);
    }
  }
}

const Mesh* LostAxisFinder::mesh_of(const TensorRef& tensor) const {
  const ShardingId id = history_.at(tensor, history_.now());
  return id ? module_.context().sharding(id).mesh.get() : nullptr;
}

// The first axis that the other tensor has on the factor and this one does not.
void LostAxisFinder::compare(AxisQuestion question, std::vector<LostAxis>& lost) {
  const FactorSharding& theirs = *projection_.find(question.other, question.factor);
  const Mesh *own_mesh = mesh_of(tensors_[question.tensor]), *mesh = mesh_of(tensors_[question.other]);
  if (mesh == nullptr) return;
  const bool same_mesh = own_mesh == nullptr || own_mesh->same_devices(*mesh);
  if (mesh->same_devices(mesh_)) mesh = &mesh_;
  AxisList offered = theirs.axes;
  offered.insert(offered.end(), theirs.overflow.begin(), theirs.overflow.end());
  const auto missing = std::ranges::find_if(offered, [&](const AxisRef& axis) {
    const AxisList& mine = projection_.find(question.tensor, question.factor)->axes;
    return !same_mesh || std::ranges::none_of(mine, [&](const AxisRef& own) { return contains(own, axis); });
  });
  if (missing == offered.end()) return;
  question.axis = *missing;
  LostAxis entry = lost_axis(question, *mesh);
  const bool is_known = std::ranges::any_of(lost, [&](const LostAxis& one) {
    return one.axis_text == entry.axis_text && one.dim == entry.dim && one.op == entry.op && one.value == entry.value &&
           one.location == entry.location;
  });
  if (is_known) return;
  explain(question, *mesh, entry);
  lost.push_back(std::move(entry));
}

LostAxis LostAxisFinder::lost_axis(const AxisQuestion& question, const Mesh& mesh) {
  const OpId group = tracer_.disagreeing_group(question.op), op = group ? group : tracer_.shown(question.op);
  LostAxis entry{
      .axis_text = axis_text(mesh, question.axis),
      .dim = static_cast<int64_t>(dim_of(projection_.rule(), question.tensor, question.factor)),
      .op = op ? shown_op(module_, history_.provenance(), op)
               : str("result ", question.result, " of ", module_.main().name),
      .value = op ? shown_name(module_, op) : std::string(),
      .location = op ? module_.context().location_text(module_.op(op).loc)
                     : tracer_.annotation_of(TensorRef{{}, question.result}).location,
  };
  if (group) entry.op += str(" ", module_.attrs(group).get_int("group_id"), " (its members disagree)");
  return entry;
}

// What the tensor itself refuses goes before what its op refuses on account of further tensors.
void LostAxisFinder::explain(const AxisQuestion& question, const Mesh& mesh, LostAxis& lost) {
  const auto has = [&](size_t tensor, FactorId factor, const AxisRef& axis) {
    const FactorSharding& known = *projection_.find(tensor, factor);
    return overlaps(known.axes, axis) || overlaps(known.overflow, axis);
  };
  AxisObserver seen = context_.replay().observe(question, history_.now(), kLastRound, true);
  const bool before_it = seen.refused != question.axis && has(question.tensor, question.factor, seen.refused);
  if (seen.verdict == Verdict::kTaken || before_it) {
    seen = context_.replay().observe(question, history_.now(), kLastRound);
    // The op was passed by where the visit would still bring the other axis.
    const auto& [tensor, factor, axis] = seen.blocker;
    if (seen.verdict == Verdict::kOtherFactor && !has(tensor, factor, axis)) seen.verdict = Verdict::kTaken;
  }
  switch (seen.verdict) {
    case Verdict::kDisagreement:
    case Verdict::kOtherAxes: return explain_disagreement(question, lost);
    case Verdict::kDifferentMeshes:
      explain_refusal(question, seen, lost);
      for (size_t t = 0; t < tensors_.size(); ++t) {
        const Mesh* another = mesh_of(tensors_[t]);
        const FactorSharding* factor = projection_.find(t, question.factor);
        if (another == nullptr || factor == nullptr || another->same_devices(mesh)) continue;
        for (const AxisRef& axis : factor->axes) add_winner(t, question.factor, axis, lost);
      }
      return;
    case Verdict::kResultCannot: {
      AxisQuestion of_result = question;
      of_result.tensor = seen.blocker.tensor;
      explain(of_result, mesh, lost);
      lost.rule = verdict_text(seen.verdict).rule;
      const size_t dim = dim_of(projection_.rule(), of_result.tensor, question.factor);
      const std::string place = tensor_text(projection_.operand_count(), of_result.tensor, dim);
      lost.reason = filled(verdict_text(seen.verdict).reason, "place", place) + lost.reason;
      return;
    }
    default: return explain_refusal(question, seen, lost);
  }
}

// Tensor `seen.blocker.tensor` refuses the axis, or one before it in the list.
void LostAxisFinder::explain_refusal(const AxisQuestion& question, const AxisObserver& seen, LostAxis& lost) {
  const ShardingRule& rule = projection_.rule();
  const auto& [tensor, factor, axis] = seen.blocker;
  const size_t dim = dim_of(rule, tensor, factor);
  const std::string place = tensor_text(rule.operand_count(), tensor, dim);
  lost.reason =
      filled(filled(verdict_text(seen.verdict).reason, "place", place), "size", str(rule.factors()[factor].size));
  lost.rule = verdict_text(seen.verdict).rule;
  const bool conservative = history_.provenance().conservative && question.op;
  if (seen.verdict == Verdict::kBlockedFactor && conservative &&
      !module_.context().propagation_rule(OpView(module_, question.op)).factors()[question.factor].blocked) {
    lost.rule = "conservative propagation asks for no exchange between devices";
  } else if (seen.verdict == Verdict::kDirection) {
    lost.reason = direction_text(participation(OpView(module_, question.op), kLastRound).direction);
  } else if (seen.verdict == Verdict::kReplicated) {
    if (history_.initial(tensors_[tensor])) lost.closed_by = tracer_.annotation_of(tensors_[tensor]);
  } else if (seen.verdict == Verdict::kClosedDim) {
    lost.closed_by = closing_annotation(tensor, dim);
  } else if (seen.verdict == Verdict::kOtherFactor) {
    add_winner(tensor, factor, axis, lost);
    if (tensor == question.tensor) lost.rule = precedence(question, dim, axis);
  }
  const bool has_own_reason = seen.verdict == Verdict::kReplicated || seen.verdict == Verdict::kUnreduced ||
                              seen.verdict == Verdict::kClosedDim || seen.verdict == Verdict::kUneven;
  if (has_own_reason && tensor != question.tensor) {
    lost.reason = place + " cannot take it: " + lost.reason;
    lost.rule = "basic propagation hands an axis to all tensors that have the dim, or to none";
  }
  if (seen.refused != question.axis) {
    lost.reason = str(axis_text(mesh_, seen.refused), " goes before it, and ", lost.reason);
  }
}

// The tensors of the op agree on a list without the axis: this one has others, or some of the rest do.
void LostAxisFinder::explain_disagreement(const AxisQuestion& question, LostAxis& lost) {
  const ShardingRule& rule = projection_.rule();
  const AxisList& theirs = projection_.find(question.other, question.factor)->axes;
  const AxisList& mine = projection_.find(question.tensor, question.factor)->axes;
  Verdict verdict = Verdict::kDisagreement;
  const auto first_other = [&](AxisSpan axes) { return axes.subspan(count_common(axes, theirs)); };
  lost.rule = verdict_text(verdict).rule;
  if (const AxisSpan others = first_other(mine); !others.empty()) {
    verdict = Verdict::kOtherAxes;
    const size_t dim = dim_of(rule, question.tensor, question.factor);
    for (const AxisRef& axis : others) add_winner(question.tensor, question.factor, axis, lost);
    const TensorRef& tensor = tensors_[question.tensor];
    const bool annotated = history_.arrival(tensor, dim, others.front(), history_.now()) == history_.now();
    if (!annotated) lost.rule = precedence(question, dim, others.front());
  } else {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const FactorSharding* factor = projection_.find(t, question.factor);
      if (t == question.tensor || t == question.other || factor == nullptr) continue;
      const AxisSpan axes = first_other(factor->axes);
      if (!axes.empty()) add_winner(t, question.factor, axes.front(), lost);
    }
  }
  lost.reason = filled(verdict_text(verdict).reason, "axes", axis_list_text(mesh_, mine));
}

void LostAxisFinder::add_winner(size_t tensor, FactorId factor, const AxisRef& axis, LostAxis& lost) {
  const Mesh* mesh = mesh_of(tensors_[tensor]);
  AxisTracer& tracer = mesh == nullptr || mesh->same_devices(mesh_) ? tracer_ : context_.tracer(*mesh);
  const size_t dim = dim_of(projection_.rule(), tensor, factor);
  const std::vector<AxisOrigin>& origins = tracer.origins(tensors_[tensor], dim, axis, history_.now());
  lost.winner.insert(lost.winner.end(), origins.begin(), origins.end());
}

// Why `winner` came to `dim` of the tensor before the axis in question came to its dim, which may be the same one.
std::string LostAxisFinder::precedence(const AxisQuestion& question, size_t dim, const AxisRef& winner) {
  const size_t won = history_.arrival(tensors_[question.tensor], dim, winner, history_.now());
  if (won == history_.now()) return "annotations are never changed";
  const PropagationStep& step = history_.steps()[won];
  const size_t before = history_.visit_begin(won);
  const size_t other_dim = dim_of(projection_.rule(), question.other, question.factor);
  if (!history_.has(history_.at(tensors_[question.other], before), other_dim, question.axis)) {
    if (std::string text = precedence_of_later(question, won); !text.empty()) return text;
  } else if (step.round == PropagationStep::kByPriority) {
    return "annotations are never changed";
  } else {
    int round = step.round;
    AxisObserver seen = context_.replay().observe(question, before, round);
    while ((seen.verdict == Verdict::kLaterRound || seen.verdict == Verdict::kDirection) && round < kLastRound) {
      seen = context_.replay().observe(question, before, ++round);
    }
    if (round > step.round) return str("round ", int{step.round}, " goes before round ", round, " of this op");
    if (step.op == question.op && seen.verdict == Verdict::kOtherFactor) {
      std::string order = order_text(seen.blocking_source, seen.source, projection_.operand_count());
      if (!order.empty()) return order;
    } else if (step.op == question.op &&
               (seen.verdict == Verdict::kDisagreement || seen.verdict == Verdict::kResultCannot)) {
      return std::string(verdict_text(seen.verdict).rule);
    }
  }
  return str("the first to come stays: it came in round ", int{step.round});
}

// The other tensor got the axis in question only after step `won`; "" where neither priority nor round tells.
std::string LostAxisFinder::precedence_of_later(const AxisQuestion& question, size_t won) {
  const TensorRef& other = tensors_[question.other];
  const size_t dim = dim_of(projection_.rule(), question.other, question.factor);
  const auto& steps = history_.steps();
  const auto found = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(won), steps.end(), [&](const auto& step) {
    return changed_by(step) == other && history_.has(step.after, dim, question.axis);
  });
  if (found == steps.end()) return {};
  const auto later = static_cast<size_t>(found - steps.begin());
  const PropagationStep &mine = steps[won], &theirs = *found;
  if (mine.turn != theirs.turn) {
    return str("priority ", history_.priority(won), " goes before ", history_.priority(later));
  }
  if (theirs.round == PropagationStep::kByPriority || theirs.round == mine.round) return {};
  return str("round ", int{mine.round}, " goes before round ", int{theirs.round});
}

std::optional<Annotation> LostAxisFinder::closing_annotation(size_t tensor, size_t dim) {
  const TensorRef& of = tensors_[tensor];
  const auto closes = [&](ShardingId id) { return id && !module_.context().sharding(id).dims[dim].open; };
  if (closes(history_.initial(of))) return tracer_.annotation_of(of);
  for (const PropagationStep& step : history_.steps()) {
    if (changed_by(step) != of || !of.value || !closes(step.after) || !step.op) continue;
    if (const DataFlowEdge* edge = history_.edge_of(step.op)) {
      const TensorRef owner{history_.provenance().edges_are_sunk ? edge->owner : module_.result(step.op)};
      if (closes(history_.initial(owner))) return tracer_.annotation_of(owner);
    }
    return tracer_.annotation_by(step);
  }
  return std::nullopt;
}

}  // namespace shardwise
