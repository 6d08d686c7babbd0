// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/greedy_walk.h"

#include <algorithm>

#include "shardwise/analysis/executions.h"
#include "shardwise/choice/greedy/op_chooser.h"
#include "shardwise/choice/greedy/open_loops.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// A reduction after the innermost loop serves all of its trips.
void defer_reductions(OpenLoops& loops, DeferredReductions& deferred) {
  const OpenLoop& loop = loops.innermost();
  double share = 0;
  for (const Accumulator& accumulator : loop.accumulators) {
    const AccumulatorSite site = loops.site(accumulator.carry);
    share = std::max(share, deferred.share(site.result) / site.trips);
  }
  deferred.add_loop(loop.op, loop.accumulators, share);
}

// None if an operand cannot be brought to where the op would take it.
const OpChoice* given_choice(const GivenChoices& given, const Versions& versions, const OpView& op) {
  const auto found = given.find(op.id());
  if (found == given.end()) return nullptr;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!versions.can_be_brought(op.operand(i), found->second.operands[i])) return nullptr;
  }
  return &found->second;
}

// Whether an operand would be reduced for a given choice in each trip of a loop that may add up its parts: what is given knows no
// accumulators.
bool reduces_in_trips(const OpView& op, const OpChoice& given, const Versions& versions,
                      const ProgramPlacements& placements) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Placement* home = placements.find(versions.home(op.operand(i), {}));
    const Placement* taken = placements.find(given.operands[i]);
    if (home != nullptr && taken != nullptr && !home->unreduced.empty() && taken->unreduced.empty()) return true;
  }
  return false;
}

void need_results(const Module& module, const Function& function, ProgramPlacements& placements, Versions& versions) {
  const std::vector<ValueId>& results = module.region(function.body).results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!placements.is_open(results[i])) versions.need(results[i], placements.result(function, i));
  }
}

class GreedyWalk {
 public:
  GreedyWalk(const WalkedProgram& program, CandidateScope scope, PassContext& context, const GivenChoices& given)
      : given_(given),
        module_(program.module),
        calls_(program.calls),
        placements_(program.placements),
        choice_(module_, program.keys, placements_, program.costs.hardware(), context),
        versions_(module_, program.costs, placements_, choice_),
        deferred_(module_, program.linearity),
        chooser_(program, versions_, choice_, deferred_, scope),
        accumulators_(module_, program.linearity, versions_, placements_, program.costs, choice_, deferred_),
        loops_(module_, program.linearity) {}

  void run() {
    for (const size_t f : calls_.reached()) add_function(module_.functions[f]);
    choice_.check_pins();
  }

 private:
  // The arguments and results of a function have the placements that propagation gave to them. The caller of main may
  // pass unreduced values; a call reduces its operands.
  void add_function(const Function& function) {
    versions_.enter_function(function.body);
    chooser_.enter_function(function);
    for (const ValueId argument : module_.region(function.body).arguments) {
      const Value& known = module_.value(argument);
      const bool is_of_main = &function == &module_.main();
      versions_.add(argument, is_of_main ? placements_.of(known.sharding, known.type) : placements_.declared(argument));
    }
    add_ops(function.body);
    need_results(module_, function, placements_, versions_);
  }

  void add_ops(RegionId region) {
    for (const OpId id : module_.region(region).ops) add_op(OpView(module_, id));
  }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    if (is_call(module_, op.id())) return add_call(op);
    if (op.def().regions == Regions::kLoop) return add_loop(op);
    if (op.def().regions == Regions::kBranches) return add_branches(op);
    if (traits.annotates()) return annotate(op, placements_.annotated(op.result(), versions_.home(op.operand(0), {})));
    // Made where it is used, in the placement that the user needs: that sends nothing.
    if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) return versions_.add_constant(op);
    const ShardingRule& rule = sharding_rule(op);
    // Nothing is known about the dims of an op without a rule, so each device computes all of it.
    if (rule.empty()) return place(op, replicated_choice(placements_, op));
    choice_.add_name(op.id());
    const OpChoice* given = given_choice(given_, versions_, op);
    const bool is_deferred = op.result_count() == 1 && deferred_.share(op.result()) < 1;
    if (given != nullptr && is_deferred && reduces_in_trips(op, *given, versions_, placements_)) given = nullptr;
    place(op, given != nullptr ? *given : chooser_.choose(op, rule));
  }

  // The operands come to where the op takes them, and its results are where it makes them.
  void place(const OpView& op, OpChoice choice) {
    for (size_t i = 0; i < op.operand_count(); ++i) versions_.need(op.operand(i), choice.operands[i]);
    // A wide sum ends here: a narrow value that stayed unreduced would round its addends.
    const bool is_wide = has_wide_addends(placements_, op, choice);
    for (size_t i = 0; i < op.result_count(); ++i) {
      versions_.add(op.result(i), is_wide ? placements_.declared(op.result(i)) : choice.results[i]);
    }
    choice_.add(op.id(), std::move(choice));
  }

  // A user of the annotated value may start from the version before the annotation, if that is nearer.
  void annotate(const OpView& op, PlacementId placement) {
    versions_.add_alias(op.result(), op.operand(0), placement);
    choice_.add(op.id(), {.operands = {placement}, .results = {placement}});
  }

  void add_call(const OpView& op) {
    const Function& called = module_.functions[calls_.callee(op.id())];
    OpChoice choice;
    for (const ValueId argument : module_.region(called.body).arguments) {
      choice.operands.push_back(placements_.declared(argument));
    }
    for (size_t i = 0; i < op.result_count(); ++i) choice.results.push_back(placements_.result(called, i));
    place(op, std::move(choice));
  }

  // The predicate is replicated: all devices take the same branch. The result of every branch has the placement that
  // propagation gave to the result of the op.
  void add_branches(const OpView& op) {
    OpChoice choice{.operands = {placements_.replicated(module_.value(op.operand(0)).type)}, .results = {}};
    versions_.need(op.operand(0), choice.operands[0]);
    for (size_t i = 0; i < op.result_count(); ++i) choice.results.push_back(placements_.declared(op.result(i)));
    for (const RegionId branch : op.regions()) {
      versions_.enter_branch(branch);
      add_ops(branch);
      leave(branch, choice.results);
    }
    for (size_t i = 0; i < op.result_count(); ++i) versions_.add(op.result(i), choice.results[i]);
    choice_.add(op.id(), std::move(choice));
  }

  // The results of a region have these placements.
  void leave(RegionId region, const std::vector<PlacementId>& placements) {
    const std::vector<ValueId>& results = module_.region(region).results;
    for (size_t i = 0; i < results.size(); ++i) versions_.need(results[i], placements[i]);
    versions_.leave();
  }

  // A carry has the placement that propagation gave to the result of the loop, unless it stays unreduced.
  void add_loop(const OpView& op) {
    // A loop of one trip counts as two, so that what may stand before it does.
    loops_.enter(op, std::max(static_cast<double>(expected_trips(op)), 2.0), placements_);
    defer_reductions(loops_, deferred_);
    OpChoice choice{.operands = std::vector<PlacementId>(op.operand_count()), .results = {}};
    const auto bring_entry = [&](size_t i, PlacementId carry) {
      choice.operands[i] = versions_.entry(op.operand(i), carry);
      versions_.need(op.operand(i), choice.operands[i]);
    };
    const std::vector<PlacementId> declared = loops_.innermost().carries;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      // The entries of accumulators come after the body, which decides how they are placed.
      if (!loops_.innermost().accumulates(i)) bring_entry(i, declared[i]);
    }
    add_condition(op);
    add_body(op);
    const OpenLoop loop = loops_.leave();
    std::vector<CarryChoice>& carries = choice_.loop(op.id());
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (loop.accumulates(i)) bring_entry(i, loop.carries[i]);
      carries.push_back({.accumulates = loop.accumulates(i), .addend = loop.addends[i]});
      versions_.add(op.result(i), loop.carries[i]);
    }
    choice.results = loop.carries;
    choice_.add(op.id(), std::move(choice));
  }

  void enter(const OpView& loop, RegionId region) {
    versions_.enter_loop(region, loops_.innermost().trips);
    const std::vector<ValueId>& arguments = module_.region(region).arguments;
    for (size_t i = 0; i < arguments.size(); ++i) versions_.add(arguments[i], placements_.declared(loop.result(i)));
  }

  void add_condition(const OpView& op) {
    const RegionId condition = loop_parts(op).condition;
    enter(op, condition);
    add_ops(condition);
    const ValueId predicate = module_.region(condition).results[0];
    // Whole, so that all devices leave the loop together: a collective in it waits for each of them.
    leave(condition, {placements_.replicated(module_.value(predicate).type)});
  }

  void add_body(const OpView& op) {
    const RegionId body = loop_parts(op).body;
    enter(op, body);
    for (const OpId id : module_.region(body).ops) {
      const Accumulator* accumulator = loops_.innermost().accumulator_with(id);
      if (accumulator == nullptr) {
        add_op(OpView(module_, id));
      } else if (accumulator->ops.back() == id) {
        add_accumulator(*accumulator);
      }
    }
    const std::vector<PlacementId> carries = loops_.innermost().carries;
    leave(body, carries);
  }

  // All of its ops together: the placement of the carry depends on those of all addends.
  void add_accumulator(const Accumulator& accumulator) {
    const OpView loop = loops_.innermost().op;
    const auto choice = accumulators_.choose(loop, accumulator, loops_.site(accumulator.carry));
    if (choice) place_carry(accumulator.carry, *choice);
    for (size_t i = 0; i < accumulator.ops.size(); ++i) {
      const OpView op(module_, accumulator.ops[i]);
      if (!choice) {
        add_op(op);
      } else {
        op.def().traits.annotates() ? annotate(op, choice->ops[i].results[0]) : place(op, choice->ops[i]);
      }
    }
  }

  void place_carry(size_t carry, const AccumulatorChoice& choice) {
    loops_.visit_relays(carry, [&](OpenLoop& loop, size_t of_loop) {
      loop.carries[of_loop] = choice.carry;
      loop.addends[of_loop] = choice.addend;
      for (const RegionId region : loop.op.regions()) {
        versions_.move_home(module_.region(region).arguments[of_loop], choice.carry);
      }
    });
  }

  const GivenChoices& given_;
  Module& module_;
  const CallGraph& calls_;
  ProgramPlacements& placements_;
  ChoiceInProgress choice_;
  Versions versions_;
  DeferredReductions deferred_;
  OpChooser chooser_;
  AccumulatorChooser accumulators_;
  OpenLoops loops_;
};

}  // namespace

void greedy_choice(const WalkedProgram& program, CandidateScope scope, PassContext& context,
                   const GivenChoices& given) {
  GreedyWalk(program, scope, context, given).run();
}

}  // namespace shardwise
