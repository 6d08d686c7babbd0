// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/plan_reshards.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/choice/reshard_planner.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

struct CollectiveForm {
  std::string_view name;
  Attrs attrs;
};

CollectiveForm form_of(const Mesh& mesh, const ReshardStep& step) {
  switch (step.move) {
    case ReshardMove::kSlice: return {"sdy.all_slice", {{"slicing_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kAllGather: return {"sdy.all_gather", {{"gathering_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kReduceScatter:
      return {"sdy.reduce_scatter", {{"reduce_scatter_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kAllReduce: {
      const AxisList axes = sort_and_merge(step.reduced);
      return {"sdy.all_reduce", {{"reduction_axes", AxesAttr{to_raw(mesh, axes)}}}};
    }
    case ReshardMove::kPermute: return {"sdy.collective_permute", {}};
    case ReshardMove::kExchange: return {"shardwise.exchange", {}};
    case ReshardMove::kAllToAll: break;
  }
  return {"sdy.all_to_all", {{"params", moves_attr(mesh, step.dim_moves)}}};
}

std::vector<std::string> moves_of(const ReshardPlan& plan) {
  std::vector<std::string> moves;
  for (const ReshardStep& step : plan.steps) moves.emplace_back(move_name(step.move));
  return moves;
}

// The plans of reshards while they are chosen: the best one each, or the one that is pinned.
class PlanChoices {
 public:
  explicit PlanChoices(PassContext& context)
      : made_(choice_of(context).plans), pinned_(pinned_entries("plans", &Choices::plans, context)) {
    made_.clear();
  }

  ReshardPlan next(const OpView& reshard, ReshardPlanner& planner, ProgramPlacements& placements) {
    const Module& module = reshard.module();
    const std::string at = keys_.next(module.op(reshard.id()).origin);
    const TypeId type = module.value(reshard.result()).type;
    const PlacementId from = placements.at(reshard.operand(0)), to = placements.at(reshard.result());
    const ChosenPlan* pinned = pinned_.take(at);
    std::optional<ReshardPlan> plan =
        pinned == nullptr ? planner.plan(type, from, to) : planner.plan_with_moves(type, from, to, pinned->moves);
    if (!plan) {
      const auto text = [](const std::vector<std::string>& moves) {
        return moves.empty() ? std::string("no collective") : join(moves, ", ");
      };
      fail_as_impossible(
          module, reshard.id(),
          {.kind = "plans",
           .at = at,
           .pinned = str(text(pinned->moves), " from ", placements.text(from), " to ", placements.text(to)),
           .possible = text(moves_of(planner.plan(type, from, to)))});
    }
    made_.push_back({at, moves_of(*plan)});
    return *std::move(plan);
  }
  void check_pins() const { pinned_.check_all_taken(); }

 private:
  std::vector<ChosenPlan>& made_;
  PinnedEntries<ChosenPlan> pinned_;
  DecisionKeys keys_;
};

// Emits the steps of the plan for one reshard; returns the resharded value.
ValueId emit(Builder& builder, PlanChoices& choices, ReshardPlanner& planner, ProgramPlacements& placements,
             const OpView& reshard) {
  Module& module = builder.module();
  Context& context = module.context();
  const ValueId operand = reshard.operand(0);
  const Value result = module.value(reshard.result());
  const ReshardPlan plan = choices.next(reshard, planner, placements);
  const std::string* cause = reshard.attrs().find<std::string>(kCauseAttr);
  const Placement* before = placements.find(placements.at(operand));
  ValueId value = operand;
  for (const ReshardStep& step : plan.steps) {
    CollectiveForm form = form_of(*step.after.mesh, step);
    if (cause != nullptr) form.attrs.set(kCauseAttr, *cause);
    value = builder.create(form.name, {value}, form.attrs);
    module.value(value).sharding = context.intern(sharding_of(step.after));
    module.value(value).origin = result.origin;
    Placement after = step.after;
    after.is_owned = before->is_owned && !after.unreduced.empty();
    // Later steps and localization must use the same blocks as the plan.
    if (after.is_owned || !after.has_default_blocks(context.type(result.type).shape)) {
      module.set_part(value, {.type = {}, .placement = context.intern(after), .padding = {}});
    }
  }
  return value;
}

}  // namespace

Module plan_reshards(Module module, PassContext& context) {
  ReshardPlanner planner(module.context(), context.options);
  ProgramPlacements placements(module);
  PlanChoices choices(context);
  Rewrite rewrite(module);
  for (const OpId id : find_ops(module, [&](OpId op) { return module.op(op).def->traits.reshard; })) {
    const OpView op(module, id);
    const ValueId moved = rewrite.insert(rewrite.before(id), op.loc(), [&](Builder& builder) {
      builder.set_loc(op.loc(), module.op(id).origin);
      return emit(builder, choices, planner, placements, op);
    });
    rewrite.replace(id, std::span(&moved, 1));
  }
  rewrite.commit();
  choices.check_pins();
  context.counters.add("plan_reshards.plans", planner.plans());
  context.counters.add("plan_reshards.new_plans", planner.new_plans());
  if (module.stage == Stage::kAssigned) module.stage = Stage::kResharded;
  return module;
}

}  // namespace shardwise
