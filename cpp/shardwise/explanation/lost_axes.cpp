// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/lost_axes.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/explanation/verdict_text.h"
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

// Whether the verdict is only about the blocking tensor.
bool is_about_one_tensor(Verdict verdict) {
  return verdict == Verdict::kReplicated || verdict == Verdict::kUnreduced || verdict == Verdict::kClosedDim ||
         verdict == Verdict::kUneven;
}

// The annotation that keeps axes from a closed dim.
std::optional<Annotation> closing_annotation(const AxisHistory& history, const AxisTracer& tracer, const TensorRef& of,
                                             size_t dim) {
  const auto closes = [&](ShardingId id) { return id && !history.module().context().sharding(id).dims[dim].open; };
  if (closes(history.initial(of))) return tracer.annotation_of(of);
  // The dim was closed by the first step that left it closed, such as that of a group or of a manual computation.
  for (const size_t s : history.steps_of(of)) {
    const PropagationStep& step = history.steps()[s];
    if (!of.value || !step.op || !closes(step.after)) continue;
    const bool is_edge = history.edge_of(step.op) != nullptr;
    const TensorRef owner = is_edge ? history.tensors({step.op}).back() : TensorRef{};
    return is_edge && closes(history.initial(owner)) ? tracer.annotation_of(owner) : tracer.annotation_by(step);
  }
  return std::nullopt;
}

// An axis that tensor `other` of an op has on a factor, and tensor `tensor` does not.
struct Question {
  size_t tensor = 0, other = 0;
  FactorId factor = 0;
  AxisRef axis = {};
};

// The tensors of one op, and their factors at the end.
class OpTensors {
 public:
  OpTensors(AxisHistory& history, VisitedOp at) : history_(history), at_(at), tensors_(history.tensors(at)) {}

  void project() { projection_ = history_.project(at_, history_.now()); }

  const Mesh* mesh_of(size_t tensor) const {
    const ShardingId id = history_.at(tensors_[tensor], history_.now());
    return id ? history_.module().context().sharding(id).mesh.get() : nullptr;
  }
  size_t dim(size_t tensor, FactorId factor) const { return dim_of(projection_.rule(), tensor, factor); }
  std::string place(size_t tensor, FactorId factor) const {
    return tensor_text(projection_.operand_count(), tensor, dim(tensor, factor));
  }
  bool has(size_t tensor, FactorId factor, const AxisRef& axis) const {
    const FactorSharding& known = *projection_.find(tensor, factor);
    return overlaps(known.axes, axis) || overlaps(known.overflow, axis);
  }

  // The decision of a visit in `round` just before step `time`. With `only_two` as if the op had no further tensors, and
  // the tensor no axes that the other one contradicts.
  AxisObserver observe(const Question& question, size_t time, int round, bool only_two = false) const {
    AxisObserver observer{.tensor = question.tensor, .factor = question.factor, .axis = question.axis};
    history_.replay(at_, time, round, observer, only_two ? std::optional(question.other) : std::nullopt);
    return observer;
  }

  std::string precedence(const Question& question, FactorId factor, const AxisRef& winner) const;

 protected:
  AxisHistory& history_;
  VisitedOp at_;
  std::vector<TensorRef> tensors_;
  FactorProjection projection_;

 private:
  std::string precedence_of_later(const Question& question, size_t won) const;
};

// Explains why `winner` took precedence over the requested axis.
std::string OpTensors::precedence(const Question& question, FactorId factor, const AxisRef& winner) const {
  const std::string annotated = "annotations are never changed";
  const TensorRef &tensor = tensors_[question.tensor], &other = tensors_[question.other];
  const std::optional<size_t> won = history_.arrival(tensor, dim(question.tensor, factor), winner, history_.now());
  if (!won) return annotated;
  const int won_in = history_.round_of(*won).round;
  const std::string first_stays = str("the first axis to arrive stays; it arrived in round ", won_in);
  const size_t before = history_.visit_begin(*won);
  if (!history_.has(history_.at(other, before), dim(question.other, question.factor), question.axis)) {
    const std::string later = precedence_of_later(question, *won);
    return later.empty() ? first_stays : later;
  }
  if (won_in == PropagationRound::kByPriority) return annotated;
  // The other tensor had the axis already. In which round would the op have carried it?
  int round = won_in;
  AxisObserver seen = observe(question, before, round);
  while ((seen.verdict == Verdict::kLaterRound || seen.verdict == Verdict::kDirection) && round < kLastRound) {
    seen = observe(question, before, ++round);
  }
  if (round > won_in) return str("round ", won_in, " goes before round ", round, " of this op");
  if (history_.steps()[*won].op != at_.op) return first_stays;
  if (seen.verdict == Verdict::kDisagreement || seen.verdict == Verdict::kResultCannot) {
    return std::string(verdict_text(seen.verdict).rule);
  }
  if (seen.verdict != Verdict::kOtherFactor) return first_stays;
  const std::string order = order_text(seen.blocking_source, seen.source, projection_.operand_count());
  return order.empty() ? first_stays : order;
}

// The other tensor got the axis in question only after step `won`; "" if neither priority nor round differs.
std::string OpTensors::precedence_of_later(const Question& question, size_t won) const {
  const auto later =
      history_.next_arrival(tensors_[question.other], dim(question.other, question.factor), question.axis, won);
  if (!later) return {};
  const PropagationRound &mine = history_.round_of(won), &theirs = history_.round_of(*later);
  if (mine.priority != theirs.priority) return str("priority ", mine.priority, " goes before ", theirs.priority);
  if (theirs.round == PropagationRound::kByPriority || theirs.round == mine.round) return {};
  return str("round ", mine.round, " goes before round ", theirs.round);
}

class LostAxisFinder : public OpTensors {
 public:
  LostAxisFinder(AxisHistory& history, AxisTracer& tracer, VisitedOp at) : OpTensors(history, at), tracer_(tracer) {}

  // Appends the axes that the op would have carried to the value.
  void find(ValueId value, std::vector<LostAxis>& lost) {
    const auto own = std::ranges::find(tensors_, TensorRef{value});
    if (own == tensors_.end()) return;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      // A sharding that singles out one device has no dims.
      if (mesh_of(t) != nullptr && mesh_of(t)->is_maximal()) return;
    }
    project();
    Question question{.tensor = static_cast<size_t>(own - tensors_.begin())};
    for (size_t f = 0; f < projection_.rule().factors().size(); ++f) {
      question.factor = static_cast<FactorId>(f);
      if (projection_.find(question.tensor, question.factor) == nullptr) continue;
      for (size_t t = 0; t < tensors_.size(); ++t) {
        question.other = t;
        if (t != question.tensor && projection_.find(t, question.factor) != nullptr) compare(question, lost);
      }
    }
  }

 private:
  // The first axis that the other tensor has on the factor and this one does not.
  void compare(Question question, std::vector<LostAxis>& lost) {
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
                   .carrier = carrier()};
    const auto key = [](const LostAxis& of) {
      return std::tie(of.axis_text, of.dim, of.carrier.text, of.carrier.name, of.carrier.location);
    };
    if (std::ranges::find(lost, key(entry), key) != lost.end()) return;
    explain(question, entry);
    lost.push_back(std::move(entry));
  }

  Label carrier() const {
    if (!at_.op) return tracer_.annotation_of(TensorRef{{}, at_.result}).label;
    const OpId group = history_.disagreeing_group(at_.op);
    Label carrier = tracer_.label_of(group ? group : tracer_.shown(at_.op));
    if (group) carrier.text += str(" ", history_.module().attrs(group).get_int("group_id"), " (its members disagree)");
    return carrier;
  }

  // Reports the tensor's own refusal before one caused by other tensors of the op.
  void explain(const Question& question, LostAxis& lost) {
    AxisObserver seen = observe(question, history_.now(), kLastRound, true);
    const bool comes_later = seen.refused != question.axis && has(question.tensor, question.factor, seen.refused);
    if (seen.verdict == Verdict::kTaken || comes_later) {
      seen = observe(question, history_.now(), kLastRound);
      // Propagation never visited the op if a visit would still bring the blocking axis.
      const auto& [tensor, factor, axis] = seen.blocker;
      const bool is_gone = seen.verdict == Verdict::kOtherFactor && !has(tensor, factor, axis);
      if (seen.verdict == Verdict::kTaken || is_gone) seen.verdict = Verdict::kNotVisited;
    }
    if (seen.verdict == Verdict::kDisagreement || seen.verdict == Verdict::kOtherAxes) {
      return explain_disagreement(question, lost);
    }
    if (seen.verdict != Verdict::kResultCannot) return explain_refusal(question, seen, lost);
    Question of_result = question;
    of_result.tensor = seen.blocker.tensor;
    explain(of_result, lost);
    const VerdictText text = verdict_text(seen.verdict);
    lost.rule = text.rule;
    lost.reason = filled(text.reason, "place", place(of_result.tensor, question.factor)) + lost.reason;
  }

  // Tensor `seen.blocker.tensor` refuses the axis, or one before it in the list.
  void explain_refusal(const Question& question, const AxisObserver& seen, LostAxis& lost) {
    const auto& [tensor, factor, axis] = seen.blocker;
    const Mesh& mesh = *mesh_of(question.other);
    const bool by_option = seen.verdict == Verdict::kBlockedFactor && at_.op &&
                           is_blocked_by_option(history_.module(), history_.provenance().options, at_.op, factor);
    lost.verdict = by_option ? Verdict::kBlockedByOption : seen.verdict;
    const VerdictText text = verdict_text(lost.verdict);
    lost.reason = filled(filled(text.reason, "place", place(tensor, factor)), "size",
                         str(projection_.rule().factors()[factor].size));
    lost.rule = text.rule;
    if (seen.verdict == Verdict::kDirection) {
      lost.reason = direction_text(participation(OpView(history_.module(), at_.op), kLastRound).direction);
    } else if (seen.verdict == Verdict::kReplicated && history_.initial(tensors_[tensor])) {
      lost.closed_by = tracer_.annotation_of(tensors_[tensor]);
    } else if (seen.verdict == Verdict::kClosedDim) {
      lost.closed_by = closing_annotation(history_, tracer_, tensors_[tensor], dim(tensor, factor));
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
  void explain_disagreement(const Question& question, LostAxis& lost) {
    const AxisList& theirs = projection_.find(question.other, question.factor)->axes;
    const AxisList& mine = projection_.find(question.tensor, question.factor)->axes;
    if (const AxisSpan others = behind_common(mine, theirs); !others.empty()) {
      const VerdictText text = verdict_text(Verdict::kOtherAxes);
      lost.reason = filled(text.reason, "axes", axis_list_text(*mesh_of(question.tensor), mine));
      for (const AxisRef& axis : others) add_winner(question.tensor, question.factor, axis, lost);
      const size_t own_dim = dim(question.tensor, question.factor);
      const bool moved =
          history_.arrival(tensors_[question.tensor], own_dim, others.front(), history_.now()).has_value();
      lost.rule = moved ? precedence(question, question.factor, others.front()) : std::string(text.rule);
      return;
    }
    const VerdictText text = verdict_text(Verdict::kDisagreement);
    lost.reason = text.reason;
    lost.rule = text.rule;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const FactorSharding* factor = projection_.find(t, question.factor);
      if (t == question.tensor || t == question.other || factor == nullptr) continue;
      const AxisSpan axes = behind_common(factor->axes, theirs);
      if (!axes.empty()) add_winner(t, question.factor, axes.front(), lost);
    }
  }

  void add_winner(size_t tensor, FactorId factor, const AxisRef& axis, LostAxis& lost) {
    const auto& origins = tracer_.origins(tensors_[tensor], dim(tensor, factor), axis, history_.now());
    lost.winner.insert(lost.winner.end(), origins.begin(), origins.end());
  }

  AxisTracer& tracer_;
};

}  // namespace

std::vector<LostAxis> lost_axes(AxisHistory& history, AxisTracer& tracer, ValueId value) {
  std::vector<LostAxis> lost;
  for (const VisitedOp at : history.visits_of(value)) {
    if (!history.rule(at).empty()) LostAxisFinder(history, tracer, at).find(value, lost);
  }
  return lost;
}

}  // namespace shardwise
