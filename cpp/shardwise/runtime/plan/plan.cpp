// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/plan.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/runtime/plan/batch_reductions.h"
#include "shardwise/runtime/plan/early_reduction.h"
#include "shardwise/runtime/plan/fuse.h"
#include "shardwise/runtime/plan/shard_homes.h"
#include "shardwise/runtime/plan/slot_numbering.h"
#include "shardwise/runtime/plan/variation.h"

namespace shardwise {
namespace {

// A chain of at most this many elements runs on one thread; checking strides is a visible part of its run time.
constexpr int64_t kFewLanes = 4 * kTileLanes;

void prepare_kernel(const Module& module, OpId id, KernelCall& call) {
  const OpView op(module, id);
  located(module, id, [&] {
    check_internal(op.def().runs == Runs::kKernel, str(op.name(), ": a kernel, or legalize before"));
    std::vector<TensorType> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) call.results.push_back(op.result_type(i));
    std::optional<Kernel> kernel = op.def().prepare(op, {operands, call.results});
    check_internal(kernel.has_value(), str(op.name(), ": a kernel for the types of the program"));
    call.kernel = std::move(*kernel);
  });
}

// The captures of the blocks become inputs of the step.
void add_captures(Step& step) {
  std::unordered_set<uint32_t> known(step.outputs.begin(), step.outputs.end());
  if (const auto* loop = std::get_if<Loop>(&step.work); loop != nullptr && loop->rows) {
    for (const ScanRows::Read& read : loop->rows->reads) known.insert(read.to);
  }
  const auto read = [&](std::span<const uint32_t> values) {
    for (uint32_t value : values) {
      if (known.insert(value).second) step.inputs.push_back(value);
    }
  };
  for_each_block(step, [&](const Block& block) {
    for (const Step& inner : block.steps) {
      read(inner.inputs);
      known.insert(inner.outputs.begin(), inner.outputs.end());
    }
    read(block.results);
  });
}

double work_of(const OpView& op) {
  const OpCost cost = own_cost(op);
  return static_cast<double>(saturated_sum(cost.flops(), cost.bytes()));
}

// Makes blocks in which Step::inputs and outputs, and Block::results, are indices of values. Those of a carry, which
// has several values, are of the loop's result. Unneeded steps go before kernels are prepared: a constant that went
// into a chain needs none. Carries get their indices before the blocks of a loop are made, which name them. The
// captures of blocks become inputs of the step, so that the liveness around it sees them. A function is planned at its
// first call, which decides what order of shards the plan expects; run_merged checks the order at each call. A faithful
// run computes each device on its own, so that its kernels share no call.
class BlockMaker {
 public:
  BlockMaker(const Module& module, const Variation& variation, const PlanOptions& options,
             std::unordered_map<OpId, Reduction> reductions)
      : module_(module),
        variation_(variation),
        options_(options),
        reductions_(std::move(reductions)),
        homes_(module, variation),
        needed_in_(module.value_count(), 0) {
    if (!options_.fuse) return;
    groups_ = fuse_elementwise(module_, variation_.varying);
    in_chain_.resize(module_.op_count(), false);
    for (const auto& [root, group] : groups_) {
      for (OpId op : group.ops) in_chain_[op.index] = true;
    }
  }

  void run(Plan& plan) {
    plan.main = make_block(module_.main().body);
    plan.functions = std::move(functions_);
  }

 private:
  Block make_block(RegionId id) {
    const Region& region = module_.region(id);
    Block block;
    for (OpId op : region.ops) {
      // A chain runs where its last op is: by then all its inputs exist.
      if (!options_.fuse || !in_chain_[op.index] || groups_.contains(op)) block.steps.push_back(make_step(op));
    }
    for (ValueId result : region.results) block.results.push_back(index_of(result));
    drop_unneeded(block);
    for (Step& step : block.steps) {
      if (auto* call = std::get_if<KernelCall>(&step.work)) prepare_kernel(module_, step.op, *call);
    }
    return block;
  }

  // Removes steps whose results nothing reads, such as constants that went into chains.
  void drop_unneeded(Block& block) {
    std::vector<Step> kept;
    const uint32_t number = ++blocks_;
    for (uint32_t result : block.results) needed_in_[result] = number;
    for (size_t i = block.steps.size(); i-- > 0;) {
      Step& step = block.steps[i];
      const bool is_needed = std::ranges::any_of(step.outputs, [&](uint32_t v) { return needed_in_[v] == number; });
      if (!is_needed && !has_effect(module_, functions_, step)) continue;
      for (uint32_t input : step.inputs) needed_in_[input] = number;
      kept.push_back(std::move(step));
    }
    std::ranges::reverse(kept);
    block.steps = std::move(kept);
  }

  Step make_step(OpId id) {
    const OpView op(module_, id);
    if (op.def().regions == Regions::kLoop) return make_loop(op);
    if (op.def().regions == Regions::kBranches) return make_branches(op);
    if (is_call(module_, id)) return make_call(op);
    Step step{.op = id};
    const auto group = groups_.find(id);
    const auto call = variation_.collectives.find(id);
    std::vector<ValueId> inputs(op.operands().begin(), op.operands().end());
    if (group != groups_.end()) {
      inputs = std::move(group->second.inputs);
      step.work = FusedChain{.program = std::move(group->second.program),
                             .ops = static_cast<int64_t>(group->second.ops.size()),
                             .lanes = few_lanes(op.result(), inputs)};
    } else if (call != variation_.collectives.end()) {
      step.work = call->second;
    } else {
      step.work = make_kernel_call(op);
    }
    const auto* kernel = std::get_if<KernelCall>(&step.work);
    if (kernel != nullptr && kernel->merge) homes_.add_merged(op, *kernel->merge);
    if (std::holds_alternative<FusedChain>(step.work)) homes_.add_chain(op, inputs);
    for (ValueId input : inputs) step.inputs.push_back(index_of(input));
    add_outputs(op, step);
    if (op.result_count() > 0) step.axes = variation_.digits.axes(varying(op.result()));
    return step;
  }

  KernelCall make_kernel_call(const OpView& op) const {
    KernelCall call{.kernel = {}, .results = {}, .work = work_of(op)};
    const auto found = reductions_.find(op.id());
    const Reduction reduction = found == reductions_.end() ? Reduction{} : found->second;
    call.reduced = variation_.digits.axes(reduction.digits);
    call.reducer = reduction.reducer;
    if (!options_.faithful) {
      call.merge = find_merge(op, variation_.digits, variation_.varying, homes_.all(), reduction);
    }
    return call;
  }

  int64_t few_lanes(ValueId result, const std::vector<ValueId>& inputs) const {
    const bool same = std::ranges::all_of(inputs, [&](ValueId input) {
      return module_.type(input).shape == module_.type(result).shape && varying(input) == varying(result);
    });
    const int64_t count = variation_.digits.count(varying(result));
    const int64_t lanes = module_.type(result).size();
    return same && lanes <= kFewLanes / count ? count * lanes : 0;
  }

  Step make_loop(const OpView& op) {
    const LoopParts parts = loop_parts(op);
    Step step{.op = op.id()};
    Loop loop{.condition = {}, .body = {}, .trips = trip_count(op), .carries = parts.carries.size()};
    for (const LoopParts::Carry& carry : parts.carries) {
      step.inputs.push_back(index_of(carry.entry));
      step.outputs.push_back(index_of(carry.result));
      carries_[carry.argument] = index_of(carry.result);
      if (carry.tested) carries_[carry.tested] = index_of(carry.result);
    }
    if (const auto order = scan_order(op)) loop.rows = make_rows(*order, parts, step);
    const size_t dim = loop.rows ? loop.rows->dim : 0;
    homes_.enter_loop(parts, dim);
    if (parts.condition) loop.condition = make_block(parts.condition);
    loop.body = make_block(parts.body);
    std::ranges::rotate(loop.body.results, loop.body.results.end() - std::ssize(parts.carries));
    step.work = std::move(loop);
    add_captures(step);
    homes_.leave_loop(parts, dim);
    return step;
  }

  // The stacks become inputs and outputs of the step.
  ScanRows make_rows(const ScanOrder& order, const LoopParts& parts, Step& step) const {
    ScanRows rows{.dim = static_cast<size_t>(order.dimension), .is_reverse = order.is_reverse};
    for (const LoopParts::Input& input : parts.inputs) {
      rows.reads.push_back({.from = index_of(input.stack), .to = index_of(input.row), .offset = input.offset});
      step.inputs.push_back(rows.reads.back().from);
      if (!input.border) continue;
      rows.reads.back().border = index_of(input.border);
      step.inputs.push_back(*rows.reads.back().border);
    }
    for (const LoopParts::Output& output : parts.outputs) step.outputs.push_back(index_of(output.stack));
    return rows;
  }

  Step make_branches(const OpView& op) {
    Step step{.op = op.id(), .inputs = {index_of(op.operand(0))}};
    add_outputs(op, step);
    Branches branches;
    for (const RegionId region : op.regions()) branches.blocks.push_back(make_block(region));
    step.work = std::move(branches);
    add_captures(step);
    for (size_t i = 0; i < op.result_count(); ++i) {
      homes_.copy(module_.region(op.regions()[0]).results[i], op.result(i));
    }
    return step;
  }

  Step make_call(const OpView& op) {
    const RegionId called = called_function(module_, op.id()).body;
    const Region& body = module_.region(called);
    auto known = function_numbers_.find(called);
    if (known == function_numbers_.end()) {
      PlannedFunction function;
      for (size_t i = 0; i < op.operand_count(); ++i) {
        homes_.copy(op.operand(i), body.arguments[i]);
        function.arguments.push_back(index_of(body.arguments[i]));
      }
      function.block = make_block(called);
      function.has_effect = has_effect(module_, functions_, function.block);
      known = function_numbers_.emplace(called, static_cast<uint32_t>(functions_.size())).first;
      functions_.push_back(std::move(function));
    }
    Step step{.op = op.id(), .work = Call{.function = known->second}};
    for (const ValueId operand : op.operands()) step.inputs.push_back(index_of(operand));
    add_outputs(op, step);
    for (size_t i = 0; i < op.result_count(); ++i) homes_.copy(body.results[i], op.result(i));
    return step;
  }

  void add_outputs(const OpView& op, Step& step) const {
    for (size_t i = 0; i < op.result_count(); ++i) step.outputs.push_back(index_of(op.result(i)));
  }

  uint32_t index_of(ValueId value) const {
    const auto carry = carries_.find(value);
    return carry == carries_.end() ? value.index : carry->second;
  }

  DigitSet varying(ValueId value) const { return variation_.varying[value.index]; }

  const Module& module_;
  const Variation& variation_;
  const PlanOptions& options_;
  std::unordered_map<OpId, Reduction> reductions_;  // by op that makes partial results
  ShardHomes homes_;
  std::unordered_map<OpId, FusedGroup> groups_;    // by root
  std::vector<bool> in_chain_;                     // by op
  std::unordered_map<ValueId, uint32_t> carries_;  // arguments of loops' regions
  std::vector<uint32_t> needed_in_;                // by value: the block that was the last to need it
  uint32_t blocks_ = 0;
  std::vector<PlannedFunction> functions_;
  std::unordered_map<RegionId, uint32_t> function_numbers_;  // by body: indices in functions_
};

}  // namespace

Plan make_plan(const Module& module, const Mesh& mesh, const PlanOptions& options) {
  Variation variation = find_variation(module, mesh, options.pinned, options.faithful);
  // Before the plan is made: reduce_early changes along which digits values vary.
  std::unordered_map<OpId, Reduction> reductions;
  if (!options.faithful) reductions = reduce_early(module, variation);
  Plan plan;
  BlockMaker(module, variation, options, std::move(reductions)).run(plan);
  if (options.batch) batch_reductions(module, plan);
  // Last, because the order of the steps decides where a slot is read for the last time.
  number_slots(module, variation, plan);
  plan.free = variation.free;
  plan.digits = std::move(variation.digits);
  plan.orders = std::move(variation.orders);
  return plan;
}

}  // namespace shardwise
