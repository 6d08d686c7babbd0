// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagate.h"

#include <algorithm>
#include <utility>

#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/propagation/apply_constraints.h"
#include "shardwise/propagation/close_shardings.h"
#include "shardwise/propagation/common_mesh.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/identity_rules.h"
#include "shardwise/propagation/lift_inlined_meshes.h"
#include "shardwise/propagation/program_shardings.h"
#include "shardwise/propagation/propagate_factors.h"
#include "shardwise/propagation/propagation_graph.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/remove_size_one_axes.h"
#include "shardwise/propagation/run_cache.h"
#include "shardwise/propagation/sharding_groups.h"
#include "shardwise/propagation/shardy/divisible_borders.h"
#include "shardwise/propagation/split_constants.h"
#include "shardwise/propagation/user_priorities.h"
#include "shardwise/propagation/value_classes.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/simplify.h"

namespace shardwise {
namespace {

class Propagation {
 public:
  Propagation(Module& module, Strategy strategy, Provenance& provenance, bool conservative, Setting setting)
      : module_(module),
        context_(module.context()),
        steps_(provenance.steps),
        graph_(module, setting),
        factors_(strategy),
        conservative_(conservative),
        setting_(setting),
        states_(module.op_count()),
        rules_(module.op_count(), 0),
        identities_(module.context()) {
    known_.reserve(module.value_count());
    const std::vector<DataFlowEdge> bare = graph_.has_flow() ? bare_edges(module) : std::vector<DataFlowEdge>();
    settles_ = !graph_.has_flow() && !graph_.has_groups() && graph_.edges().empty();
    if (!settles_) classes_ = ValueClasses(module, graph_.edges(), bare);
    start_edges();
    for (const DataFlowEdge& edge : bare) {
      if (const Value& owner = module.value(edge.owner); owner.op) start(owner.op, edge, owner.sharding);
    }
  }

  void run(Priorities priorities) {
    UserPriorities user(module_, steps_);
    if (priorities == Priorities::kUser) user.hold_back();
    run_rounds(priorities);
    for (const int64_t priority : user.waiting()) {
      priority_ = priority;
      user.release(priority);
      for (OpState& state : states_) state.settled = 0;
      run_rounds(priorities);
    }
  }

  int64_t visits() const { return visits_; }
  const std::vector<std::pair<OpId, DataFlowEdge>>& edges() const { return graph_.edges().all(); }
  int64_t distinct_visits() const { return static_cast<int64_t>(visit_cache_.size()); }

 private:
  struct OpState {
    bool queued : 1 = false;
    bool dead : 1 = false;
    bool may_be_unused : 1 = true;
    uint8_t settled = 0;  // a visit that took part like this would change nothing; 0: it may
  };

  static uint8_t code(Participation part) {
    return static_cast<uint8_t>(2 * static_cast<int>(part.direction) + (part.pass_through_only ? 1 : 0));
  }

  void run_rounds(Priorities priorities) {
    changed_ = true;
    known_.clear();
    for (uint32_t v = 0; v < module_.value_count(); ++v) known_.push_back(module_.value(ValueId{v}).sharding);
    for (round_ = priorities == Priorities::kNone ? kLastRound : 0; round_ < kRounds; ++round_) {
      propagate_results();
      sweep();
      while (setting_ == Setting::kPipeline && round_ == kLastRound && missed_) sweep();
      propagate_results();
    }
  }

  // What is known of an edge from the start is known of all that it stands for.
  void start_edges() {
    for (const auto& [op, edge] : graph_.edges().all()) start(op, edge, module_.value(module_.result(op)).sharding);
  }

  void start(OpId op, const DataFlowEdge& edge, ShardingId sharding) {
    for (const ValueId target : edge.targets) {
      ShardingId& known = module_.value(target).sharding;
      if (target == edge.owner || known == sharding) continue;
      record(op, target, edge.sources.size(), known, sharding);
      known = sharding;
    }
  }

  // Top down; the ops that a change brings back go first.
  void sweep() {
    missed_ = false;
    for (OpState& state : states_) state.queued = true;
    for (const OpId next : graph_.order()) {
      if (!states_[next.index].queued) continue;  // was brought forward
      take(next);
      while (!stack_.empty()) {
        const OpId id = stack_.back();
        stack_.pop_back();
        take(id);
      }
    }
  }

  // Most ops say nothing in the first rounds: they are passed by without a look at the program.
  void take(OpId id) {
    OpState& state = states_[id.index];
    state.queued = false;
    if (state.dead || (state.may_be_unused && remove_if_unused(id))) return;
    state.may_be_unused = false;
    const PropagationGraph::Role role = graph_.role(id);
    const Participation part = role.turn.participation(round_);
    if (part.direction == Direction::kNone || state.settled == code(part)) return;
    if (round_ == 0 && role.turn.waits_for_shared() && shares_operands(id)) return;
    visit(id, part);
  }

  // An op without users, unless it is a constraint, says nothing any more from the moment the sweep finds it; then the
  // ops before it may be next.
  bool remove_if_unused(OpId id) {
    const uint32_t count = graph_.result_count(id);
    if (count == 0) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (graph_.uses(ValueId{graph_.first_result(id).index + i}) != 0) return false;
    }
    if (has_effect(module_, id, UnusedConstraints::kKeep)) return false;
    remove(id);
    return true;
  }

  // With what is in its regions.
  void remove(OpId id) {
    states_[id.index].dead = true;
    for (RegionId inner : module_.regions(id)) {
      for (ValueId result : module_.region(inner).results) {
        graph_.drop_use(result);
        if (const OpId defining = module_.value(result).op) states_[defining.index].may_be_unused = true;
      }
      for (OpId op : module_.region(inner).ops) {
        if (!states_[op.index].dead) remove(op);
      }
    }
    for (ValueId operand : module_.operands(id)) {
      graph_.drop_use(operand);
      const OpId defining = module_.value(operand).op;
      if (!defining) continue;
      states_[defining.index].may_be_unused = true;
      if (has_at_most_one_user(operand)) push(defining);
    }
  }

  // MLIR's rewriter looks again at what it thinks may go next, and with it Shardy.
  bool has_at_most_one_user(ValueId value) const {
    OpId only;
    uint32_t uses = 0;
    for (OpId user : graph_.users(value)) {
      if (states_[user.index].dead || graph_.role(user).is_edge) continue;
      if (only && user != only) return false;
      only = user;
      ++uses;
    }
    return !only || graph_.uses(value) <= uses;  // what is left are results of the region
  }

  void push(OpId id) {
    OpState& state = states_[id.index];
    state.settled = 0;
    if (state.queued || state.dead) return;
    state.queued = true;
    stack_.push_back(id);
  }

  bool shares_operands(OpId id) const {
    return std::ranges::any_of(graph_.operands(id), [&](ValueId operand) {
      return graph_.uses(operand) > 1 && !module_.type(operand).shape.empty();
    });
  }

  const ShardingRule& rule(OpId id) {
    uint32_t& known = rules_[id.index];
    if (known == 0) known = find_rule(id);
    return *distinct_rules_[known - 1];
  }

  // Of the op at hand: 1 + its place among distinct_rules_. Some rules look into regions, or at other ops.
  uint32_t find_rule(OpId id) {
    const OpView op(module_, id);
    if (!op.regions().empty() || op.def().traits.rule_sees_makers) return add_rule(op);
    types_.clear();
    for (size_t t = 0; t < before_.size(); ++t) types_.push_back(module_.value(tensor(t)).type);
    const uint32_t attrs = module_.op(id).attrs.index;
    if (const uint32_t* known = rule_cache_.find(&op.def(), attrs, types_)) return *known;
    const uint32_t made = add_rule(op);
    return *rule_cache_.insert(&op.def(), attrs, types_, std::span(&made, 1));
  }

  uint32_t add_rule(const OpView& op) {
    distinct_rules_.push_back(&context_.propagation_rule(op, conservative_));
    return static_cast<uint32_t>(distinct_rules_.size());
  }

  void visit(OpId id, Participation part) {
    const PropagationGraph::Role role = graph_.role(id);
    if (role.is_edge) return visit_edge(id, part);
    states_[id.index].settled = settles_ ? code(part) : 0;
    if (!look_at(graph_.operands(id), graph_.first_result(id), graph_.result_count(id)) || before_.size() < 2) return;
    const ShardingRule& op_rule = rule(id);
    if (op_rule.empty()) return;
    begin_visit();
    const uint32_t* after = propagated(op_rule, part, role.elementwise);
    for (size_t t = 0; t < before_.size(); ++t) {
      const ShardingId grown{after[t]};
      if (grown != before_[t]) set_sharding(id, t, grown);
    }
  }

  // The shardings of an op's tensors; false when none has one.
  bool look_at(std::span<const ValueId> operands, ValueId first_result, uint32_t result_count) {
    operands_ = operands;
    first_result_ = first_result;
    bool any = false;
    before_.clear();
    const auto add = [&](ShardingId sharding) {
      before_.push_back(sharding);
      any = any || sharding;
    };
    for (ValueId operand : operands) add(known_[operand.index]);
    for (uint32_t i = 0; i < result_count; ++i) add(known_[first_result.index + i]);
    return any;
  }

  ValueId tensor(size_t index) const {
    if (index < operands_.size()) return operands_[index];
    return {first_result_.index + static_cast<uint32_t>(index - operands_.size())};
  }

  void begin_visit() {
    ++visits_;
    first_of_visit_ = true;
  }

  // A build without recording shows what it costs (benchmarks/recording.py).
  void record([[maybe_unused]] OpId op, [[maybe_unused]] ValueId value, [[maybe_unused]] size_t tensor,
              [[maybe_unused]] ShardingId before, [[maybe_unused]] ShardingId after) {
#ifndef SHARDWISE_NO_PROVENANCE
    steps_.push_back({.op = op,
                      .value = value,
                      .tensor = static_cast<uint32_t>(tensor),
                      .before = before,
                      .after = after,
                      .round = static_cast<uint8_t>(round_),
                      .first = std::exchange(first_of_visit_, false),
                      .priority = static_cast<uint16_t>(std::min<int64_t>(priority_, UINT16_MAX))});
#endif
  }

  // Sources and the edge as an identity. A manual region's inside and outside see the edge differently.
  void visit_edge(OpId id, Participation part) {
    const DataFlowEdge& edge = *graph_.edge(id);
    look_at(edge.sources, module_.result(id), 1);
    before_.back() = seen_from_sources(edge, before_.back());
    if (std::ranges::none_of(before_, [](ShardingId sharding) { return static_cast<bool>(sharding); })) return;
    begin_visit();
    const ShardingRule& identity = identities_.of(module_.value(module_.result(id)).type, edge.sources.size());
    const uint32_t* after = propagated(identity, part, false);
    for (size_t t = 0; t < edge.sources.size(); ++t) {
      if (const ShardingId grown{after[t]}; grown != before_[t]) set_sharding(id, t, grown);
    }
    if (const ShardingId grown{after[edge.sources.size()]}; grown != before_.back()) {
      set_sharding(id, edge.sources.size(), seen_from_target(edge, grown));
    }
  }

  ShardingId seen_from_sources(const DataFlowEdge& edge, ShardingId sharding) {
    return edge.target_inside ? outside(edge, sharding) : inside(edge, sharding);
  }
  ShardingId seen_from_target(const DataFlowEdge& edge, ShardingId sharding) {
    return edge.target_inside ? inside(edge, sharding) : outside(edge, sharding);
  }
  ShardingId inside(const DataFlowEdge& edge, ShardingId sharding) {
    if (!sharding || edge.manual_axes.empty()) return sharding;
    return context_.intern(seen_from_inside(context_.sharding(sharding), edge.manual_axes));
  }
  ShardingId outside(const DataFlowEdge& edge, ShardingId sharding) {
    if (!sharding || edge.manual_axes.empty()) return sharding;
    const TensorSharding& declared = context_.sharding(edge.outside);
    return context_.intern(seen_from_outside(context_.sharding(sharding), declared, edge.manual_axes));
  }

  void set_sharding(OpId id, size_t index, ShardingId sharding) {
    const ValueId value = tensor(index);
    const std::span<const ValueId> members = classes_.members(value);
    if (members.empty()) return set_sharding(id, index, value, sharding);
    for (const ValueId member : members) {
      if (classes_.is_quiet(member)) {
        assign(id, index, member, sharding);
      } else {
        set_sharding(id, index, member, sharding);
      }
    }
  }

  void assign(OpId id, size_t index, ValueId target, ShardingId sharding) {
    Value& value = module_.value(target);
    record(id, target, index, value.sharding, sharding);
    value.sharding = known_[target.index] = sharding;
    changed_ = true;
  }

  void set_sharding(OpId id, size_t index, ValueId target, ShardingId sharding) {
    assign(id, index, target, sharding);
    const Value& value = module_.value(target);
    if (value.op && value.op != id) push(value.op);
    states_[id.index].settled = 0;
    for (OpId user : graph_.users(target)) {
      if (user == id) continue;
      if (waits_for_next_sweep(user)) {
        missed_ = true;
      } else {
        push(user);
      }
    }
  }

  // What stands for an argument of a region hears of the operand behind it when its turn comes, as in Shardy.
  bool waits_for_next_sweep(OpId id) const {
    return graph_.role(id).is_edge && !module_.value(graph_.edge(id)->owner).op;
  }

  // What before_ becomes under `rule`.
  const uint32_t* propagated(const ShardingRule& op_rule, Participation part, bool elementwise) {
    return propagated(op_rule, part, elementwise, conservative_);
  }
  const uint32_t* propagated(const ShardingRule& op_rule, Participation part, bool elementwise, bool conservative) {
    const uint32_t variant = 4U * code(part) + (elementwise ? 2 : 0) + (conservative ? 1 : 0);
    if (const uint32_t* known = visit_cache_.find(&op_rule, variant, before_)) return known;
    after_.clear();
    for (ShardingId id : before_) after_.push_back(id.index);
    if (const MeshPtr* mesh = common_mesh(context_, before_)) {
      factors_.hand_on_whole_axes_of(conservative ? mesh->get() : nullptr);
      grow(op_rule, *mesh, part, elementwise);
    }
    return visit_cache_.insert(&op_rule, variant, before_, after_);
  }

  void grow(const ShardingRule& op_rule, const MeshPtr& mesh, Participation part, bool elementwise) {
    shardings_.clear();
    for (ShardingId id : before_) shardings_.push_back(id ? &context_.sharding(id) : nullptr);
    projection_.project(op_rule, shardings_);
    factors_.run(projection_, part.direction, part.pass_through_only, elementwise);
    for (size_t t = 0; t < before_.size(); ++t) {
      if (!factors_.updated()[t]) continue;
      const TensorSharding grown = projection_.sharding(t, mesh);
      const bool has_axes = std::ranges::any_of(grown.dims, [](const DimSharding& dim) { return !dim.axes.empty(); });
      if (before_[t] ? grown == *shardings_[t] : !has_axes) continue;
      after_[t] = context_.intern(grown).index;
    }
  }

  // The results of main as identities from the values returned, unless nothing has changed since the last time.
  void propagate_results() {
    if (!changed_) return;
    changed_ = false;
    Function& main = module_.main();
    const std::vector<ValueId>& results = module_.region(main.body).results;
    main.result_shardings.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      before_.assign({known_[results[i].index], main.result_shardings[i]});
      if (!before_[0] && !before_[1]) continue;
      first_of_visit_ = true;
      const uint32_t* after = propagated(identities_.of(module_.value(results[i]).type, 1), {}, true, false);
      const ShardingId value{after[0]};
      const ShardingId result{after[1]};
      if (result != before_[1]) {
        record({}, {}, i, before_[1], result);
        main.result_shardings[i] = result;
      }
      if (value == before_[0]) continue;
      changed_ = true;
      const std::span<const ValueId> members = classes_.members(results[i]);
      for (const ValueId member : members.empty() ? std::span(&results[i], 1) : members) {
        record({}, member, i, before_[0], value);
        module_.value(member).sharding = known_[member.index] = value;
        if (const OpId defining = module_.value(member).op) states_[defining.index].settled = 0;
        for (OpId user : graph_.users(member)) states_[user.index].settled = 0;
      }
    }
  }

  Module& module_;
  Context& context_;
  std::vector<PropagationStep>& steps_;
  PropagationGraph graph_;
  ValueClasses classes_;
  FactorPropagation factors_;
  FactorProjection projection_;
  bool settles_ = true;  // every op hears of every change
  bool changed_ = true;  // a value, since results were looked at
  bool missed_ = false;  // by an edge that waits for the next sweep
  bool conservative_;
  Setting setting_;
  RunCache<ShardingId> visit_cache_;
  RunCache<TypeId> rule_cache_;
  int round_ = kLastRound;
  int64_t priority_ = 0;
  std::vector<OpState> states_;  // by op
  std::vector<uint32_t> rules_;  // by op: 1 + which of the distinct ones, 0: not asked for yet
  std::vector<const ShardingRule*> distinct_rules_;
  std::vector<ShardingId> known_;  // by value: its sharding, in a sixth of the memory that values take
  std::vector<OpId> stack_;
  IdentityRules identities_;
  // Of the visit at hand.
  std::span<const ValueId> operands_;
  ValueId first_result_;
  std::vector<ShardingId> before_;
  std::vector<uint32_t> after_;
  std::vector<TypeId> types_;
  std::vector<const TensorSharding*> shardings_;
  int64_t visits_ = 0;
  bool first_of_visit_ = true;
};

}  // namespace

void propagate_shardings(Module& module, Strategy strategy, Priorities priorities, Provenance& provenance,
                         Counters& counters, bool conservative, Setting setting) {
#ifndef SHARDWISE_NO_PROVENANCE
  provenance.steps.reserve(module.value_count());  // one for most values
#endif
  Propagation propagation(module, strategy, provenance, conservative, setting);
  propagation.run(priorities);
  provenance.edges = propagation.edges();
  provenance.basic = strategy == Strategy::kBasic;
  provenance.conservative = conservative;
  counters.add("propagate.visits", propagation.visits());
  counters.add("propagate.distinct_visits", propagation.distinct_visits());
  counters.add("propagate.steps", static_cast<int64_t>(provenance.steps.size()));
}

void propagate(Program& program) {
  Module& module = program.module;
  lift_inlined_meshes(module);
  remove_size_one_axes(module);
  const std::set<std::string> called = calls_to_regions(module);
  program.counters.add("propagate.copies", split_constants(module));
  add_data_flow_edges(module);
  record_annotations(module, program.provenance);
  apply_constraints(module, program.provenance);
  sync_sharding_groups(module, program.provenance, program.warnings);
  propagate_shardings(module, program.options.strategy, program.options.priorities, program.provenance,
                      program.counters, program.options.conservative, Setting::kPipeline);
  sink_data_flow_edges(module, program.provenance);
  drop_sharding_groups(module);
  // A constraint that nobody uses has said what it had to say.
  remove_unused_ops(module, UnusedConstraints::kRemove);
  if (program.options.strict_divisible) shrink_borders_to_divisible(module);
  if (program.options.close_shardings) close_shardings(module);
  regions_to_calls(module, called);
}

}  // namespace shardwise
