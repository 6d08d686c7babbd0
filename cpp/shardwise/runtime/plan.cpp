// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;

void append(AxisList& all, AxisSpan axes) { all.insert(all.end(), axes.begin(), axes.end()); }

class Planner {
 public:
  Planner(const Module& module, const std::vector<LocalLayout>& layouts, const Mesh& mesh, const PlanOptions& options)
      : module_(module), layouts_(layouts), mesh_(mesh), options_(options), body_(module.region(module.main().body)) {}

  Plan run() {
    cut_digits();
    find_varying();
    find_argument_homes();
    if (options_.fuse) {
      for (FusedGroup& group : fuse_elementwise(module_, module_.main().body, varying_)) {
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
    keep_needed(std::move(steps));
    number_slots();
    return std::move(plan_);
  }

 private:
  void cut_digits() {
    AxisList used;
    for (const LocalLayout& layout : layouts_) {
      for (const DimLayout& dim : layout.dims) append(used, dim.axes);
      append(used, layout.unreduced);
    }
    for (OpId op : body_.ops) {
      const OpView view(module_, op);
      if (!is_local_collective(view)) continue;
      const auto call = calls_.emplace(op, read_collective(view)).first;
      append(used, call->second.axes_used());
    }
    plan_.digits = Digits(mesh_, used);
  }

  DigitSet of_layout(ValueId value) const {
    if (value.index >= layouts_.size()) return 0;
    AxisList axes;
    for (const DimLayout& dim : layouts_[value.index].dims) append(axes, dim.axes);
    append(axes, layouts_[value.index].unreduced);
    return plan_.digits.touched(axes);
  }

  void find_varying() {
    varying_.resize(module_.value_count(), 0);
    const DigitSet everything = plan_.digits.all();
    for (ValueId argument : body_.arguments)
      varying_[argument.index] = options_.faithful ? everything : of_layout(argument);
    for (OpId op : body_.ops) {
      DigitSet varying = 0;
      for (ValueId operand : module_.operands(op)) varying |= varying_[operand.index];
      const auto call = calls_.find(op);
      if (call != calls_.end()) varying = call->second.varying_after(plan_.digits, varying);
      // Treating every value as varying along all digits makes each device compute its own copy.
      if (options_.faithful) varying = everything;
      for (uint32_t i = 0; i < module_.op(op).result_count; ++i) varying_[module_.result(op, i).index] = varying;
    }
  }

  Step make_step(OpId op) {
    const OpView view(module_, op);
    Step step{.op = op};
    const auto group = groups_.find(op);
    const auto call = calls_.find(op);
    std::vector<ValueId> inputs(view.operands().begin(), view.operands().end());
    if (group != groups_.end()) {
      step.kind = Step::Kind::kFused;
      step.fused_ops = static_cast<int64_t>(group->second.ops.size());
      step.program = std::move(group->second.program);
      inputs = std::move(group->second.inputs);
    } else if (call != calls_.end()) {
      step.kind = Step::Kind::kCollective;
      step.collective = call->second;
    } else {
      const OpCost cost = view.def().cost(view);
      step.work = cost.flops + cost.bytes;
      if (!options_.faithful) step.merge = find_merge(view, plan_.digits, varying_, homes_);
      if (step.merge) step.merged_op = merged_op(op, *step.merge);
      if (!step.merged_op) step.merge.reset();
    }
    find_home(view, step, inputs);
    for (ValueId input : inputs) step.inputs.push_back(input.index);  // value indices until number_slots()
    for (size_t i = 0; i < view.result_count(); ++i) step.outputs.push_back(view.result(i).index);
    if (view.result_count() > 0) step.axes = plan_.digits.axes(varying_[view.result().index]);
    return step;
  }

  void find_argument_homes() {
    homes_.resize(module_.value_count());
    for (ValueId argument : body_.arguments) {
      Homes home(plan_.digits.size(), 0);
      const auto& dims = layouts_[argument.index].dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        const DigitSet here = plan_.digits.touched(dims[d].axes);
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
        Homes home(plan_.digits.size(), 0);
        for (const Merge::Digit& digit : step.merge->digits)
          home[digit.number] = static_cast<uint8_t>(digit.result_dims[i]);
        homes_[op.result(i).index] = std::move(home);
      }
    } else if (step.kind == Step::Kind::kFused) {
      const auto whole = std::find_if(inputs.begin(), inputs.end(), [&](ValueId input) {
        return varying_[input.index] == varying_[op.result().index] &&
               module_.type(input).shape == op.result_type().shape;
      });
      if (whole != inputs.end()) homes_[op.result().index] = homes_[whole->index];
    }
  }

  // The same op on merged types; none when its attributes do not fit them. It is created in a copy of the module,
  // because kernels read attributes and regions there.
  OpId merged_op(OpId op_id, const Merge& merge) {
    if (plan_.merged_ops == nullptr) {
      plan_.merged_ops = std::make_unique<Module>(module_);
      scratch_ = plan_.merged_ops->add_region();
    }
    Module& module = *plan_.merged_ops;
    const Operation op = module.op(op_id);
    std::vector<ValueId> operands;
    std::vector<TypeId> results;
    for (const TensorType& type : merge.operands) {
      operands.push_back(module.add_argument(scratch_, module.context().intern(type)));
    }
    for (const TensorType& type : merge.results) results.push_back(module.context().intern(type));
    const auto regions = module.regions(op_id);
    const std::vector<RegionId> kept(regions.begin(), regions.end());
    try {
      const OpId merged = Builder(module, scratch_, op.loc).create_op(*op.def, operands, op.attrs, results, kept);
      for (uint32_t i = 0; i < op.result_count; ++i) {
        // infer accepted the merged operands, but gave another result (a slice with fixed limits).
        if (module.value(module.result(merged, i)).type != results[i]) return {};
      }
      return merged;
    } catch (const Error&) {
      return {};
    }
  }

  // Drops steps whose results are unused, such as constants that were fused into chains.
  void keep_needed(std::vector<Step> steps) {
    std::vector<bool> needed(module_.value_count(), false);
    for (ValueId result : body_.results) needed[result.index] = true;
    for (size_t i = steps.size(); i-- > 0;) {
      Step& step = steps[i];
      const bool is_needed =
          std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t v) { return needed[v]; });
      if (!is_needed && !module_.op(step.op).def->has_side_effect(OpView(module_, step.op))) continue;
      for (uint32_t input : step.inputs) needed[input] = true;
      plan_.steps.push_back(std::move(step));
    }
    std::reverse(plan_.steps.begin(), plan_.steps.end());
  }

  uint32_t slot_of(uint32_t value) {
    if (slot_by_value_.empty()) slot_by_value_.resize(module_.value_count(), kNoSlot);
    uint32_t& slot = slot_by_value_[value];
    if (slot == kNoSlot) {
      slot = static_cast<uint32_t>(plan_.slots.size());
      plan_.slots.push_back(ValueId{value});
      plan_.slot_varying.push_back(varying_[value]);
    }
    return slot;
  }

  void number_slots() {
    for (ValueId argument : body_.arguments) plan_.arguments.push_back(slot_of(argument.index));
    for (Step& step : plan_.steps) {
      for (uint32_t& input : step.inputs) input = slot_of(input);
      for (uint32_t& output : step.outputs) output = slot_of(output);
    }
    for (ValueId result : body_.results) plan_.results.push_back(slot_of(result.index));
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

  const Module& module_;
  const std::vector<LocalLayout>& layouts_;
  const Mesh& mesh_;
  PlanOptions options_;
  const Region& body_;
  Plan plan_;
  std::vector<DigitSet> varying_;
  std::vector<Homes> homes_;
  std::unordered_map<OpId, CollectiveCall> calls_;
  std::unordered_map<OpId, FusedGroup> groups_;  // by root op
  std::unordered_map<OpId, bool> in_chain_;
  std::vector<uint32_t> slot_by_value_;
  RegionId scratch_;
};

}  // namespace

Plan make_plan(const Module& module, const std::vector<LocalLayout>& layouts, const Mesh& mesh,
               const PlanOptions& options) {
  return Planner(module, layouts, mesh, options).run();
}

}  // namespace shardwise
