// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/propagate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "shardwise/ops/manual.h"
#include "shardwise/passes/apply_constraints.h"
#include "shardwise/passes/close_shardings.h"
#include "shardwise/passes/common_mesh.h"
#include "shardwise/passes/data_flow_edges.h"
#include "shardwise/passes/divisible_borders.h"
#include "shardwise/passes/identity_rules.h"
#include "shardwise/passes/inline_calls.h"
#include "shardwise/passes/lift_inlined_meshes.h"
#include "shardwise/passes/program_shardings.h"
#include "shardwise/passes/propagate_factors.h"
#include "shardwise/passes/propagation_rounds.h"
#include "shardwise/passes/remove_size_one_axes.h"
#include "shardwise/passes/sharding_groups.h"
#include "shardwise/passes/simplify.h"
#include "shardwise/passes/split_constants.h"
#include "shardwise/passes/user_priorities.h"
#include "shardwise/passes/value_classes.h"
#include "shardwise/passes/visit_cache.h"

namespace shardwise {
namespace {

class Propagation {
 public:
  Propagation(Module& module, Strategy strategy, Provenance& provenance, bool conservative, Setting setting)
      : module_(module),
        context_(module.context()),
        steps_(provenance.steps),
        factors_(strategy),
        conservative_(conservative),
        setting_(setting),
        states_(module.op_count()),
        rules_(module.op_count(), nullptr),
        live_uses_(module.value_count(), 0),
        use_begin_(module.value_count() + 1, 0),
        identities_(module.context()) {
    for (const Function& function : module_.functions) collect(function.body);
    if (has_edges_) edges_ = DataFlowEdges(module);
    const std::vector<DataFlowEdge> bare = has_flow_ ? bare_edges(module) : std::vector<DataFlowEdge>();
    if (has_flow_ || has_edges_ || has_groups_) classes_ = ValueClasses(module, edges_, bare);
    index_uses();
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
      run_rounds(priorities);
    }
  }

  int64_t visits() const { return visits_; }
  const std::vector<std::pair<OpId, DataFlowEdge>>& edges() const { return edges_.all(); }
  int64_t distinct_visits() const {
    int64_t count = 0;
    for (const auto& cache : caches_) count += cache ? static_cast<int64_t>(cache->size()) : 0;
    return count;
  }

 private:
  struct OpState {
    bool queued = false;
    bool dead = false;
  };

  void run_rounds(Priorities priorities) {
    changed_ = true;
    for (round_ = priorities == Priorities::kNone ? kLastRound : 0; round_ < kRounds; ++round_) {
      propagate_results();
      sweep();
      while (setting_ == Setting::kPipeline && round_ == kLastRound && missed_) sweep();
      propagate_results();
    }
  }

  // All that has to be known of every op, in one walk: of a million ops, each walk is one through the memory.
  void collect(RegionId region) {
    for (OpId id : module_.region(region).ops) {
      order_.push_back(id);
      const Traits& traits = module_.op(id).def->traits;
      has_edges_ = has_edges_ || traits.data_flow_edge;
      has_groups_ = has_groups_ || traits.sharding_group;
      has_flow_ = has_flow_ || module_.op(id).def->flow != nullptr;
      for (ValueId operand : module_.operands(id)) ++live_uses_[operand.index];
      for (RegionId inner : module_.regions(id)) collect(inner);
    }
    for (ValueId result : module_.region(region).results) ++live_uses_[result.index];
  }

  // A counting sort filled from the back: the users of a value come last one first, which is the order of
  // notifications.
  void index_uses() {
    for_each_use([&](ValueId value, OpId) { ++use_begin_[value.index]; });
    uint32_t total = 0;
    for (uint32_t& end : use_begin_) end = total += end;
    users_.resize(total);
    for_each_use([&](ValueId value, OpId user) { users_[--use_begin_[value.index]] = user; });
  }

  // In the order of the program, bodies behind their op.
  template <class Visit>
  void for_each_use(Visit visit) const {
    if (edges_.empty()) {
      for (OpId id : order_) {
        for (ValueId operand : static_cast<const Module&>(module_).operands(id)) visit(operand, id);
      }
      return;
    }
    std::unordered_map<OpId, std::vector<OpId>> edges_of_op;
    for (const auto& [id, known] : edges_.all()) {
      const Value& owner = module_.value(known.owner);
      edges_of_op[owner.op ? owner.op : module_.region(owner.region).op].push_back(id);
    }
    for (auto& [op, edges] : edges_of_op) {
      std::ranges::stable_sort(edges, {}, [&](OpId id) { return place_of(*edge(id)); });
    }
    for (const Function& function : module_.functions) for_each_use(function.body, edges_of_op, visit);
  }

  // Which operand of its op an edge hears, or which of the values that a body of it returns.
  uint32_t place_of(const DataFlowEdge& edge) const { return module_.value(edge.owner).index; }

  // What an edge hears is used where its op, or the end of a body of it, uses the value.
  template <class Visit>
  void for_each_use(RegionId region, const std::unordered_map<OpId, std::vector<OpId>>& edges_of_op,
                    Visit& visit) const {
    const Module& module = module_;
    for (OpId id : module.region(region).ops) {
      const auto known = edges_of_op.find(id);
      const auto hears = [&](std::span<const ValueId> values) {
        if (known == edges_of_op.end()) return;
        for (OpId heard_by : known->second) {
          const DataFlowEdge& hearing = *edge(heard_by);
          const uint32_t place = place_of(hearing);
          if (place >= values.size() || values[place] == hearing.owner) continue;
          const bool is_source = std::ranges::find(hearing.sources, values[place]) != hearing.sources.end();
          if (is_source) visit(values[place], heard_by);
        }
      };
      const auto by_op = [&] {
        const DataFlowEdge* own = edge(id);
        const bool is_identity = own != nullptr && own->sources.size() == 1 && own->sources[0] == own->owner;
        if (own == nullptr || is_identity) {
          for (ValueId operand : module.operands(id)) visit(operand, id);
        }
        hears(module.operands(id));
      };
      if (setting_ == Setting::kPipeline) by_op();
      for (RegionId inner : module.regions(id)) {
        for_each_use(inner, edges_of_op, visit);
        hears(module.region(inner).results);
      }
      if (setting_ == Setting::kAlone) by_op();
    }
  }

  // What is known of an edge from the start is known of all that it stands for.
  void start_edges() {
    for (const auto& [op, edge] : edges_.all()) start(op, edge, module_.value(module_.result(op)).sharding);
  }

  void start(OpId op, const DataFlowEdge& edge, ShardingId sharding) {
    for (const ValueId target : edge.targets) {
      ShardingId& known = module_.value(target).sharding;
      if (target == edge.owner || known == sharding) continue;
      record(op, target, edge.sources.size(), known, sharding);
      known = sharding;
    }
  }

  const DataFlowEdge* edge(OpId id) const {
    return module_.op(id).def->traits.data_flow_edge ? edges_.find(id) : nullptr;
  }

  // The values that an op hears: its operands, and those that reach the value behind an edge.
  std::span<const ValueId> sources(OpId id) const {
    const DataFlowEdge* known = edge(id);
    return known != nullptr ? std::span<const ValueId>(known->sources)
                            : static_cast<const Module&>(module_).operands(id);
  }

  std::span<const OpId> users(ValueId value) const {
    const uint32_t begin = use_begin_[value.index];
    return std::span<const OpId>(users_).subspan(begin, use_begin_[value.index + 1] - begin);
  }

  // Top down; the ops that a change brings back go first.
  void sweep() {
    missed_ = false;
    stack_.clear();
    for (auto op = order_.rbegin(); op != order_.rend(); ++op) push(*op);
    while (!stack_.empty()) {
      const OpId id = stack_.back();
      stack_.pop_back();
      states_[id.index].queued = false;
      if (!states_[id.index].dead && !remove_if_unused(id)) visit(id);
    }
  }

  // An op without users, unless it is a constraint, says nothing any more from the moment the sweep finds it; then the
  // ops before it may be next.
  bool remove_if_unused(OpId id) {
    const Operation& op = module_.op(id);
    if (op.result_count == 0) return false;
    for (uint32_t i = 0; i < op.result_count; ++i) {
      if (live_uses_[op.first_result + i] != 0) return false;
    }
    if (has_effect(module_, id, UnusedConstraints::kKeep)) return false;
    remove(id);
    return true;
  }

  // With what is in its regions.
  void remove(OpId id) {
    states_[id.index].dead = true;
    for (RegionId inner : module_.regions(id)) {
      for (ValueId result : module_.region(inner).results) --live_uses_[result.index];
      for (OpId op : module_.region(inner).ops) {
        if (!states_[op.index].dead) remove(op);
      }
    }
    for (ValueId operand : module_.operands(id)) {
      --live_uses_[operand.index];
      if (const OpId defining = module_.value(operand).op; defining && has_at_most_one_user(operand)) push(defining);
    }
  }

  // MLIR's rewriter looks again at what it thinks may go next, and with it Shardy.
  bool has_at_most_one_user(ValueId value) const {
    OpId only;
    uint32_t uses = 0;
    for (OpId user : users(value)) {
      if (states_[user.index].dead || module_.op(user).def->traits.data_flow_edge) continue;
      if (only && user != only) return false;
      only = user;
      ++uses;
    }
    return !only || live_uses_[value.index] <= uses;  // what is left are results of the region
  }

  void push(OpId id) {
    OpState& state = states_[id.index];
    if (state.queued || state.dead) return;
    state.queued = true;
    stack_.push_back(id);
  }

  bool shares_operands(OpId id) const {
    return std::ranges::any_of(module_.operands(id), [&](ValueId operand) {
      return live_uses_[operand.index] > 1 && !module_.type(operand).shape.empty();
    });
  }

  const ShardingRule& rule(OpId id) {
    const ShardingRule*& known = rules_[id.index];
    if (known == nullptr) known = &context_.propagation_rule(OpView(module_, id), conservative_);
    return *known;
  }

  void visit(OpId id) {
    const Operation& op = module_.op(id);
    if (op.def->flow != nullptr) return;  // its edges speak
    const Participation part = participation(OpView(module_, id), round_, round_ == 0 && shares_operands(id));
    if (part.direction == Direction::kNone) return;
    if (op.def->traits.data_flow_edge) return visit_edge(id, part);
    tensors_.clear();
    bool any = false;
    for (ValueId operand : module_.operands(id)) tensors_.push_back(operand);
    for (uint32_t i = 0; i < op.result_count; ++i) tensors_.push_back(module_.result(id, i));
    before_.clear();
    for (ValueId tensor : tensors_) {
      before_.push_back(module_.value(tensor).sharding);
      any = any || before_.back();
    }
    if (!any || tensors_.size() < 2) return;
    const ShardingRule& op_rule = rule(id);
    if (op_rule.empty()) return;
    begin_visit();
    const uint32_t* after = propagated(op_rule, part, is_elementwise(OpView(module_, id)) || op.def->traits.constraint);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const ShardingId grown{after[t]};
      if (grown != before_[t]) set_sharding(id, t, grown);
    }
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
    const DataFlowEdge& edge = *edges_.find(id);
    tensors_.assign(edge.sources.begin(), edge.sources.end());
    tensors_.push_back(module_.result(id));
    before_.clear();
    for (ValueId tensor : tensors_) before_.push_back(module_.value(tensor).sharding);
    before_.back() = seen_from_sources(edge, before_.back());
    if (std::ranges::none_of(before_, [](ShardingId sharding) { return static_cast<bool>(sharding); })) return;
    begin_visit();
    const ShardingRule& identity = identities_.of(module_.value(tensors_.back()).type, edge.sources.size());
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

  void set_sharding(OpId id, size_t tensor, ShardingId sharding) {
    const ValueId value = tensors_[tensor];
    const std::span<const ValueId> members = classes_.members(value);
    if (members.empty()) return set_sharding(id, tensor, value, sharding);
    for (const ValueId member : members) {
      if (classes_.is_quiet(member)) {
        assign(id, tensor, member, sharding);
      } else {
        set_sharding(id, tensor, member, sharding);
      }
    }
  }

  void assign(OpId id, size_t tensor, ValueId target, ShardingId sharding) {
    Value& value = module_.value(target);
    record(id, target, tensor, value.sharding, sharding);
    value.sharding = sharding;
    changed_ = true;
  }

  void set_sharding(OpId id, size_t tensor, ValueId target, ShardingId sharding) {
    assign(id, tensor, target, sharding);
    const Value& value = module_.value(target);
    if (value.op && value.op != id) push(value.op);
    for (OpId user : users(target)) {
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
    const DataFlowEdge* known = edge(id);
    return known != nullptr && !module_.value(known->owner).op;
  }

  // What before_ becomes under `rule`.
  const uint32_t* propagated(const ShardingRule& op_rule, Participation part, bool elementwise) {
    return propagated(op_rule, part, elementwise, conservative_);
  }
  const uint32_t* propagated(const ShardingRule& op_rule, Participation part, bool elementwise, bool conservative) {
    const size_t kind =
        4 * static_cast<size_t>(part.direction) + (part.pass_through_only ? 2 : 0) + (conservative ? 1 : 0);
    std::optional<VisitCache>& cache = caches_[kind];
    if (!cache) cache.emplace();
    if (const uint32_t* known = cache->find(&op_rule, before_)) return known;
    after_.assign(before_.begin(), before_.end());
    if (const MeshPtr* mesh = common_mesh(context_, before_)) {
      factors_.hand_on_whole_axes_of(conservative ? mesh->get() : nullptr);
      grow(op_rule, *mesh, part, elementwise);
    }
    cache->insert(&op_rule, before_, after_);
    return cache->find(&op_rule, before_);
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
      after_[t] = context_.intern(grown);
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
      tensors_.assign(1, results[i]);
      before_.assign({module_.value(results[i]).sharding, main.result_shardings[i]});
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
        module_.value(member).sharding = value;
      }
    }
  }

  Module& module_;
  Context& context_;
  std::vector<PropagationStep>& steps_;
  DataFlowEdges edges_;
  ValueClasses classes_;
  FactorPropagation factors_;
  FactorProjection projection_;
  bool has_edges_ = false, has_groups_ = false, has_flow_ = false;
  bool changed_ = true;  // a value, since results were looked at
  bool missed_ = false;  // by an edge that waits for the next sweep
  bool conservative_;
  Setting setting_;
  std::array<std::optional<VisitCache>, 16> caches_;  // by participation
  int round_ = kLastRound;
  int64_t priority_ = 0;
  std::vector<OpId> order_;                 // the program from top to bottom, bodies behind their op
  std::vector<OpState> states_;             // by op
  std::vector<const ShardingRule*> rules_;  // by op
  std::vector<uint32_t> live_uses_;         // by value
  std::vector<uint32_t> use_begin_;         // by value, into users_
  std::vector<OpId> users_;
  std::vector<OpId> stack_;
  IdentityRules identities_;
  // Of the visit at hand.
  std::vector<ValueId> tensors_;
  std::vector<ShardingId> before_, after_;
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
  sync_sharding_groups(module, program.provenance);
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
