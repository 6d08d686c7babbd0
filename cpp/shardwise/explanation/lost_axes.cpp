// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/lost_axes.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/explanation/verdict_text.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/propagation/rules_by_op.h"

namespace shardwise {
namespace {

// The axes of `mine` after the common beginning of both lists.
AxisSpan behind_common(AxisSpan mine, AxisSpan theirs) {
  size_t common = 0;
  while (common < mine.size() && is_prefix_of(mine.first(common + 1), theirs)) ++common;
  return mine.subspan(common);
}

// Whether the verdict is about the blocking tensor alone.
bool is_about_one_tensor(Verdict verdict) {
  return verdict == Verdict::kReplicated || verdict == Verdict::kUnreduced || verdict == Verdict::kClosedDim ||
         verdict == Verdict::kUneven;
}

}  // namespace

LostAxisFinder::LostAxisFinder(const Module& module, AxisHistory& history, AxisTracer& tracer)
    : module_(module), history_(history), tracer_(tracer) {
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
  for (const auto& [op, edge] : history.provenance().edges) {
    for (const TensorRef& tensor : history.tensors({op})) add(tensor.value, op);
  }
  const std::vector<ValueId>& results = module.region(module.main().body).results;
  for (uint32_t i = 0; i < results.size(); ++i) visits_of_[results[i]].push_back({{}, i});
}

const std::vector<VisitedOp>& LostAxisFinder::visits_of(ValueId value) const {
  static const std::vector<VisitedOp> kNone;
  const auto found = visits_of_.find(value);
  return found == visits_of_.end() ? kNone : found->second;
}

std::vector<LostAxis> LostAxisFinder::find(ValueId value) {
  std::vector<LostAxis> lost;
  for (const VisitedOp at : visits_of(value)) find_at(at, value, lost);
  return lost;
}

// Appends the axes that `at` would have carried.
void LostAxisFinder::find_at(VisitedOp at, ValueId value, std::vector<LostAxis>& lost) {
  tensors_ = history_.tensors(at);
  const auto own = std::ranges::find(tensors_, TensorRef{value});
  if (own == tensors_.end() || history_.rule(at).empty()) return;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    // A sharding that singles out one device has no dims.
    if (mesh_of(t) != nullptr && mesh_of(t)->is_maximal()) return;
  }
  projection_ = history_.project(at, history_.now());
  Question question{.at = at, .tensor = static_cast<size_t>(own - tensors_.begin())};
  for (size_t f = 0; f < projection_.rule().factors().size(); ++f) {
    question.factor = static_cast<FactorId>(f);
    if (projection_.find(question.tensor, question.factor) == nullptr) continue;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      question.other = t;
      if (t != question.tensor && projection_.find(t, question.factor) != nullptr) compare(question, lost);
    }
  }
}

const Mesh* LostAxisFinder::mesh_of(size_t tensor) const {
  const ShardingId id = history_.at(tensors_[tensor], history_.now());
  return id ? module_.context().sharding(id).mesh.get() : nullptr;
}

std::string LostAxisFinder::place(size_t tensor, FactorId factor) const {
  return tensor_text(projection_.operand_count(), tensor, dim(tensor, factor));
}

// The first axis that the other tensor has on the factor and this one does not.
void LostAxisFinder::compare(Question question, std::vector<LostAxis>& lost) {
  const FactorSharding& theirs = *projection_.find(question.other, question.factor);
  const AxisList& mine = projection_.find(question.tensor, question.factor)->axes;
  const Mesh *own_mesh = mesh_of(question.tensor), *mesh = mesh_of(question.other);
  if (mesh == nullptr) return;
  const bool same_mesh = own_mesh == nullptr || own_mesh->same_devices(*mesh);
  // An axis that its own factor cannot take does not propagate, but users see it on the dim and ask for it.
  AxisList offered = theirs.axes;
  offered.insert(offered.end(), theirs.overflow.begin(), theirs.overflow.end());
  const auto missing = std::ranges::find_if(offered, [&](const AxisRef& axis) {
    return !same_mesh || std::ranges::none_of(mine, [&](const AxisRef& own) { return contains(own, axis); });
  });
  if (missing == offered.end()) return;
  question.axis = *missing;
  LostAxis entry{.axis_text = axis_text(*mesh, question.axis),
                 .dim = static_cast<int64_t>(dim(question.tensor, question.factor)),
                 .carrier = carrier_of(question.at)};
  const auto key = [](const LostAxis& of) {
    return std::tie(of.axis_text, of.dim, of.carrier.text, of.carrier.name, of.carrier.location);
  };
  if (std::ranges::find(lost, key(entry), key) != lost.end()) return;
  explain(question, entry);
  lost.push_back(std::move(entry));
}

Label LostAxisFinder::carrier_of(VisitedOp at) const {
  if (!at.op) return tracer_.annotation_of(TensorRef{{}, at.result}).label;
  const OpId group = history_.disagreeing_group(at.op);
  Label carrier = tracer_.label_of(group ? group : tracer_.shown(at.op));
  if (group) carrier.text += str(" ", module_.attrs(group).get_int("group_id"), " (its members disagree)");
  return carrier;
}

// The decision of a visit in `round` just before step `time`. With `only_two` as if the op had no further tensors, and
// the tensor no axes that the other one contradicts.
AxisObserver LostAxisFinder::observe(const Question& question, size_t time, int round, bool only_two) {
  AxisObserver observer{.tensor = question.tensor, .factor = question.factor, .axis = question.axis};
  history_.replay(question.at, time, round, observer, only_two ? std::optional(question.other) : std::nullopt);
  return observer;
}

// Reports the tensor's own refusal before one caused by other tensors of the op.
void LostAxisFinder::explain(const Question& question, LostAxis& lost) {
  const auto has = [&](size_t tensor, FactorId factor, const AxisRef& axis) {
    const FactorSharding& known = *projection_.find(tensor, factor);
    return overlaps(known.axes, axis) || overlaps(known.overflow, axis);
  };
  AxisObserver seen = observe(question, history_.now(), kLastRound, true);
  const bool comes_later = seen.refused != question.axis && has(question.tensor, question.factor, seen.refused);
  if (seen.verdict == Verdict::kTaken || comes_later) {
    seen = observe(question, history_.now(), kLastRound);
    // Propagation never visited the op if a visit would still bring the blocking axis.
    const auto& [tensor, factor, axis] = seen.blocker;
    if (seen.verdict == Verdict::kOtherFactor && !has(tensor, factor, axis)) seen.verdict = Verdict::kTaken;
  }
  if (seen.verdict == Verdict::kDisagreement || seen.verdict == Verdict::kOtherAxes) {
    return explain_disagreement(question, lost);
  }
  if (seen.verdict != Verdict::kResultCannot) return explain_refusal(question, seen, lost);
  Question of_result = question;
  of_result.tensor = seen.blocker.tensor;
  explain(of_result, lost);
  const VerdictText& text = verdict_text(seen.verdict);
  lost.rule = text.rule;
  lost.reason = filled(text.reason, "place", place(of_result.tensor, question.factor)) + lost.reason;
}

// Tensor `seen.blocker.tensor` refuses the axis, or one before it in the list.
void LostAxisFinder::explain_refusal(const Question& question, const AxisObserver& seen, LostAxis& lost) {
  const auto& [tensor, factor, axis] = seen.blocker;
  const Mesh& mesh = *mesh_of(question.other);
  const VerdictText& text = verdict_text(seen.verdict);
  lost.reason = filled(filled(text.reason, "place", place(tensor, factor)), "size",
                       str(projection_.rule().factors()[factor].size));
  lost.rule = text.rule;
  if (seen.verdict == Verdict::kBlockedFactor && history_.provenance().options.conservative && question.at.op) {
    RulesByOp rules(module_, false);
    const bool is_blocked = rules[question.at.op].factors()[factor].blocked;
    if (!is_blocked) lost.rule = "conservative propagation causes no communication";
  } else if (seen.verdict == Verdict::kDirection) {
    lost.reason = direction_text(participation(OpView(module_, question.at.op), kLastRound).direction);
  } else if (seen.verdict == Verdict::kReplicated && history_.initial(tensors_[tensor])) {
    lost.closed_by = tracer_.annotation_of(tensors_[tensor]);
  } else if (seen.verdict == Verdict::kClosedDim) {
    lost.closed_by = closing_annotation(tensor, dim(tensor, factor));
  } else if (seen.verdict == Verdict::kOtherFactor) {
    add_winner(tensor, factor, axis, lost);
    if (tensor == question.tensor) lost.rule = precedence(question, factor, axis);
  } else if (seen.verdict == Verdict::kDifferentMeshes) {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const FactorSharding* sharding = projection_.find(t, question.factor);
      if (mesh_of(t) == nullptr || sharding == nullptr || mesh_of(t)->same_devices(mesh)) continue;
      for (const AxisRef& winner : sharding->axes) add_winner(t, question.factor, winner, lost);
    }
  }
  if (is_about_one_tensor(seen.verdict) && tensor != question.tensor) {
    lost.reason = place(tensor, factor) + " cannot take it: " + lost.reason;
    lost.rule = "basic propagation gives an axis to all tensors that have the dim, or to none";
  }
  if (seen.refused != question.axis) {
    lost.reason = str(axis_text(mesh, seen.refused), " goes before it, and ", lost.reason);
  }
}

// The tensors of the op agree on a list without the axis: this one has others, or some of the rest do.
void LostAxisFinder::explain_disagreement(const Question& question, LostAxis& lost) {
  const AxisList& theirs = projection_.find(question.other, question.factor)->axes;
  const AxisList& mine = projection_.find(question.tensor, question.factor)->axes;
  if (const AxisSpan others = behind_common(mine, theirs); !others.empty()) {
    const VerdictText& text = verdict_text(Verdict::kOtherAxes);
    lost.reason = filled(text.reason, "axes", axis_list_text(*mesh_of(question.tensor), mine));
    for (const AxisRef& axis : others) add_winner(question.tensor, question.factor, axis, lost);
    const size_t own_dim = dim(question.tensor, question.factor);
    const bool moved = history_.arrival(tensors_[question.tensor], own_dim, others.front(), history_.now()).has_value();
    lost.rule = moved ? precedence(question, question.factor, others.front()) : std::string(text.rule);
    return;
  }
  const VerdictText& text = verdict_text(Verdict::kDisagreement);
  lost.reason = text.reason;
  lost.rule = text.rule;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const FactorSharding* factor = projection_.find(t, question.factor);
    if (t == question.tensor || t == question.other || factor == nullptr) continue;
    const AxisSpan axes = behind_common(factor->axes, theirs);
    if (!axes.empty()) add_winner(t, question.factor, axes.front(), lost);
  }
}

void LostAxisFinder::add_winner(size_t tensor, FactorId factor, const AxisRef& axis, LostAxis& lost) {
  const auto& origins = tracer_.origins(tensors_[tensor], dim(tensor, factor), axis, history_.now());
  lost.winner.insert(lost.winner.end(), origins.begin(), origins.end());
}

// Explains why `winner` took precedence over the requested axis.
std::string LostAxisFinder::precedence(const Question& question, FactorId factor, const AxisRef& winner) {
  const std::string annotated = "annotations are never changed";
  const TensorRef &tensor = tensors_[question.tensor], &other = tensors_[question.other];
  const std::optional<size_t> won = history_.arrival(tensor, dim(question.tensor, factor), winner, history_.now());
  if (!won) return annotated;
  const PropagationStep& step = history_.steps()[*won];
  const std::string first_stays = str("the first axis to arrive stays; it arrived in round ", int{step.round});
  const size_t before = history_.visit_begin(*won);
  if (!history_.has(history_.at(other, before), dim(question.other, question.factor), question.axis)) {
    const std::string later = precedence_of_later(question, *won);
    return later.empty() ? first_stays : later;
  }
  if (step.round == PropagationStep::kByPriority) return annotated;
  // The other tensor had the axis already. In which round would the op have carried it?
  int round = step.round;
  AxisObserver seen = observe(question, before, round);
  while ((seen.verdict == Verdict::kLaterRound || seen.verdict == Verdict::kDirection) && round < kLastRound) {
    seen = observe(question, before, ++round);
  }
  if (round > step.round) return str("round ", int{step.round}, " goes before round ", round, " of this op");
  if (step.op != question.at.op) return first_stays;
  if (seen.verdict == Verdict::kDisagreement || seen.verdict == Verdict::kResultCannot) {
    return std::string(verdict_text(seen.verdict).rule);
  }
  if (seen.verdict != Verdict::kOtherFactor) return first_stays;
  const std::string order = order_text(seen.blocking_source, seen.source, projection_.operand_count());
  return order.empty() ? first_stays : order;
}

// The other tensor got the axis in question only after step `won`; "" if neither priority nor round differs.
std::string LostAxisFinder::precedence_of_later(const Question& question, size_t won) {
  const auto later =
      history_.next_arrival(tensors_[question.other], dim(question.other, question.factor), question.axis, won);
  if (!later) return {};
  const PropagationStep &mine = history_.steps()[won], &theirs = history_.steps()[*later];
  if (mine.turn != theirs.turn) {
    return str("priority ", history_.priority(won), " goes before ", history_.priority(*later));
  }
  if (theirs.round == PropagationStep::kByPriority || theirs.round == mine.round) return {};
  return str("round ", int{mine.round}, " goes before round ", int{theirs.round});
}

std::optional<Annotation> LostAxisFinder::closing_annotation(size_t tensor, size_t dim) {
  const auto closes = [&](ShardingId id) { return id && !module_.context().sharding(id).dims[dim].open; };
  const TensorRef& of = tensors_[tensor];
  if (closes(history_.initial(of))) return tracer_.annotation_of(of);
  // The dim was closed by the first step that left it closed, such as that of a group or of a manual computation.
  for (const size_t s : history_.steps_of(of)) {
    const PropagationStep& step = history_.steps()[s];
    if (!of.value || !step.op || !closes(step.after)) continue;
    const bool is_edge = history_.edge_of(step.op) != nullptr;
    const TensorRef owner = is_edge ? history_.tensors({step.op}).back() : TensorRef{};
    return is_edge && closes(history_.initial(owner)) ? tracer_.annotation_of(owner) : tracer_.annotation_by(step);
  }
  return std::nullopt;
}

}  // namespace shardwise
