// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/explain.h"

#include <algorithm>
#include <limits>
#include <map>

#include "shardwise/base/text.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/passes/propagation_rounds.h"
#include "shardwise/passes/suggested_sharding.h"

namespace shardwise {
namespace {

std::string side_text(size_t operands, size_t tensor) {
  return tensor < operands ? str("operand ", tensor) : str("result ", tensor - operands);
}

std::string tensor_text(size_t operands, size_t tensor, size_t dim) {
  return str(side_text(operands, tensor), " dim ", dim);
}

bool same_way(const AxisOrigin& a, const AxisOrigin& b) {
  return a.dim == b.dim && a.origin == b.origin &&
         std::ranges::equal(a.path, b.path, [](const PathEntry& x, const PathEntry& y) {
           return x.op == y.op && x.from == y.from && x.to == y.to && x.factor == y.factor;
         });
}

// Follows axes back to what a user wrote.
class Tracer {
 public:
  Tracer(const Module& module, AxisHistory& history, const Mesh& mesh)
      : module_(module), context_(module.context()), history_(history), mesh_(mesh) {}

  // `axis` that `holder` has on `dim` before `time`. Digits that came in several ways give several origins.
  std::vector<AxisOrigin> origins(const Holder& holder, size_t dim, const AxisRef& axis, size_t time) {
    std::vector<AxisOrigin> found = trace({.holder = holder, .dim = dim, .axis = axis, .time = time}, dim);
    std::vector<AxisOrigin> merged;
    for (AxisOrigin& one : found) {
      if (!merged.empty() && can_merge(merged.back().axis, one.axis) && same_way(merged.back(), one)) {
        merged.back().axis.size *= one.axis.size;
      } else {
        merged.push_back(std::move(one));
      }
    }
    for (AxisOrigin& one : merged) one.axis_text = axis_text(mesh_, one.axis);
    return merged;
  }

  Annotation annotation_of(const Holder& holder) const {
    Annotation found{.holder = holder, .op = {}, .text = {}, .location = {}};
    if (!holder.value) {
      found.text = str("result ", holder.result, " of ", module_.main().name);
    } else if (const Value& value = module_.value(holder.value); value.op) {
      describe(module_.op(value.op), found);
    } else if (const OpId owner = module_.region(value.region).op) {
      describe(module_.op(owner), found);
    } else {
      found.text = argument_text(module_, holder.value);
      found.location = context_.location_text(value.loc);
    }
    return found;
  }

  Annotation annotation_of(OpId op) const {
    Annotation found{.holder = {}, .op = op, .text = {}, .location = {}};
    describe(module_.op(op), found);
    return found;
  }

  // What an edge's op hands on, said of the op that it belongs to.
  OpId shown(OpId op) const {
    const DataFlowEdge* edge = op ? history_.edge_of(op) : nullptr;
    if (edge == nullptr) return op;
    const Value& owner = module_.value(edge->owner);
    return owner.op ? owner.op : module_.region(owner.region).op;
  }

 private:
  void describe(const Operation& op, Annotation& annotation) const {
    annotation.text = op.def->name;
    annotation.location = context_.location_text(op.loc);
  }

  static constexpr size_t kNoLink = std::numeric_limits<size_t>::max();

  // An axis that somebody had before `time`, to be followed further back.
  struct Spot {
    Holder holder;
    size_t dim = 0;
    AxisRef axis;
    size_t time = 0;
    size_t link = kNoLink;  // the last of the way so far
  };
  // A step on the way, in numbers: the texts are written once the way is known to lead to an origin.
  struct Link {
    size_t previous = kNoLink;  // nearer to the value that was asked about
    size_t step = 0;
    AxisSource source;
    size_t dim = 0;
    size_t operands = 0;  // of the rule
  };

  // A way may be as long as the program, so it is followed with a stack of its own.
  std::vector<AxisOrigin> trace(const Spot& start, size_t dim) {
    std::vector<AxisOrigin> found;
    std::vector<Link> links;
    std::vector<Spot> stack{start};
    while (!stack.empty()) {
      const Spot at = stack.back();
      stack.pop_back();
      const size_t first = stack.size();
      if (const std::optional<Annotation> end = step_back(at, links, stack)) {
        found.push_back(AxisOrigin{.axis = at.axis,
                                   .axis_text = {},
                                   .dim = static_cast<int64_t>(dim),
                                   .origin = *end,
                                   .path = path_of(links, at.link)});
      }
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
    }
    return found;
  }

  // The annotation that the axis comes from, or, on the stack, who had it before.
  std::optional<Annotation> step_back(const Spot& at, std::vector<Link>& links, std::vector<Spot>& stack) {
    const size_t arrival = history_.arrival(at.holder, at.dim, at.axis, at.time);
    if (arrival == history_.now()) return annotation_of(at.holder);
    const PropagationStep& step = history_.steps()[arrival];
    if (step.round == PropagationStep::kByPriority) return annotation_of(at.holder);
    if (is_group(step.op)) {
      const std::optional<Spot> member = other_member(at, arrival);
      if (!member) return annotation_of(at.holder);
      links.push_back({.previous = at.link, .step = arrival, .source = {}, .dim = at.dim});
      stack.push_back(*member);
      stack.back().link = links.size() - 1;
      return std::nullopt;
    }
    if (step.op && module_.op(step.op).def->flow != nullptr) return annotation_of(step.op);
    const std::vector<AxisSource> sources = history_.sources(arrival, at.dim, at.axis);
    if (sources.empty()) return annotation_of(at.holder);
    const size_t begin = history_.visit_begin(arrival);
    const size_t operands = step.op ? module_.operands(step.op).size() : 0;
    for (const AxisSource& source : sources) {
      stack.push_back(
          {.holder = source.holder, .dim = source.dim, .axis = source.axis, .time = begin, .link = at.link});
      if (source.own || !step.op) continue;
      links.push_back({.previous = at.link, .step = arrival, .source = source, .dim = at.dim, .operands = operands});
      stack.back().link = links.size() - 1;
    }
    return std::nullopt;
  }

  bool is_group(OpId op) const { return op && module_.op(op).def->traits.sharding_group; }

  // The members of a group begin with the sharding of those that had one.
  std::optional<Spot> other_member(const Spot& at, size_t arrival) {
    const PropagationStep& step = history_.steps()[arrival];
    if (members_.empty()) {
      for (uint32_t i = 1; i < module_.op_count(); ++i) {
        const OpId op{i};
        if (is_group(op)) members_[module_.attrs(op).get_int("group_id")].push_back(module_.operands(op)[0]);
      }
    }
    for (const ValueId value : members_[module_.attrs(step.op).get_int("group_id")]) {
      const Holder member{value, 0};
      if (value == step.value || !history_.has(history_.at(member, arrival), at.dim, at.axis)) continue;
      return Spot{.holder = member, .dim = at.dim, .axis = at.axis, .time = arrival};
    }
    return std::nullopt;
  }

  std::vector<PathEntry> path_of(const std::vector<Link>& links, size_t last) const {
    std::vector<PathEntry> path;
    for (size_t link = last; link != kNoLink; link = links[link].previous) path.push_back(entry(links[link]));
    return path;
  }

  PathEntry entry(const Link& link) const {
    const PropagationStep& step = history_.steps()[link.step];
    const OpId op = shown(step.op);
    const bool is_edge = op != step.op;
    PathEntry entry{.op = op,
                    .name = std::string(module_.op(op).def->name),
                    .location = context_.location_text(module_.op(op).loc),
                    .from = {},
                    .to = {},
                    .factor = {},
                    .round = step.round,
                    .priority = history_.priority(link.step)};
    if (is_group(op)) {
      entry.from = str("another member, dim ", link.dim);
      entry.to = str("a member, dim ", link.dim);
      entry.round = 0;
      entry.priority = 0;
      return entry;
    }
    const AxisSource& source = link.source;
    entry.from = is_edge ? place_text(op, source.holder.value, source.dim)
                         : tensor_text(link.operands, source.tensor, source.dim);
    entry.to = is_edge ? place_text(op, history_.tensors(step.op)[step.tensor].value, link.dim)
                       : tensor_text(link.operands, step.tensor, link.dim);
    entry.factor = factor_symbol(source.factor);
    return entry;
  }

  // What a value is to an op with regions.
  std::string place_text(OpId op, ValueId value, size_t dim) const {
    const Value& known = module_.value(value);
    const auto operands = module_.operands(op);
    if (known.op == op) return str("result ", known.index, " dim ", dim);
    if (!known.op && module_.region(known.region).op == op)
      return str("argument ", known.index, " of its region, dim ", dim);
    const auto it = std::ranges::find(operands, value);
    if (it != operands.end()) return str("operand ", it - operands.begin(), " dim ", dim);
    return str("what its region returns, dim ", dim);
  }

  const Module& module_;
  Context& context_;
  AxisHistory& history_;
  const Mesh& mesh_;
  std::map<int64_t, std::vector<ValueId>> members_;  // of groups, by their numbers
};

// Why a tensor of an op did not get an axis that another tensor has on the same factor.
class Judge {
 public:
  Judge(const Module& module, AxisHistory& history, Tracer& tracer, const Mesh& mesh)
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
  static void append(std::vector<AxisOrigin>& list, std::vector<AxisOrigin> more) {
    std::ranges::move(more, std::back_inserter(list));
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
    const Direction direction = participation(op, kLastRound, false).direction;
    const bool is_operand = at.own < rule.operand_count();
    if (direction == Direction::kBoth || direction == (is_operand ? Direction::kBackward : Direction::kForward)) {
      return false;
    }
    say(lost,
        direction == Direction::kNone ? "the op hands on nothing" : "the op hands on shardings the other way only",
        "the direction that the op allows");
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
      const Participation part = participation(OpView(module_, op), round, false);
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
  Tracer& tracer_;
  const Mesh& mesh_;
};

class Explainer {
 public:
  Explainer(const Module& module, const Provenance& provenance, ValueId value)
      : module_(module), context_(module.context()), history_(module, provenance), value_(value) {}

  Explanation run() {
    const LocId loc = module_.value(value_).op ? module_.op(module_.value(value_).op).loc : module_.value(value_).loc;
    Explanation result{.value = value_,
                       .name = context_.name_of(loc),
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
    Tracer tracer(module_, history_, *mesh_);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      for (const AxisRef& axis : sharding.dims[d].axes) {
        for (AxisOrigin& origin : tracer.origins(Holder{value_, 0}, d, axis, history_.now())) {
          result.axes.push_back(std::move(origin));
        }
      }
    }
    Judge judge(module_, history_, tracer, *mesh_);
    find_lost(judge, tracer, result.lost);
    if (result.axes.empty()) suggest(tracer, sharding, result);
    return result;
  }

 private:
  void suggest(const Tracer& tracer, const TensorSharding& now, Explanation& result) const {
    const ShardingId said = history_.initial(Holder{value_, 0});
    result.suggestion = suggested_sharding(module_, value_, now, said ? &context_.sharding(said) : nullptr);
    if (said && result.suggestion) result.to_change = tracer.annotation_of(Holder{value_, 0});
  }

  void find_lost(Judge& judge, Tracer& tracer, std::vector<LostAxis>& lost) {
    std::vector<OpId> ops;
    if (const OpId op = module_.value(value_).op) ops.push_back(op);
    collect_users(module_.main().body, ops);
    for (const auto& [op, edge] : history_.provenance().edges) ops.push_back(op);
    for (const OpId op : ops) find_lost_at(op, 0, judge, tracer, lost);
    const std::vector<ValueId>& results = module_.region(module_.main().body).results;
    for (uint32_t i = 0; i < results.size(); ++i) {
      if (results[i] == value_) find_lost_at({}, i, judge, tracer, lost);
    }
  }

  void collect_users(RegionId region, std::vector<OpId>& users) const {
    for (OpId id : module_.region(region).ops) {
      const auto operands = module_.operands(id);
      if (std::ranges::find(operands, value_) != operands.end()) users.push_back(id);
      for (RegionId inner : module_.regions(id)) collect_users(inner, users);
    }
  }

  void find_lost_at(OpId op, uint32_t result, Judge& judge, Tracer& tracer, std::vector<LostAxis>& lost) {
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

  bool has_common_mesh(const std::vector<Holder>& tensors) const {
    return std::ranges::all_of(tensors, [&](const Holder& tensor) {
      const ShardingId id = history_.at(tensor, history_.now());
      return !id || (context_.sharding(id).mesh.get() == mesh_ && !mesh_->is_maximal());
    });
  }

  // The first axis that the other tensor has on the factor and this one has not.
  void compare(Judge::Case at, const FactorProjection& projection, Judge& judge, Tracer& tracer,
               std::vector<LostAxis>& lost) const {
    const FactorSharding& mine = *projection.find(at.own, at.factor);
    const FactorSharding& theirs = *projection.find(at.other, at.factor);
    AxisList offered = theirs.axes;
    offered.insert(offered.end(), theirs.overflow.begin(), theirs.overflow.end());
    for (const AxisRef& axis : offered) {
      const bool has = std::ranges::any_of(mine.axes, [&](const AxisRef& ref) { return contains(ref, axis); });
      if (has) continue;
      at.axis = axis;
      const OpId op = tracer.shown(at.op);
      LostAxis entry{
          .axis = axis,
          .axis_text = axis_text(*mesh_, axis),
          .dim = static_cast<int64_t>(dim_of(projection.rule(), at.own, at.factor)),
          .op = op ? std::string(module_.op(op).def->name) : str("result ", at.result, " of ", module_.main().name),
          .location = op ? context_.location_text(module_.op(op).loc) : std::string(),
          .reason = {},
          .rule = {},
          .winner = {},
          .closed_by = {}};
      const bool known = std::ranges::any_of(lost, [&](const LostAxis& one) {
        return one.axis == axis && one.dim == entry.dim && one.op == entry.op && one.location == entry.location;
      });
      if (known) return;
      judge.judge(at, projection, entry);
      lost.push_back(std::move(entry));
      return;
    }
  }

  const Module& module_;
  Context& context_;
  AxisHistory history_;
  ValueId value_;
  const Mesh* mesh_ = nullptr;
};

}  // namespace

std::string argument_text(const Module& module, ValueId argument) {
  const Value& value = module.value(argument);
  const std::string name = module.context().name_of(value.loc);
  return "argument " + (name.empty() ? std::to_string(value.index) : name);
}

Explanation explain(const Module& module, const Provenance& provenance, ValueId value) {
  return Explainer(module, provenance, value).run();
}

}  // namespace shardwise
