// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/runtime/fuse.h"
#include "shardwise/runtime/variation.h"

namespace shardwise {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;

// Step::inputs and outputs are values here; SlotNumbering makes slots of them.
class StepMaker {
 public:
  StepMaker(const Module& module, const std::vector<LocalLayout>& layouts, const Variation& variation,
            const PlanOptions& options)
      : module_(module), variation_(variation), options_(options), body_(module.region(module.main().body)) {
    find_argument_homes(layouts);
  }

  std::vector<Step> run() {
    if (options_.fuse) {
      for (FusedGroup& group : fuse_elementwise(module_, module_.main().body, variation_.varying)) {
        for (OpId op : group.ops) in_chain_[op] = true;
        const OpId root = group.ops.back();
        groups_.emplace(root, std::move(group));
      }
    }
    std::vector<Step> steps;
    for (OpId op : body_.ops) {
      // A chain runs where its last op is: by then all its inputs exist.
      if (groups_.contains(op) || !in_chain_.contains(op)) steps.push_back(make_step(op));
    }
    return steps;
  }

 private:
  Step make_step(OpId op) {
    const OpView view(module_, op);
    Step step{.op = op};
    const auto group = groups_.find(op);
    const auto call = variation_.collectives.find(op);
    std::vector<ValueId> inputs(view.operands().begin(), view.operands().end());
    if (group != groups_.end()) {
      step.kind = Step::Kind::kFused;
      step.fused_ops = static_cast<int64_t>(group->second.ops.size());
      step.program = std::move(group->second.program);
      inputs = std::move(group->second.inputs);
    } else if (call != variation_.collectives.end()) {
      step.kind = Step::Kind::kCollective;
      step.collective = call->second;
    } else {
      const OpCost cost = view.def().cost(view);
      step.work = cost.flops + cost.bytes;
      if (!options_.faithful) step.merge = find_merge(view, variation_.digits, variation_.varying, homes_);
    }
    find_home(view, step, inputs);
    for (ValueId input : inputs) step.inputs.push_back(input.index);
    for (size_t i = 0; i < view.result_count(); ++i) step.outputs.push_back(view.result(i).index);
    if (view.result_count() > 0) step.axes = variation_.digits.axes(varying(view.result()));
    return step;
  }

  DigitSet varying(ValueId value) const { return variation_.varying[value.index]; }

  void find_argument_homes(const std::vector<LocalLayout>& layouts) {
    homes_.resize(module_.value_count());
    for (ValueId argument : body_.arguments) {
      Homes home(variation_.digits.size(), 0);
      const auto& dims = layouts[argument.index].dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        const DigitSet here = variation_.digits.touched(dims[d].axes);
        for (size_t g = 0; g < home.size(); ++g) {
          if ((here >> g & 1) != 0) home[g] = static_cast<uint8_t>(d);
        }
      }
      homes_[argument.index] = std::move(home);
    }
  }

  // A merged call leaves its shards adjacent along the factor. A chain keeps the order of its first full-size input.
  void find_home(const OpView& op, const Step& step, const std::vector<ValueId>& inputs) {
    if (step.merge) {
      for (size_t i = 0; i < op.result_count(); ++i) {
        Homes home(variation_.digits.size(), 0);
        for (const Merge::Digit& digit : step.merge->digits)
          home[digit.number] = static_cast<uint8_t>(digit.result_dims[i]);
        homes_[op.result(i).index] = std::move(home);
      }
    } else if (step.kind == Step::Kind::kFused) {
      const auto whole = std::find_if(inputs.begin(), inputs.end(), [&](ValueId input) {
        return varying(input) == varying(op.result()) && module_.type(input).shape == op.result_type().shape;
      });
      if (whole != inputs.end()) homes_[op.result().index] = homes_[whole->index];
    }
  }

  const Module& module_;
  const Variation& variation_;
  const PlanOptions& options_;
  const Region& body_;
  std::vector<Homes> homes_;
  std::unordered_map<OpId, FusedGroup> groups_;  // by root
  std::unordered_map<OpId, bool> in_chain_;
};

// Without the steps that nobody needs, such as constants that went into chains.
std::vector<Step> needed_steps(const Module& module, std::vector<Step> steps) {
  std::vector<Step> kept;
  std::vector<bool> needed(module.value_count(), false);
  for (ValueId result : module.region(module.main().body).results) needed[result.index] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    Step& step = steps[i];
    const bool is_needed = std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t v) { return needed[v]; });
    if (!is_needed && !module.op(step.op).def->has_side_effect(OpView(module, step.op))) continue;
    for (uint32_t input : step.inputs) needed[input] = true;
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

void prepare_kernel(const OpView& op, Step& step) {
  check_internal(op.def().prepare != nullptr, str(op.name(), ": a kernel, or legalize before"));
  std::vector<TensorType> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  for (size_t i = 0; i < op.result_count(); ++i) step.results.push_back(op.result_type(i));
  std::optional<Kernel> kernel = op.def().prepare(op, {operands, step.results});
  check_internal(kernel.has_value(), str(op.name(), ": a kernel for the types of the program"));
  step.kernel = std::move(*kernel);
}

class SlotNumbering {
 public:
  SlotNumbering(const Module& module, const Variation& variation, Plan& plan)
      : body_(module.region(module.main().body)),
        variation_(variation),
        plan_(plan),
        slot_by_value_(module.value_count(), kNoSlot) {}

  void run() {
    for (ValueId argument : body_.arguments) plan_.arguments.push_back(slot_of(argument.index));
    for (Step& step : plan_.steps) {
      for (uint32_t& input : step.inputs) input = slot_of(input);
      for (uint32_t& output : step.outputs) output = slot_of(output);
    }
    for (ValueId result : body_.results) plan_.results.push_back(slot_of(result.index));
    find_dead();
  }

 private:
  uint32_t slot_of(uint32_t value) {
    uint32_t& slot = slot_by_value_[value];
    if (slot == kNoSlot) {
      slot = static_cast<uint32_t>(plan_.slots.size());
      plan_.slots.push_back(ValueId{value});
      plan_.slot_varying.push_back(variation_.varying[value]);
    }
    return slot;
  }

  void find_dead() {
    std::vector<bool> used_later(plan_.slots.size(), false);
    for (uint32_t result : plan_.results) used_later[result] = true;
    // Backward, so that the first use found is the last use in the run, after which the slot is dead.
    for (size_t i = plan_.steps.size(); i-- > 0;) {
      Step& step = plan_.steps[i];
      for (const auto* slots : {&step.outputs, &step.inputs}) {
        for (uint32_t slot : *slots) {
          if (!used_later[slot]) step.dead.push_back(slot);
          used_later[slot] = true;
        }
      }
    }
  }

  const Region& body_;
  const Variation& variation_;
  Plan& plan_;
  std::vector<uint32_t> slot_by_value_;
};

}  // namespace

Plan make_plan(const Module& module, const std::vector<LocalLayout>& layouts, const Mesh& mesh,
               const PlanOptions& options) {
  Variation variation = find_variation(module, layouts, mesh, options.pinned, options.faithful);
  Plan plan;
  plan.steps = needed_steps(module, StepMaker(module, layouts, variation, options).run());
  for (Step& step : plan.steps) {
    if (step.kind != Step::Kind::kKernel) continue;
    try {
      prepare_kernel(OpView(module, step.op), step);
    } catch (Error& error) {
      error.at(module.context().location_text(module.op(step.op).loc));
      throw;
    }
  }
  SlotNumbering(module, variation, plan).run();
  plan.free = variation.free;
  plan.digits = std::move(variation.digits);
  return plan;
}

}  // namespace shardwise
