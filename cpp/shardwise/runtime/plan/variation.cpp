// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/variation.h"

#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

std::unordered_set<PlacementId> placements_of(const Module& module) {
  std::unordered_set<PlacementId> placements;
  for (uint32_t i = 1; i < module.value_count(); ++i) placements.insert(module.part(ValueId{i}).placement);
  placements.erase(PlacementId{});
  return placements;
}

// Digits and collectives; nothing varies yet.
class VariationFinder {
 public:
  VariationFinder(const Module& module, const Mesh& mesh, bool everywhere, Variation& variation)
      : module_(module),
        calls_(module),
        mesh_(mesh),
        everywhere_(everywhere),
        variation_(variation),
        varying_(variation.varying),
        visits_(module.functions.size(), Visits::kNever) {}

  void cut_digits(AxisSpan pinned) {
    AxisList used(pinned.begin(), pinned.end());
    for (const PlacementId id : placements_of(module_)) {
      const Placement& placement = module_.context().placement(id);
      // Axes of another mesh cut nothing: its values vary along all digits or along none.
      if (order_of(placement.mesh, mesh_, variation_.orders) == nullptr) append(used, placement.axes());
    }
    for (const size_t f : calls_.reached()) read_collectives(module_.functions[f].body, used);
    // A process has one shard for all positions along a digit or one for each, so it cannot own a part of a digit.
    expect_uncut("run", mesh_, pinned, AxisSpan(used).subspan(pinned.size()));
    variation_.digits = Digits(mesh_, used);
    const DigitSet fixed = digits().covered(pinned);
    variation_.free = digits().all() & ~fixed;
    varying_.resize(module_.value_count(), 0);
  }

  void visit_main() {
    // Sets only grow, so there are at most as many walks as results of functions times digits.
    do {
      is_stale_ = false;
      for (Visits& visits : visits_) visits = visits == Visits::kNever ? visits : Visits::kBefore;
      visit_region(module_.main().body);
    } while (is_stale_);
  }

  // A value on another mesh varies along all digits, unless it is replicated.
  DigitSet touched_by(const Placement& placement) const {
    if (order_of(placement.mesh, mesh_, variation_.orders) == nullptr) return digits().touched(placement.axes());
    return placement.is_fully_replicated() ? 0 : digits().all();
  }

 private:
  void visit_region(RegionId region) {
    for (OpId op : module_.region(region).ops) visit(OpView(module_, op));
  }

  const Digits& digits() const { return variation_.digits; }

  void read_collectives(RegionId region, AxisList& used) {
    for (OpId id : module_.region(region).ops) {
      const OpView op(module_, id);
      if (is_local_collective(op)) {
        CollectiveCall call = read_collective(op, mesh_, variation_.orders);
        // Axes of another mesh cut nothing.
        if (call.order == nullptr) append(used, call.axes_of_mesh());
        variation_.collectives.emplace(id, std::move(call));
      }
      if (op.def().is_control_flow()) {
        for (RegionId inner : op.regions()) read_collectives(inner, used);
      }
    }
  }

  void visit(const OpView& op) {
    if (op.def().regions == Regions::kLoop) return visit_loop(op);
    if (op.def().regions == Regions::kBranches) return visit_branches(op);
    if (is_call(module_, op.id())) return visit_call(op);
    DigitSet after = 0;
    operands_.clear();
    for (ValueId operand : op.operands()) operands_.push_back(varying_[operand.index]);
    // An op may mix its operands in each result, so its results vary along the axes of all of them.
    for (const DigitSet operand : operands_) after |= operand;
    const auto call = variation_.collectives.find(op.id());
    for (size_t i = 0; i < op.result_count(); ++i) {
      set(op.result(i), call == variation_.collectives.end() ? after : varying_after(op, call->second, i));
    }
  }

  // Gathering part of an axis leaves the value varying along the rest; read that from the result's placement, else the
  // operand's.
  DigitSet varying_after(const OpView& op, const CollectiveCall& call, size_t result) const {
    const std::span<const DigitSet> all(operands_);
    const DigitSet after = call.varying_after(digits(), may_combine(call.kind) ? all.subspan(result, 1) : all);
    if (const PlacementId placement = module_.part(op.result(result)).placement) {
      return after & touched_by(module_.context().placement(placement));
    }
    const bool unites = call.kind == CollectiveKind::kAllGather || call.kind == CollectiveKind::kAllReduce;
    const PlacementId before = unites ? module_.part(op.operand(result)).placement : PlacementId{};
    if (!before) return after;
    const AxisList left = difference(module_.context().placement(before).axes(), call.axes_of_mesh());
    // The digits of another mesh are none of this one: its values vary along all or along none.
    return left.empty() || call.order == nullptr ? after & digits().touched(left) : after;
  }

  // The sets only grow from one round to the next, so there are at most as many rounds as carries and digits.
  void visit_loop(const OpView& op) {
    const LoopParts parts = loop_parts(op);
    for (const LoopParts::Carry& carry : parts.carries) add(carry.result, varying_[carry.entry.index]);
    for (const LoopParts::Input& input : parts.inputs) {
      set(input.row, varying_[input.stack.index] | (input.border ? varying_[input.border.index] : 0));
    }
    for (bool is_stable = false; !is_stable;) {
      // `result` collects the digits of all trips: those of the initial value, then what each walk of the body adds.
      for (const LoopParts::Carry& carry : parts.carries) set(carry.argument, varying_[carry.result.index]);
      visit_region(parts.body);
      is_stable = true;
      for (const LoopParts::Carry& carry : parts.carries) {
        is_stable = !add(carry.result, varying_[carry.next.index]) && is_stable;
      }
    }
    for (const LoopParts::Output& output : parts.outputs) set(output.stack, varying_[output.row.index]);
    if (parts.condition) visit_condition(op, parts);
  }

  void visit_condition(const OpView& op, const LoopParts& parts) {
    for (const LoopParts::Carry& carry : parts.carries) set(carry.tested, varying_[carry.result.index]);
    visit_region(parts.condition);
    expect_same_everywhere(op, parts.predicate, "the condition");
  }

  void visit_branches(const OpView& op) {
    expect_same_everywhere(op, op.operand(0), "the operand");
    for (RegionId branch : op.regions()) {
      visit_region(branch);
      const std::vector<ValueId>& results = module_.region(branch).results;
      for (size_t i = 0; i < results.size(); ++i) add(op.result(i), varying_[results[i].index]);
    }
  }

  // In each walk once, and where a call adds axes to the arguments.
  void visit_call(const OpView& op) {
    const size_t called = calls_.callee(op.id());
    const Region& body = module_.region(module_.functions[called].body);
    bool is_known = visits_[called] == Visits::kNow;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      // All calls share one block, so an argument varies along the axes of every call.
      is_known = !add(body.arguments[i], varying_[op.operand(i).index]) && is_known;
    }
    if (!is_known) visit_function(called);
    for (size_t i = 0; i < op.result_count(); ++i) set(op.result(i), varying_[body.results[i].index]);
  }

  void visit_function(size_t function) {
    const RegionId body = module_.functions[function].body;
    std::vector<DigitSet> before;
    for (const ValueId result : module_.region(body).results) before.push_back(varying_[result.index]);
    const bool was_visited = visits_[function] != Visits::kNever;
    visit_region(body);
    visits_[function] = Visits::kNow;
    for (size_t i = 0; was_visited && i < before.size(); ++i) {
      // Earlier calls have taken over the old sets.
      is_stale_ = is_stale_ || varying_[module_.region(body).results[i].index] != before[i];
    }
  }

  void set(ValueId value, DigitSet digits_of_value) {
    varying_[value.index] = everywhere_ ? digits().all() : digits_of_value;
  }
  bool add(ValueId value, DigitSet more) {
    const DigitSet before = varying_[value.index];
    set(value, before | more);
    return varying_[value.index] != before;
  }

  void expect_same_everywhere(const OpView& op, ValueId predicate, std::string_view what) const {
    const AxisList axes = digits().axes(varying_[predicate.index]);
    // A faithful run computes the predicate on each device, and BlockRunner::predicate compares the values.
    if (everywhere_ || axes.empty()) return;
    fail_at<UnsupportedError>(
        module_, op.loc(),
        error_message(op.name(), str(what, " must be the same on all devices"),
                      str("a value that varies along ", axis_list_text(mesh_, axes)), "reduce it over these axes"));
  }

  enum class Visits : uint8_t { kNever, kBefore, kNow };  // in no walk, in an earlier one, in this one

  const Module& module_;
  const CallGraph calls_;
  const Mesh& mesh_;
  const bool everywhere_;
  Variation& variation_;
  std::vector<DigitSet>& varying_;
  std::vector<DigitSet> operands_;  // of the op at hand
  std::vector<Visits> visits_;      // by function
  bool is_stale_ = false;           // a function's results have changed after one of its calls was visited
};

}  // namespace

Variation find_variation(const Module& module, const Mesh& mesh, AxisSpan pinned, bool everywhere) {
  Variation variation;
  VariationFinder finder(module, mesh, everywhere, variation);
  finder.cut_digits(pinned);
  const Region& body = module.region(module.main().body);
  for (ValueId argument : body.arguments) {
    if (const PlacementId placement = module.part(argument).placement) {
      variation.varying[argument.index] = finder.touched_by(module.context().placement(placement));
    }
    if (everywhere) variation.varying[argument.index] = variation.digits.all();
  }
  finder.visit_main();
  for (DigitSet& digits_of_value : variation.varying) digits_of_value &= variation.free;
  return variation;
}

}  // namespace shardwise
