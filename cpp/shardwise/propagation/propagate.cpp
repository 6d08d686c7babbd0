// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/op_propagation.h"
#include "shardwise/propagation/propagation_graph.h"
#include "shardwise/propagation/rules_by_op.h"
#include "shardwise/propagation/step_recorder.h"
#include "shardwise/propagation/user_priorities.h"
#include "shardwise/propagation/value_classes.h"
#include "shardwise/propagation/visit_queue.h"

namespace shardwise {
namespace {

// The sharding column of the module, as propagation writes it: with a packed copy, and each change recorded.
class ShardingColumn {
 public:
  ShardingColumn(Module& module, StepRecorder& recorder) : module_(module), recorder_(recorder) {
    known_.reserve(module.value_count());
  }

  // From now on, `set` changes these values only.
  void fix_all_but(std::span<const ValueId> values) {
    is_fixed_.assign(module_.value_count(), true);
    for (const ValueId value : values) is_fixed_[value.index] = false;
  }

  void read() {
    changed_ = true;
    known_.clear();
    for (uint32_t v = 0; v < module_.value_count(); ++v) known_.push_back(module_.value(ValueId{v}).sharding);
  }
  ShardingId operator[](ValueId value) const { return known_[value.index]; }

  bool has_fixed() const { return !is_fixed_.empty(); }
  bool is_fixed(ValueId value) const { return has_fixed() && is_fixed_[value.index]; }

  // Sets the sharding of `value`, tensor `index` of the op. Returns whether it was free to.
  bool set(OpId op, ValueId value, size_t index, ShardingId after) {
    if (is_fixed(value)) return false;
    recorder_.record(op, value, index, after);
    module_.value(value).sharding = known_[value.index] = after;
    changed_ = true;
    return true;
  }

  bool take_changed() { return std::exchange(changed_, false); }  // since the last time

 private:
  Module& module_;
  StepRecorder& recorder_;
  std::vector<ShardingId> known_;  // by value, in a sixth of the memory that values take
  std::vector<bool> is_fixed_;     // by value; empty: none is
  bool changed_ = true;
};

// The tensors of the op at hand, operands first, and their shardings as the op sees them.
struct VisitedTensors {
  std::span<const ValueId> operands;
  ValueId first_result;
  std::vector<ShardingId> before;

  // False when none has a sharding.
  bool read(const ShardingColumn& column, std::span<const ValueId> of_op, ValueId result, uint32_t result_count) {
    operands = of_op;
    first_result = result;
    bool any = false;
    before.clear();
    const auto add = [&](ShardingId sharding) {
      before.push_back(sharding);
      any = any || sharding;
    };
    for (const ValueId operand : operands) add(column[operand]);
    for (uint32_t i = 0; i < result_count; ++i) add(column[ValueId{first_result.index + i}]);
    return any;
  }
  ValueId operator[](size_t index) const {
    if (index < operands.size()) return operands[index];
    return {first_result.index + static_cast<uint32_t>(index - operands.size())};
  }
};

// When a value grows, its defining op is pushed before its users, and so visited after them: the queue is
// last-in, first-out. The op that changed it is not pushed, as in Shardy, but unsettled: it may change more in the next
// sweep. A change by a result of main pushes nothing, because it happens between sweeps.
//
// A visit of a data-flow edge compares the edge as its sources see it: an identity is between values of the same axes.
// In a text without edge ops, as Shardy's module passes read it, the owner of an edge has its sharding.
class Propagation {
 public:
  // `only`: infer the shardings of these values, from those of all others.
  Propagation(Module& module, const CompileOptions& options, Provenance& provenance, VisitOrder visit_order,
              std::optional<std::span<const ValueId>> only = {})
      : module_(module),
        graph_(module, visit_order),
        queue_(module, graph_, !graph_.ties_values()),
        rules_(module, options),
        ops_(module.context(), options),
        recorder_(provenance),
        column_(module, recorder_),
        visit_order_(visit_order),
        state_last_(options.state_last) {
    if (graph_.ties_values()) classes_ = ValueClasses(module, graph_.edges());
    if (only) limit_to(*only);
    // The initial sharding of an edge holds for all its targets.
    for (const auto& [op, edge] : graph_.edges().all()) start(op, edge, module_.value(module_.result(op)).sharding);
    for (const DataFlowEdge& edge : graph_.edges().bare()) {
      if (const Value& owner = module.value(edge.owner); owner.op) start(owner.op, edge, owner.sharding);
    }
  }

  void run(Priorities priorities) {
    UserPriorities user(module_, recorder_);
    if (priorities == Priorities::kUser) user.hold_back();
    if (priorities == Priorities::kUser && state_last_) user.hold_back_state();
    run_rounds(priorities);
    for (const int64_t priority : user.waiting()) {
      user.release(priority);
      queue_.unsettle_all();  // released dims changed without a visit
      run_rounds(priorities);
    }
  }

  int64_t visits() const { return recorder_.visits; }
  const std::vector<std::pair<OpId, DataFlowEdge>>& edges() const { return graph_.edges().all(); }
  int64_t distinct_visits() const { return ops_.distinct(); }

 private:
  void run_rounds(Priorities priorities) {
    column_.read();
    for (int round = priorities == Priorities::kNone ? kLastRound : 0; round < kRounds; ++round) {
      recorder_.begin_round(round);
      propagate_results();
      sweep();
      while (visit_order_ == VisitOrder::kPipeline && round == kLastRound && missed_) sweep();
      propagate_results();
    }
  }

  // Only the ops that make or read these values take part, and no result of main.
  void limit_to(std::span<const ValueId> values) {
    column_.fix_all_but(values);
    queue_.keep_out_all();
    for (const ValueId value : values) {
      if (const OpId maker = module_.value(value).op) queue_.let_in(maker);
      for (const OpId user : graph_.users(value)) queue_.let_in(user);
    }
  }

  void start(OpId op, const DataFlowEdge& edge, ShardingId sharding) {
    for (const ValueId target : edge.targets) {
      ShardingId& known = module_.value(target).sharding;
      if (target == edge.owner || known == sharding || column_.is_fixed(target)) continue;
      recorder_.record(op, target, edge.sources.size(), sharding);
      known = sharding;
    }
  }

  // Top down; the ops that a change brings back go first.
  void sweep() {
    missed_ = false;
    queue_.begin_sweep();
    for (const OpId next : graph_.order()) {
      if (!queue_.is_waiting(next)) continue;  // was brought forward
      take(next);
      while (queue_.has_pushed()) take(queue_.pop());
    }
  }

  // Most ops take no part in the first rounds: they are passed by without a look at the program.
  void take(OpId id) {
    if (!queue_.take(id)) return;  // first: an unused op goes even in a round in which it takes no part
    const PropagationGraph::Role role = graph_.role(id);
    const Participation part = role.order.participation(recorder_.round());
    if (part.direction == Direction::kNone || queue_.is_settled(id, part)) return;
    if (recorder_.round() == 0 && role.order.waits_for_shared() && graph_.shares_operands(id)) return;
    if (role.is_edge) {
      visit_edge(id, part);
    } else {
      visit(id, part, role.order.is_elementwise());
    }
  }

  void visit(OpId id, Participation part, bool elementwise) {
    queue_.settle(id, part);  // unsettled again below if its own tensors grow
    if (!tensors_.read(column_, graph_.operands(id), graph_.first_result(id), graph_.result_count(id))) return;
    const ShardingRule& rule = rules_[id];
    if (tensors_.before.size() < 2 || rule.empty()) return;
    recorder_.begin_visit();
    const uint32_t* after = ops_.after({.rule = rule, .part = part, .elementwise = elementwise}, tensors_.before);
    for (size_t t = 0; t < tensors_.before.size(); ++t) {
      const ShardingId grown{after[t]};
      if (grown != tensors_.before[t]) set_sharding(id, t, grown);
    }
  }

  // Sources and the edge as an identity. A manual region's inside and outside see the edge differently.
  void visit_edge(OpId id, Participation part) {
    const DataFlowEdge& edge = *graph_.edge(id);
    const ValueId result = module_.result(id);
    tensors_.read(column_, edge.sources, result, 1);
    std::vector<ShardingId>& before = tensors_.before;
    before.back() = seen_from_sources(module_.context(), edge, before.back());
    if (std::ranges::none_of(before, [](ShardingId sharding) { return static_cast<bool>(sharding); })) return;
    recorder_.begin_visit();
    const ShardingRule& rule = rules_.identity(module_.value(result).type, edge.sources.size());
    const uint32_t* after = ops_.after({.rule = rule, .part = part}, before);
    for (size_t t = 0; t < edge.sources.size(); ++t) {
      if (const ShardingId grown{after[t]}; grown != before[t]) set_sharding(id, t, grown);
    }
    if (const ShardingId grown{after[edge.sources.size()]}; grown != before.back()) {
      set_sharding(id, edge.sources.size(), seen_from_target(module_.context(), edge, grown));
    }
  }

  void set_sharding(OpId id, size_t index, ShardingId sharding) {
    const ValueId value = tensors_[index];
    const std::span<const ValueId> members = classes_.members(value);
    if (members.empty()) return set_sharding(id, index, value, sharding);
    for (const ValueId member : members) {
      if (classes_.skips_region_users(member)) {
        column_.set(id, member, index, sharding);
      } else {
        set_sharding(id, index, member, sharding);
      }
    }
  }

  void set_sharding(OpId id, size_t index, ValueId target, ShardingId sharding) {
    const Value& value = module_.value(target);
    if (!column_.set(id, target, index, sharding)) return;
    if (value.op && value.op != id) queue_.push(value.op);
    queue_.unsettle(id);
    for (OpId user : graph_.users(target)) {
      if (user == id) continue;
      if (graph_.waits_for_next_sweep(user)) {
        missed_ = true;
      } else {
        queue_.push(user);
      }
    }
  }

  // The results of main as identities from the values returned, unless nothing has changed since the last time.
  void propagate_results() {
    if (column_.has_fixed() || !column_.take_changed()) return;
    Function& main = module_.main();
    const std::vector<ValueId>& results = module_.region(main.body).results;
    main.result_shardings.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const std::array before{column_[results[i]], main.result_shardings[i]};
      if (!before[0] && !before[1]) continue;
      recorder_.begin_return();
      const ShardingRule& rule = rules_.identity(module_.value(results[i]).type, 1);
      const uint32_t* after = ops_.after({.rule = rule, .elementwise = true, .is_return = true}, before);
      const ShardingId value{after[0]}, result{after[1]};
      if (result != before[1]) {
        recorder_.record({}, {}, i, result);
        main.result_shardings[i] = result;
      }
      if (value != before[0]) set_returned(results[i], i, value);
    }
  }

  void set_returned(ValueId returned, size_t index, ShardingId after) {
    const std::span<const ValueId> members = classes_.members(returned);
    for (const ValueId member : members.empty() ? std::span(&returned, 1) : members) {
      column_.set({}, member, index, after);
      if (const OpId defining = module_.value(member).op) queue_.unsettle(defining);
      for (OpId user : graph_.users(member)) queue_.unsettle(user);
    }
  }

  Module& module_;
  PropagationGraph graph_;
  ValueClasses classes_;
  VisitQueue queue_;
  RulesByOp rules_;
  OpPropagation ops_;
  StepRecorder recorder_;
  ShardingColumn column_;
  VisitOrder visit_order_;
  bool state_last_;
  VisitedTensors tensors_;
  bool missed_ = false;  // a change, by an edge that waits for the next sweep
};

}  // namespace

void propagate_shardings(Module& module, PassContext& context, Strategy strategy, Priorities priorities,
                         VisitOrder visit_order) {
  Provenance& provenance = context.provenance;
#ifndef SHARDWISE_NO_PROVENANCE
  provenance.steps.reserve(module.value_count());  // one for most values
#endif
  // why() replays visits with the options that they ran with.
  provenance.options = context.options;
  provenance.options.strategy = strategy;
  Propagation propagation(module, provenance.options, provenance, visit_order);
  propagation.run(priorities);
  provenance.edges = propagation.edges();
  context.counters.add("propagate.visits", propagation.visits());
  context.counters.add("propagate.distinct_visits", propagation.distinct_visits());
  context.counters.add("propagate.steps", static_cast<int64_t>(provenance.steps.size()));
}

void propagate_into(Module& module, const CompileOptions& options, std::span<const ValueId> values) {
  Provenance unread;  // why() explains the propagation before
  Propagation(module, options, unread, VisitOrder::kPipeline, values).run(Priorities::kOps);
}

}  // namespace shardwise
