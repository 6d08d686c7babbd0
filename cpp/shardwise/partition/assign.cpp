// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/assign.h"

#include <algorithm>

#include "shardwise/choice/unify_meshes.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/partition/op_choice.h"
#include "shardwise/partition/open_loops.h"
#include "shardwise/partition/placed_ops.h"
#include "shardwise/partition/regions_in_progress.h"

namespace shardwise {
namespace {

// The trips of a loop that does not count: enough for a reshard before it to be worth more than one in it.
constexpr int64_t kAssumedTrips = 16;

class Assignment {
 public:
  Assignment(Module& module, PassContext& context)
      : source_(module),
        calls_(module),
        target_(empty_copy(source_, calls_)),
        builder_(target_, target_.main().body),
        planner_(module.context()),
        placements_(module),
        values_(source_, builder_, planner_, placements_, {"sources", &Choices::sources, context}),
        chooser_(module, values_, placements_, planner_, context),
        accumulators_(module, values_, placements_, planner_, chooser_, {"carries", &Choices::carries, context}),
        loops_(module),
        ops_(source_, builder_, values_, placements_),
        regions_(source_, builder_, values_, placements_) {}

  Module run(Counters& counters) {
    for (const size_t f : calls_.reached()) add_function(source_.functions[f]);
    counters.add("assign.plans", planner_.plans());
    counters.add("assign.new_plans", planner_.new_plans());
    target_.stage = Stage::kAssigned;
    return std::move(target_);
  }

 private:
  TypeId type_of(ValueId value) const { return source_.value(value).type; }

  // The arguments and results of a function have the placements that propagation gave to them.
  void add_function(const Function& function) {
    Function& made = *std::ranges::find(target_.functions, function.name, &Function::name);
    regions_.enter_function(function, made);
    chooser_.enter_function(function);
    for (const OpId id : source_.region(function.body).ops) add_op(OpView(source_, id));
    regions_.leave_function(function, made);
  }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    if (is_call(source_, op.id())) {
      add_call(op);
    } else if (op.def().regions == Regions::kLoop) {
      add_loop(op);
    } else if (op.def().regions == Regions::kBranches) {
      add_branches(op);
    } else if (traits.constraint || traits.reshard) {
      // A user of the annotated value may start from the version before the annotation, if that is nearer.
      values_.add_alias(op.result(), op.operand(0), {traits.constraint ? Cause::kAnnotation : Cause::kReshard});
    } else if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) {
      // Made where it is used, in the placement that the user needs: that sends nothing.
      values_.add_constant(op);
    } else {
      const ShardingRule& rule = sharding_rule(op);
      // Nothing is known about the dims of an op without a rule, so each device computes all of it.
      if (rule.empty()) return ops_.add_replicated(op);
      ops_.add_by_rule(op, rule, chooser_.choose(op, rule));
    }
  }

  void add_call(const OpView& op) {
    const Function& called = source_.functions[calls_.callee(op.id())];
    const std::vector<ValueId>& arguments = source_.region(called.body).arguments;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Cause cause{.kind = Cause::kArgument, .of = called.name, .index = i};
      operands.push_back(values_.get(op.operand(i), placements_.declared(arguments[i]), cause));
    }
    const OpId made = ops_.create(op, operands, {});
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)), placements_.result(called, i));
    }
  }

  // The predicate is replicated: all devices take the same branch. The result of every branch has the placement that
  // propagation gave to the result of the op.
  void add_branches(const OpView& op) {
    const ValueId predicate = op.operand(0);
    const ValueId operand = values_.get(predicate, placements_.replicated(type_of(predicate)), operand_cause(op, 0));
    std::vector<PlacementId> placements;
    for (size_t i = 0; i < op.result_count(); ++i) placements.push_back(placements_.declared(op.result(i)));
    std::vector<RegionId> regions;
    for (const RegionId branch : op.regions()) {
      regions_.enter(op, branch, 1);
      for (const OpId id : source_.region(branch).ops) add_op(OpView(source_, id));
      regions.push_back(regions_.leave(op, branch, placements));
    }
    const OpId made = ops_.create(op, std::span(&operand, 1), regions);
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)), placements[i]);
    }
  }

  // A carry has the placement that propagation gave to the result of the loop, unless it stays unreduced.
  void add_loop(const OpView& op) {
    const auto trips = trip_count(op);
    // At least 2, because PlacedValues takes a region of one trip for a branch.
    loops_.enter(op, std::max(static_cast<double>(trips.value_or(kAssumedTrips)), 2.0), placements_);
    share_reductions();
    std::vector<ValueId> operands(op.operand_count());
    const auto add_operand = [&](size_t i, PlacementId carry) {
      operands[i] = values_.get(op.operand(i), values_.entry(op.operand(i), carry), operand_cause(op, i));
    };
    const std::vector<OpenLoop::Carry> declared = loops_.innermost().carries;
    for (size_t i = 0; i < operands.size(); ++i) {
      // The entries of accumulators come after the body, which decides how they are placed.
      if (!loops_.innermost().accumulates(i)) add_operand(i, declared[i].placement);
    }
    const RegionId regions[] = {add_condition(op), add_body(op)};
    const OpenLoop loop = loops_.leave();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (loop.accumulates(i)) add_operand(i, loop.carries[i].placement);
    }
    const OpId made = ops_.create(op, operands, regions);
    for (size_t i = 0; i < op.result_count(); ++i) {
      const OpenLoop::Carry& carry = loop.carries[i];
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)), carry.placement, carry.pending_cause,
                  carry.pending_loc);
    }
  }

  // A reduction after the loop serves all of its trips.
  void share_reductions() {
    const OpenLoop& loop = loops_.innermost();
    double share = 0;
    for (const Accumulator& accumulator : loop.accumulators) {
      const AccumulatorSite site = loops_.site(accumulator.carry);
      // The value may reach any of the accumulators, so it is priced by the one that is reduced most often.
      share = std::max(share, chooser_.share(site.result) / site.trips);
    }
    for (const ValueId value : find_deferred(source_, loop.op, loop.accumulators)) chooser_.set_share(value, share);
  }

  RegionId add_condition(const OpView& op) {
    const RegionId condition = loop_parts(op).condition;
    regions_.enter(op, condition, loops_.innermost().trips);
    for (const OpId id : source_.region(condition).ops) add_op(OpView(source_, id));
    return regions_.leave_condition(op, condition);
  }

  RegionId add_body(const OpView& op) {
    const RegionId body = loop_parts(op).body;
    regions_.enter(op, body, loops_.innermost().trips);
    for (const OpId id : source_.region(body).ops) {
      const Accumulator* accumulator = loops_.innermost().accumulator_with(id);
      if (accumulator == nullptr) {
        add_op(OpView(source_, id));
      } else if (accumulator->ops.back() == id) {
        add_accumulator(*accumulator);
      }
    }
    std::vector<PlacementId> placements;
    for (const OpenLoop::Carry& carry : loops_.innermost().carries) placements.push_back(carry.placement);
    return regions_.leave(op, body, placements);
  }

  // All of its ops together: the placement of the carry depends on those of all addends.
  void add_accumulator(const Accumulator& accumulator) {
    const OpView loop = loops_.innermost().op;
    const auto choice = accumulators_.choose(loop, accumulator, loops_.site(accumulator.carry));
    if (choice) place_carry(accumulator.carry, *choice);
    for (size_t i = 0; i < accumulator.ops.size(); ++i) {
      const OpView op(source_, accumulator.ops[i]);
      if (!choice) {
        add_op(op);
        continue;
      }
      builder_.set_loc(op.loc(), source_.op(op.id()).origin);
      ops_.add_by_rule(op, sharding_rule(op), choice->ops[i]);
    }
  }

  void place_carry(size_t carry, const AccumulatorChoice& choice) {
    Cause cause = values_.pending_cause(choice.addend);
    cause.is_after_loop = true;
    const LocId loc = values_.pending_loc(choice.addend);
    loops_.visit_relays(carry, [&](OpenLoop& loop, size_t of_loop) {
      loop.carries[of_loop] = {choice.carry, cause, loc};
      for (const RegionId region : loop.op.regions()) {
        values_.move_home(source_.region(region).arguments[of_loop], choice.carry, cause, loc);
      }
    });
  }

  Module& source_;
  const CallGraph calls_;
  Module target_;
  Builder builder_;
  ReshardPlanner planner_;
  ProgramPlacements placements_;
  PlacedValues values_;
  OpChooser chooser_;
  AccumulatorChooser accumulators_;
  OpenLoops loops_;
  PlacedOps ops_;
  RegionsInProgress regions_;
};

}  // namespace

Module assign(Module module, PassContext& context) {
  context.choices.ops.reserve(module.op_count());  // most ops are chosen
  // Before placements are read: afterwards, only real differences of meshes are left.
  unify_meshes(module);
  Module assigned = Assignment(module, context).run(context.counters);
  check_all_made("ops", &Choices::ops, context);
  check_all_made("sources", &Choices::sources, context);
  check_all_made("carries", &Choices::carries, context);
  return assigned;
}

}  // namespace shardwise
