// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_judge.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/propagation_rounds.h"

namespace shardwise {
namespace {

constexpr std::string_view kInCommon = "tensors that disagree about a dim keep what they have in common";

// Whether a tensor that uses `used` cannot have `axis`, or all of it: they overlap, or no split of the axis has both.
bool collides(const AxisRef& axis, const AxisRef& used) { return prefix_without_overlap(axis, used) != axis; }

bool collides(const AxisRef& axis, const AxisList& used) {
  return std::ranges::any_of(used, [&](const AxisRef& ref) { return collides(axis, ref); });
}

// How many of `mine` the other list begins with.
size_t agreeing(AxisSpan mine, AxisSpan theirs) {
  size_t count = 0;
  while (count < mine.size() && is_prefix_of(mine.first(count + 1), theirs)) ++count;
  return count;
}

}  // namespace

std::string_view kept_back(Direction allowed) {
  return allowed == Direction::kNone ? "it lets nothing through" : "it lets nothing through in this direction";
}

void AxisJudge::judge(const Case& at, const FactorProjection& projection, LostAxis& lost) {
  const std::vector<Holder> tensors = history_.tensors(at.op, at.result);
  const TensorFactors& tensor = projection.tensor(at.own);
  const FactorSharding& mine = tensor.factors[at.factor];
  const ShardingRule& rule = projection.rule();
  const Holder& holder = tensors[at.own];
  const size_t dim = dim_of(rule, at.own, at.factor);
  if (op_keeps_it(at, rule, lost)) return;
  if (overlaps(projection.find(at.other, at.factor)->overflow, at.axis)) {
    return say(lost, str("it does not divide the part of size ", rule.factors()[at.factor].size, " of the dim"),
               "a dim that an op takes apart is split where its parts divide");
  }
  if (is_kept_out(at, at.own, projection, tensors, lost)) return;
  if (taken(at, at.own, projection, tensors, lost)) return;
  if (const size_t differs = agreeing(mine.axes, projection.find(at.other, at.factor)->axes);
      differs < mine.axes.size() && !mine.closed) {
    for (size_t a = differs; a < mine.axes.size(); ++a) {
      append(lost.winner, tracer_.origins(holder, dim, mine.axes[a], history_.now()));
    }
    const bool is_said = history_.arrival(holder, dim, mine.axes[differs], history_.now()) == history_.now();
    return say(lost, str("the dim is sharded along ", axis_list_text(mesh_, mine.axes), " already"),
               is_said ? std::string(kInCommon) : precedence(at, tensors, dim, mine.axes[differs]));
  }
  if (has_no_room(at, at.own, projection, tensors, lost)) return;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (taken(at, t, projection, tensors, lost)) return;
  }
  Case before = at;  // an axis of the list before this one, at which basic propagation cuts the list
  for (const AxisRef& axis : projection.find(at.other, at.factor)->axes) {
    if (axis == at.axis) break;
    before.axis = axis;
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (!history_.provenance().basic || !taken(before, t, projection, tensors, lost)) continue;
      lost.reason = str(axis_text(mesh_, axis), " goes before it, and ", lost.reason);
      return;
    }
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    const FactorSharding* against = projection.find(t, at.factor);
    if (t == at.own || t == at.other || against == nullptr) continue;
    const AxisList& others = against->axes;
    const size_t differs = agreeing(others, projection.find(at.other, at.factor)->axes);
    if (differs == others.size()) continue;
    append(lost.winner, tracer_.origins(tensors[t], dim_of(rule, t, at.factor), others[differs], history_.now()));
  }
  for (size_t t = 0; t < tensors.size() && lost.winner.empty(); ++t) {
    if (refused(at, t, projection, tensors, lost)) return;
  }
  if (lost.winner.empty()) return say(lost, "propagation passes the op by", "what nothing uses is not propagated");
  say(lost, "the tensors of the op disagree", std::string(kInCommon));
}

void AxisJudge::say(LostAxis& lost, std::string reason, std::string rule) {
  lost.reason = std::move(reason);
  lost.rule = std::move(rule);
}

void AxisJudge::append(std::vector<AxisOrigin>& list, const std::vector<AxisOrigin>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

bool AxisJudge::op_keeps_it(const Case& at, const ShardingRule& rule, LostAxis& lost) const {
  const bool conservative = history_.provenance().conservative && at.op;
  if (rule.factors()[at.factor].blocked) {
    const OpView op(module_, at.op);
    const bool only_now = conservative && !module_.context().propagation_rule(op).factors()[at.factor].blocked;
    say(lost, "the op does not propagate along this dim",
        only_now ? "conservative propagation asks for no exchange between devices" : "the op's sharding rule");
    return true;
  }
  if (conservative && !is_full(mesh_, at.axis)) {
    say(lost, "it is a part of an axis", "conservative propagation hands on whole axes only");
    return true;
  }
  if (!at.op) return false;
  const OpView op(module_, at.op);
  const Direction direction = participation(op, kLastRound).direction;
  const bool is_operand = at.own < rule.operand_count();
  if (direction == Direction::kBoth || direction == (is_operand ? Direction::kBackward : Direction::kForward)) {
    return false;
  }
  say(lost, std::string(kept_back(direction)), std::string(kBarrierRule));
  return true;
}

bool AxisJudge::is_kept_out(const Case& at, size_t t, const FactorProjection& projection,
                            const std::vector<Holder>& tensors, LostAxis& lost) const {
  const TensorFactors& tensor = projection.tensor(t);
  if (collides(at.axis, tensor.replicated)) {
    lost.closed_by = first_said(tensors[t]);
    say(lost, "its annotation lists the axis as replicated", "replicated axes shard no dim of the value");
    return true;
  }
  if (!collides(at.axis, tensor.unreduced)) return false;
  say(lost, "the value is unreduced along the axis", "unreduced axes shard no dim of the value");
  return true;
}

bool AxisJudge::has_no_room(const Case& at, size_t t, const FactorProjection& projection,
                            const std::vector<Holder>& tensors, LostAxis& lost) const {
  const ShardingRule& rule = projection.rule();
  const TensorFactors& tensor = projection.tensor(t);
  const size_t dim = dim_of(rule, t, at.factor);
  const std::span<const FactorId> parts = rule.dim(t, dim);
  if (tensor.factors[parts.front()].closed) {
    lost.closed_by = first_closed(tensors[t], dim);
    say(lost, "an annotation closes the dim", "closed dims take no further axes");
    return true;
  }
  for (const FactorId part : parts) {
    if (part == at.factor) break;
    const int64_t size = rule.factors()[part].size;
    if (product(tensor.factors[part].axes) == size) continue;
    say(lost, str("the part of size ", size, " before it in the dim is not split in full"),
        "a part of a dim is split where those before it are split in full");
    return true;
  }
  const FactorSharding& factor = tensor.factors[at.factor];
  if (factor.overflow.empty() && factor.minor_most) return false;
  say(lost, str("a part of size ", rule.factors()[at.factor].size, " of the dim cannot be split along it evenly"),
      "a dim that an op takes apart is split where its parts divide");
  return true;
}

bool AxisJudge::refused(const Case& at, size_t t, const FactorProjection& projection,
                        const std::vector<Holder>& tensors, LostAxis& lost) const {
  const FactorSharding* factor = projection.find(t, at.factor);
  if (t == at.own || t == at.other || factor == nullptr) return false;
  const ShardingRule& rule = projection.rule();
  const bool basic = history_.provenance().basic;
  if (!basic) {
    const bool to_operand = at.own < rule.operand_count() && t >= rule.operand_count();
    if (!at.op || !to_operand || !is_elementwise_here(at.op)) return false;
  }
  if (std::ranges::any_of(factor->axes, [&](const AxisRef& own) { return contains(own, at.axis); })) return false;
  if (!is_kept_out(at, t, projection, tensors, lost) && !has_no_room(at, t, projection, tensors, lost)) return false;
  const std::string where = tensor_text(rule.operand_count(), t, dim_of(rule, t, at.factor));
  say(lost, str(where, " cannot take it: ", lost.reason),
      basic ? "basic propagation hands an axis to all tensors that have the dim, or to none"
            : "an operand takes no axis that the result of its elementwise op cannot take");
  return true;
}

bool AxisJudge::is_elementwise_here(OpId op) const {
  const Traits& traits = module_.op(op).def->traits;
  return traits.elementwise || traits.constraint;
}

bool AxisJudge::taken(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
                      LostAxis& lost) {
  const ShardingRule& rule = projection.rule();
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const FactorSharding* other = projection.find(t, static_cast<FactorId>(f));
    if (f == at.factor || other == nullptr) continue;
    AxisList held = other->axes;
    held.insert(held.end(), other->overflow.begin(), other->overflow.end());
    const auto winner = std::ranges::find_if(held, [&](const AxisRef& ref) { return collides(at.axis, ref); });
    if (winner == held.end()) continue;
    const size_t dim = dim_of(rule, t, static_cast<FactorId>(f));
    append(lost.winner, tracer_.origins(tensors[t], dim, *winner, history_.now()));
    say(lost, "the axis shards " + tensor_text(rule.operand_count(), t, dim),
        t == at.own ? precedence(at, tensors, dim, *winner)
                    : std::string(history_.provenance().basic ? "basic propagation decides no conflict"
                                                              : "an axis shards one dim of a tensor"));
    return true;
  }
  return false;
}

std::string AxisJudge::precedence(const Case& at, const std::vector<Holder>& tensors, size_t dim,
                                  const AxisRef& winner) {
  const size_t won = history_.arrival(tensors[at.own], dim, winner, history_.now());
  if (won == history_.now()) return "annotations are never changed";
  const PropagationStep& step = history_.steps()[won];
  const ShardingRule rule = history_.project(at.op, history_.now(), at.result).rule();
  const size_t other_dim = dim_of(rule, at.other, at.factor);
  const size_t seen = history_.visit_begin(won);
  if (history_.has(history_.at(tensors[at.other], seen), other_dim, at.axis)) {
    if (step.op == at.op) {
      if (std::optional<std::string> order = order_of_factors(at, won, dim, winner)) return *order;
    }
    const int round = first_round(at.op, rule.factors()[at.factor]);
    if (round > step.round) return str("round ", int{step.round}, " goes before round ", round, " of this op");
  } else if (const PropagationStep* late = first_offer(tensors[at.other], other_dim, at.axis, seen)) {
    const int64_t mine = history_.priority(won),
                  other = history_.priority(static_cast<size_t>(late - history_.steps().data()));
    if (mine != other) return str("priority ", mine, " goes before ", other);
    if (late->round != PropagationStep::kByPriority && late->round != step.round) {
      return str("round ", int{step.round}, " goes before round ", int{late->round});
    }
  }
  return str("the first to come stays: it came in round ", int{step.round});
}

std::optional<std::string> AxisJudge::order_of_factors(const Case& at, size_t won, size_t dim, const AxisRef& winner) {
  const std::vector<AxisSource> sources = history_.sources(won, dim, winner);
  const auto source = std::ranges::find(sources, false, &AxisSource::own);
  if (source == sources.end() || source->factor == at.factor) return std::nullopt;
  const FactorProjection& seen = history_.project(at.op, history_.visit_begin(won), at.result);
  const Offer first = largest_offer(seen, source->factor, winner), second = largest_offer(seen, at.factor, at.axis);
  if (first.size > second.size) {
    return "of two factors that want an axis, the one whose axes come from the larger tensor goes first";
  }
  if (first.size < second.size) return std::nullopt;
  const std::string equal = "of two factors that want an axis, and whose axes come from tensors of the same size, ";
  if (is_elementwise_here(at.op) && first.shards != second.shards) {
    return equal + "the one with more shards goes first";
  }
  if (first.tensor >= second.tensor) return std::nullopt;
  const size_t operands = seen.rule().operand_count();
  return equal + str("that of ", side_text(operands, first.tensor), " goes before that of ",
                     side_text(operands, second.tensor));
}

AxisJudge::Offer AxisJudge::largest_offer(const FactorProjection& projection, FactorId factor, const AxisRef& axis) {
  Offer found;
  const auto factors = projection.rule().factors();
  for (size_t t = 0; t < projection.tensor_count(); ++t) {
    const FactorSharding* sharding = projection.find(t, factor);
    if (sharding == nullptr || !overlaps(sharding->axes, axis)) continue;
    Offer offer{.size = 1, .shards = 1, .tensor = t};
    for (size_t f = 0; f < factors.size(); ++f) {
      if (projection.find(t, static_cast<FactorId>(f)) != nullptr) offer.size *= factors[f].size;
    }
    for (const AxisRef& own : sharding->axes) offer.shards *= own.size;
    if (offer.size > found.size) found = offer;
  }
  return found;
}

const PropagationStep* AxisJudge::first_offer(const Holder& holder, size_t dim, const AxisRef& axis,
                                              size_t from) const {
  for (size_t s = from; s < history_.now(); ++s) {
    const PropagationStep& step = history_.steps()[s];
    const bool is_its = holder.value ? step.value == holder.value : !step.value && step.tensor == holder.result;
    if (is_its && history_.has(step.after, dim, axis)) return &step;
  }
  return nullptr;
}

int AxisJudge::first_round(OpId op, const Factor& factor) const {
  if (!op || history_.edge_of(op) != nullptr) return 0;
  for (int round = 0; round < kLastRound; ++round) {
    const Participation part = participation(OpView(module_, op), round);
    const bool speaks = part.direction != Direction::kNone;
    if (speaks && (!part.pass_through_only || factor.kind == FactorKind::kPassThrough)) return round;
  }
  return kLastRound;
}

std::optional<Annotation> AxisJudge::first_said(const Holder& holder) const {
  if (history_.initial(holder)) return tracer_.annotation_of(holder);
  return std::nullopt;
}

std::optional<Annotation> AxisJudge::first_closed(const Holder& holder, size_t dim) const {
  const auto closed = [&](ShardingId id) { return id && !module_.context().sharding(id).dims[dim].open; };
  if (closed(history_.initial(holder))) return tracer_.annotation_of(holder);
  for (const PropagationStep& step : history_.steps()) {
    if (step.value != holder.value || !holder.value || !closed(step.after) || !step.op) continue;
    if (const DataFlowEdge* edge = history_.edge_of(step.op)) {
      const Holder owner{history_.provenance().edges_are_sunk ? edge->owner : module_.result(step.op)};
      if (closed(history_.initial(owner))) return tracer_.annotation_of(owner);
    }
    return tracer_.said_by(step);
  }
  return std::nullopt;
}

}  // namespace shardwise
