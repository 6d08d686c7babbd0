// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/explain.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "shardwise/base/text.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/passes/common_mesh.h"
#include "shardwise/passes/propagation_rounds.h"
#include "shardwise/passes/suggested_sharding.h"
#include "shardwise/passes/value_names.h"

namespace shardwise {
namespace {

constexpr std::string_view kBarrierRule = "the direction that the op allows";

std::string_view kept_back(Direction allowed) {
  return allowed == Direction::kNone ? "it lets nothing through" : "it lets nothing through in this direction";
}

// Why a tensor of an op did not get an axis that another tensor has on the same factor.
class Judge {
 public:
  Judge(const Module& module, AxisHistory& history, AxisTracer& tracer, const Mesh& mesh)
      : module_(module), history_(history), tracer_(tracer), mesh_(mesh) {}

  struct Case {
    OpId op;
    uint32_t result = 0;  // of main, where there is no op
    size_t own = 0, other = 0;
    FactorId factor = 0;
    AxisRef axis;
  };

  // Fills reason, rule and winner.
  void judge(const Case& at, const FactorProjection& projection, LostAxis& lost) {
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
    if (overlaps(tensor.replicated, at.axis)) {
      lost.closed_by = first_said(holder);
      return say(lost, "its annotation lists the axis as replicated", "replicated axes shard no dim of the value");
    }
    if (overlaps(tensor.unreduced, at.axis)) {
      return say(lost, "the value is unreduced along the axis", "unreduced axes shard no dim of the value");
    }
    if (taken(at, at.own, projection, tensors, lost)) return;
    if (!mine.axes.empty() && !prefix_of(mine.axes.back(), at.axis) && !mine.closed) {
      for (const AxisRef& axis : mine.axes) append(lost.winner, tracer_.origins(holder, dim, axis, history_.now()));
      return say(lost, str("the dim is sharded along ", axis_list_text(mesh_, mine.axes), " already"),
                 "tensors that disagree about a dim keep what they have in common");
    }
    if (mine.closed) {
      lost.closed_by = first_closed(holder, dim);
      return say(lost, "an annotation closes the dim", "closed dims take no further axes");
    }
    if (!mine.overflow.empty() || !mine.minor_most) {
      return say(lost,
                 str("a part of size ", rule.factors()[at.factor].size, " of the dim cannot be split along it evenly"),
                 "a dim that an op takes apart is split where its parts divide");
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (taken(at, t, projection, tensors, lost)) return;
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      const FactorSharding* against = projection.find(t, at.factor);
      if (t == at.own || t == at.other || against == nullptr || against->axes.empty()) continue;
      const std::vector<AxisRef>& others = against->axes;
      if (is_prefix_of(others, projection.find(at.other, at.factor)->axes)) continue;
      append(lost.winner, tracer_.origins(tensors[t], dim_of(rule, t, at.factor), others.front(), history_.now()));
    }
    say(lost, "the tensors of the op disagree", "tensors that disagree about a dim keep what they have in common");
  }

 private:
  static void say(LostAxis& lost, std::string reason, std::string rule) {
    lost.reason = std::move(reason);
    lost.rule = std::move(rule);
  }
  static void append(std::vector<AxisOrigin>& list, const std::vector<AxisOrigin>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  bool op_keeps_it(const Case& at, const ShardingRule& rule, LostAxis& lost) const {
    const bool conservative = history_.provenance().conservative && at.op && history_.edge_of(at.op) == nullptr;
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

  // Whether another dim of tensor `t` has the axis.
  bool taken(const Case& at, size_t t, const FactorProjection& projection, const std::vector<Holder>& tensors,
             LostAxis& lost) {
    const ShardingRule& rule = projection.rule();
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      const FactorSharding* other = projection.find(t, static_cast<FactorId>(f));
      if (f == at.factor || other == nullptr) continue;
      AxisList held = other->axes;
      held.insert(held.end(), other->overflow.begin(), other->overflow.end());
      const auto winner = std::ranges::find_if(held, [&](const AxisRef& ref) { return overlaps(ref, at.axis); });
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

  // Why the axis went to `dim` of the value, and not to the dim of the case.
  std::string precedence(const Case& at, const std::vector<Holder>& tensors, size_t dim, const AxisRef& winner) {
    const size_t won = history_.arrival(tensors[at.own], dim, winner, history_.now());
    if (won == history_.now()) return "what an annotation says stays";
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

  // Which factor an op looks at first: propagate_factors.h.
  std::optional<std::string> order_of_factors(const Case& at, size_t won, size_t dim, const AxisRef& winner) {
    const std::vector<AxisSource> sources = history_.sources(won, dim, winner);
    const auto source = std::ranges::find(sources, false, &AxisSource::own);
    if (source == sources.end()) return std::nullopt;
    const FactorProjection& seen = history_.project(at.op, history_.visit_begin(won), at.result);
    const Offer first = largest_offer(seen, source->factor, winner), second = largest_offer(seen, at.factor, at.axis);
    if (first.size > second.size) {
      return "of two factors that want an axis, the one whose axes come from the larger tensor goes first";
    }
    if (first.size < second.size) return std::nullopt;
    const std::string equal = "of two factors that want an axis, and whose axes come from tensors of the same size, ";
    const Traits& traits = module_.op(at.op).def->traits;
    if ((traits.elementwise || traits.constraint) && first.shards != second.shards) {
      return equal + "the one with more shards goes first";
    }
    if (first.tensor >= second.tensor) return std::nullopt;
    const size_t operands = seen.rule().operand_count();
    return equal + str("that of ", side_text(operands, first.tensor), " goes before that of ",
                       side_text(operands, second.tensor));
  }

  // The largest tensor, the first of several, that has the axis on the factor.
  struct Offer {
    int64_t size = 0;
    int64_t shards = 1;
    size_t tensor = 0;
  };
  static Offer largest_offer(const FactorProjection& projection, FactorId factor, const AxisRef& axis) {
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

  const PropagationStep* first_offer(const Holder& holder, size_t dim, const AxisRef& axis, size_t from) const {
    for (size_t s = from; s < history_.now(); ++s) {
      const PropagationStep& step = history_.steps()[s];
      const bool is_its = holder.value ? step.value == holder.value : !step.value && step.tensor == holder.result;
      if (is_its && history_.has(step.after, dim, axis)) return &step;
    }
    return nullptr;
  }

  // In which the op speaks along the factor.
  int first_round(OpId op, const Factor& factor) const {
    if (!op || history_.edge_of(op) != nullptr) return 0;
    for (int round = 0; round < kLastRound; ++round) {
      const Participation part = participation(OpView(module_, op), round);
      const bool speaks = part.direction != Direction::kNone;
      if (speaks && (!part.pass_through_only || factor.kind == FactorKind::kPassThrough)) return round;
    }
    return kLastRound;
  }

  std::optional<Annotation> first_said(const Holder& holder) const {
    if (history_.initial(holder)) return tracer_.annotation_of(holder);
    return std::nullopt;
  }

  std::optional<Annotation> first_closed(const Holder& holder, size_t dim) const {
    const auto closed = [&](ShardingId id) { return id && !module_.context().sharding(id).dims[dim].open; };
    if (closed(history_.initial(holder))) return tracer_.annotation_of(holder);
    for (const PropagationStep& step : history_.steps()) {
      if (step.value == holder.value && holder.value && closed(step.after) && step.op) {
        return tracer_.annotation_of(tracer_.shown(step.op));
      }
    }
    return std::nullopt;
  }

  const Module& module_;
  AxisHistory& history_;
  AxisTracer& tracer_;
  const Mesh& mesh_;
};

class Explainer {
 public:
  Explainer(Inquiry& inquiry, ValueId value)
      : inquiry_(inquiry),
        module_(inquiry.module()),
        context_(module_.context()),
        history_(inquiry.history()),
        value_(value) {
    const Value& asked = module_.value(value);
    body_ = asked.op ? module_.op(asked.op).parent : asked.region;
    while (const OpId owner = module_.region(body_).op) body_ = module_.op(owner).parent;
  }

  Explanation run() {
    const bool is_made = is_made_constraint(module_, history_.provenance(), value_);
    Explanation result{.value = value_,
                       .name = is_made ? std::string() : shown_name(module_, value_),
                       .sharding = {},
                       .axes = {},
                       .lost = {},
                       .suggestion = {},
                       .to_change = {}};
    const ShardingId id = module_.value(value_).sharding;
    if (!id) return result;
    const TensorSharding& sharding = context_.sharding(id);
    result.sharding = short_text(sharding);
    mesh_ = sharding.mesh.get();
    AxisTracer& tracer = inquiry_.tracer(*mesh_);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      for (const AxisRef& axis : sharding.dims[d].axes) {
        const std::vector<AxisOrigin>& origins = tracer.origins(Holder{value_, 0}, d, axis, history_.now());
        result.axes.insert(result.axes.end(), origins.begin(), origins.end());
      }
    }
    Judge judge(module_, history_, tracer, *mesh_);
    find_lost(judge, tracer, result.lost);
    if (result.axes.empty() && result.lost.empty()) find_barriers(tracer, result.lost);
    if (result.axes.empty()) suggest(tracer, sharding, result);
    return result;
  }

 private:
  void suggest(const AxisTracer& tracer, const TensorSharding& now, Explanation& result) const {
    ShardingId said = history_.initial(Holder{value_, 0});
    if (said && is_of_call() && is_open(context_.sharding(said))) said = {};
    result.suggestion = suggested_sharding(module_, value_, now, said ? &context_.sharding(said) : nullptr);
    if (said && result.suggestion) result.to_change = tracer.annotation_of(Holder{value_, 0});
  }

  // What a call takes or gives: where one of these has a sharding, the others begin with an open one.
  bool is_of_call() const {
    const Value& value = module_.value(value_);
    return is_called_region(module_, history_.provenance(), value.op ? value.op : module_.region(value.region).op);
  }
  static bool is_open(const TensorSharding& sharding) {
    return sharding == TensorSharding::open(sharding.mesh, sharding.ndim());
  }

  void find_lost(Judge& judge, AxisTracer& tracer, std::vector<LostAxis>& lost) {
    for (const OpId op : inquiry_.ops_at(value_)) find_lost_at(op, 0, judge, tracer, lost);
    if (body_ != module_.main().body) return;  // of main alone the results are propagated
    const std::vector<ValueId>& results = module_.region(body_).results;
    for (uint32_t i = 0; i < results.size(); ++i) {
      if (results[i] == value_) find_lost_at({}, i, judge, tracer, lost);
    }
  }

  void find_lost_at(OpId op, uint32_t result, Judge& judge, AxisTracer& tracer, std::vector<LostAxis>& lost) {
    const std::vector<Holder> tensors = history_.tensors(op, result);
    const auto found = std::ranges::find(tensors, Holder{value_, 0});
    if (found == tensors.end() || !has_common_mesh(tensors)) return;
    const FactorProjection projection = history_.project(op, history_.now(), result);
    const auto own = static_cast<size_t>(found - tensors.begin());
    if (projection.rule().empty()) return;
    for (size_t f = 0; f < projection.rule().factors().size(); ++f) {
      const auto factor = static_cast<FactorId>(f);
      if (projection.find(own, factor) == nullptr) continue;
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (t == own || projection.find(t, factor) == nullptr) continue;
        compare({.op = op, .result = result, .own = own, .other = t, .factor = factor, .axis = {}}, projection, judge,
                tracer, lost);
      }
    }
  }

  // A dim of a value that nothing splits, and the dim of the value asked about that it would hand its axes to.
  struct Place {
    ValueId value;
    size_t dim = 0;
    size_t asked = 0;
    auto operator<=>(const Place&) const = default;
  };

  // What a barrier keeps from a value may have had ops to go through behind it: they are searched from the value on.
  void find_barriers(const AxisTracer& tracer, std::vector<LostAxis>& lost) {
    if (!inquiry_.has_barrier(body_)) return;
    std::vector<Place> stack;
    for (size_t d = module_.type(value_).shape.size(); d-- > 0;) stack.push_back({value_, d, d});
    std::set<Place> seen(stack.begin(), stack.end());
    while (!stack.empty()) {
      const Place place = stack.back();
      stack.pop_back();
      for (const OpId op : inquiry_.ops_at(place.value)) {
        const std::vector<Holder> tensors = history_.tensors(op);
        if (!has_common_mesh(tensors)) continue;
        for (size_t own = 0; own < tensors.size(); ++own) {
          if (tensors[own] != Holder{place.value, 0}) continue;
          for (const Place& next : heard_by(place, op, own, tracer, lost)) {
            if (seen.insert(next).second) stack.push_back(next);
          }
        }
      }
    }
  }

  // The dims that tensor `own` of the op would get axes from; what a barrier has on its other side goes to `lost`.
  std::vector<Place> heard_by(const Place& place, OpId op, size_t own, const AxisTracer& tracer,
                              std::vector<LostAxis>& lost) {
    std::vector<Place> found;
    const FactorProjection& projection = history_.project(op, history_.now());
    const ShardingRule& rule = projection.rule();
    if (rule.empty()) return found;
    const Direction direction = participation(OpView(module_, op), kLastRound).direction;
    const bool hears = direction == Direction::kBoth ||
                       direction == (own < rule.operand_count() ? Direction::kBackward : Direction::kForward);
    const std::vector<Holder> tensors = history_.tensors(op);
    for (const FactorId factor : rule.dim(own, place.dim)) {
      if (rule.factors()[factor].blocked) continue;
      for (size_t t = 0; t < tensors.size(); ++t) {
        const FactorSharding* theirs = projection.find(t, factor);
        if (t == own || theirs == nullptr) continue;
        if (hears) {
          if (theirs->axes.empty()) found.push_back({tensors[t].value, dim_of(rule, t, factor), place.asked});
        } else if (!theirs->axes.empty()) {
          lost.push_back(behind_barrier(tracer.shown(op), direction, place, theirs->axes.front()));
        }
      }
    }
    return found;
  }

  LostAxis behind_barrier(OpId barrier, Direction direction, const Place& place, const AxisRef& axis) const {
    return {.axis = axis,
            .axis_text = axis_text(*mesh_, axis),
            .dim = static_cast<int64_t>(place.asked),
            .op = std::string(module_.op(barrier).def->name),
            .value = shown_name(module_, barrier),
            .location = context_.location_text(module_.op(barrier).loc),
            .reason = str(kept_back(direction), ", and the value is behind it"),
            .rule = std::string(kBarrierRule),
            .winner = {},
            .closed_by = {}};
  }

  // So do tensors of which nothing is known.
  bool has_common_mesh(const std::vector<Holder>& tensors) const {
    std::vector<ShardingId> shardings;
    for (const Holder& tensor : tensors) shardings.push_back(history_.at(tensor, history_.now()));
    if (std::ranges::none_of(shardings, [](ShardingId id) { return static_cast<bool>(id); })) return true;
    const MeshPtr* mesh = common_mesh(context_, shardings);
    return mesh != nullptr && (*mesh)->same_devices(*mesh_);
  }

  // The first axis that the other tensor has on the factor and this one has not.
  void compare(Judge::Case at, const FactorProjection& projection, Judge& judge, AxisTracer& tracer,
               std::vector<LostAxis>& lost) const {
    const FactorSharding& mine = *projection.find(at.own, at.factor);
    const FactorSharding& theirs = *projection.find(at.other, at.factor);
    AxisList offered = theirs.axes;
    offered.insert(offered.end(), theirs.overflow.begin(), theirs.overflow.end());
    for (const AxisRef& axis : offered) {
      const bool has = std::ranges::any_of(mine.axes, [&](const AxisRef& ref) { return contains(ref, axis); });
      if (has) continue;
      at.axis = axis;
      const OpId group = tracer.disagreeing_group(at.op), op = group ? group : tracer.shown(at.op);
      LostAxis entry{.axis = axis,
                     .axis_text = axis_text(*mesh_, axis),
                     .dim = static_cast<int64_t>(dim_of(projection.rule(), at.own, at.factor)),
                     .op = op ? shown_op(module_, history_.provenance(), op)
                              : str("result ", at.result, " of ", module_.main().name),
                     .value = op ? shown_name(module_, op) : std::string(),
                     .location = op ? context_.location_text(module_.op(op).loc)
                                    : tracer.annotation_of(Holder{{}, at.result}).location,
                     .reason = {},
                     .rule = {},
                     .winner = {},
                     .closed_by = {}};
      if (group) entry.op += str(" ", module_.attrs(group).get_int("group_id"), " (its members disagree)");
      const bool known = std::ranges::any_of(lost, [&](const LostAxis& one) {
        return one.axis == axis && one.dim == entry.dim && one.op == entry.op && one.value == entry.value &&
               one.location == entry.location;
      });
      if (known) return;
      judge.judge(at, projection, entry);
      lost.push_back(std::move(entry));
      return;
    }
  }

  Inquiry& inquiry_;
  const Module& module_;
  Context& context_;
  AxisHistory& history_;
  ValueId value_;
  RegionId body_;  // of the function that the value is in
  const Mesh* mesh_ = nullptr;
};

}  // namespace

Explanation explain(Inquiry& inquiry, ValueId value) { return Explainer(inquiry, value).run(); }

Explanation explain(const Module& module, const Provenance& provenance, ValueId value) {
  Inquiry inquiry(module, provenance);
  return explain(inquiry, value);
}

}  // namespace shardwise
