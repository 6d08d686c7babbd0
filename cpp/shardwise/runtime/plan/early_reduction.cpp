// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/early_reduction.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/use_lists.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/partitioning/linearity.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// Returns none unless it reduces over entire digits, all of whose devices are in this process.
Reduction reduction_of(const CollectiveCall& call, const Variation& variation) {
  if (call.kind != CollectiveKind::kAllReduce && call.kind != CollectiveKind::kReduceScatter) return {};
  if (call.order != nullptr) return {};
  const DigitSet digits = variation.digits.touched(call.axes);
  const bool is_whole = digits == variation.digits.covered(call.axes) && (digits & ~variation.free) == 0;
  return is_whole ? Reduction{digits, call.reducer} : Reduction{};
}

// Whether the operand comes unreduced, together with all others for which this holds.
bool comes_unreduced(const OpView& op, Linear kind, size_t operand) {
  return kind == Linear::kFirst ? operand == 0 : op.def().is_joint(operand);
}

// Values that are reduced early together or not at all, because each one requires the others.
class Web {
 public:
  using Values = std::unordered_set<ValueId>;

  Web(const Module& module, const UseLists& uses, const Variation& variation, const std::vector<Homes>& homes,
      Reduction reduction, const Values& rejected)
      : module_(module),
        uses_(uses),
        variation_(variation),
        homes_(homes),
        reduction_(reduction),
        rejected_(rejected) {}

  bool grow(ValueId first) {
    // One value that cannot take part rejects the entire web: its reader would see a sum where it expects a part of it.
    bool holds = admit(first);
    while (holds && !pending_.empty()) {
      const ValueId value = pending_.back();
      pending_.pop_back();
      holds = follow_maker(value) && follow_uses(value);
    }
    // A web without a product starts only from neutral values, and has nothing to reduce.
    return holds && !makers_.empty();
  }

  const Values& values() const { return values_; }
  const std::vector<OpId>& makers() const { return makers_; }
  const std::vector<std::pair<OpId, size_t>>& collectives() const { return collectives_; }  // and which operand

 private:
  bool admit(ValueId value) {
    if (rejected_.contains(value)) return false;
    if (values_.insert(value).second) pending_.push_back(value);
    return true;
  }

  // A neutral constant is the same before and after the reduction, whatever else reads it.
  bool admit_operand(ValueId value) {
    const std::optional<Scalar> splat = splat_value(module_, value);
    return splat && is_neutral(reduction_.reducer, *splat) ? true : admit(value);
  }

  bool is_loop(OpId op) const { return op && module_.op(op).def->regions == Regions::kLoop; }

  bool follow_maker(ValueId id) {
    const Value& value = module_.value(id);
    const OpId maker = module_.owner(value);
    if (is_loop(maker)) {
      return value.op ? admit_result(OpView(module_, maker), value.index)
                      : admit_argument(OpView(module_, maker), value.index);
    }
    if (!value.op) return false;
    const OpView op(module_, maker);
    return admit_linear(op) || add_maker(op);
  }

  bool admit_carry(const LoopParts& parts, size_t i) {
    const LoopParts::Carry& carry = parts.carries[i];
    return admit_operand(carry.entry) && admit_operand(carry.next) && admit(carry.argument) && admit(carry.result) &&
           (!carry.tested || admit(carry.tested));
  }

  // Operands are inputs, borders, and carries.
  bool admit_entry(const OpView& loop, size_t i) {
    const LoopParts parts = loop_parts(loop);
    const size_t first_carry = loop.operand_count() - parts.carries.size();
    if (i >= first_carry) return admit_carry(parts, i - first_carry);
    return std::ranges::all_of(parts.inputs, [&](const LoopParts::Input& input) {
      const bool reads = input.stack == loop.operand(i) || input.border == loop.operand(i);
      return !reads || admit_input(input);
    });
  }

  // Admits an argument of the body: a row, or a carry.
  bool admit_argument(const OpView& loop, size_t i) {
    const LoopParts parts = loop_parts(loop);
    if (i >= parts.inputs.size()) return admit_carry(parts, i - parts.inputs.size());
    return admit_input(parts.inputs[i]);
  }

  bool admit_input(const LoopParts::Input& input) {
    return admit_operand(input.stack) && admit(input.row) && (!input.border || admit_operand(input.border));
  }

  // Admits a result of the body, and of the loop.
  bool admit_result(const OpView& loop, size_t i) {
    const LoopParts parts = loop_parts(loop);
    if (i >= parts.outputs.size()) return admit_carry(parts, i - parts.outputs.size());
    return admit_operand(parts.outputs[i].row) && admit(parts.outputs[i].stack);
  }

  bool admit_linear(const OpView& op) {
    if (op.result_count() != 1 || !op.regions().empty()) return false;
    const Linear kind = linear_in(op, sharding_rule(op), reduction_.reducer);
    if (kind != Linear::kFirst && kind != Linear::kJoint) return false;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const bool varies = (variation_.varying[op.operand(i).index] & reduction_.digits) != 0;
      // The other operands are factors: a * x + b * y is a * (x + y) only where a and b are the same.
      if (comes_unreduced(op, kind, i) ? !admit_operand(op.operand(i)) : varies) return false;
    }
    return admit(op.result());
  }

  // A product: its bits depend on how it is computed anyway.
  bool add_maker(const OpView& op) {
    if (op.result_count() != 1 || !op.regions().empty() || op.def().linear.kind != Linear::kEach) return false;
    if (!find_merge(op, variation_.digits, variation_.varying, homes_, reduction_)) return false;
    makers_.push_back(op.id());
    return true;
  }

  bool follow_uses(ValueId value) {
    return std::ranges::all_of(UseRange(module_, uses_, value), [&](const Use& use) { return follow_use(use); });
  }

  bool follow_use(const Use& use) {
    const OpId user = module_.owner(use);
    if (is_loop(user)) {
      const OpView loop(module_, user);
      if (use.op) return admit_entry(loop, use.index);
      // A condition that returns the value would see the total where the program gives it a part.
      return use.region == loop_parts(loop).body && admit_result(loop, use.index);
    }
    if (!use.op) return false;
    const auto call = variation_.collectives.find(user);
    if (call != variation_.collectives.end()) {
      collectives_.emplace_back(user, use.index);
      return reduction_of(call->second, variation_) == reduction_;
    }
    return admit_linear(OpView(module_, user));
  }

  const Module& module_;
  const UseLists& uses_;
  const Variation& variation_;
  const std::vector<Homes>& homes_;
  const Reduction reduction_;
  const Values& rejected_;
  Values values_;
  std::vector<ValueId> pending_;  // admitted, not followed
  std::vector<OpId> makers_;
  std::vector<std::pair<OpId, size_t>> collectives_;
};

}  // namespace

std::unordered_map<OpId, Reduction> reduce_early(const Module& module, Variation& variation) {
  std::unordered_map<OpId, Reduction> makers;
  std::vector<std::pair<OpId, Reduction>> candidates;
  for (const auto& [op, call] : variation.collectives) {
    const Reduction reduction = reduction_of(call, variation);
    if (reduction.digits != 0) candidates.emplace_back(op, reduction);
  }
  if (candidates.empty()) return makers;
  const UseLists uses(module);
  const std::vector<Homes> homes(module.value_count());
  std::map<std::pair<DigitSet, Reducer>, Web::Values> rejected;
  for (const auto& [op, reduction] : candidates) {
    for (size_t i = 0; i < OpView(module, op).operand_count(); ++i) {
      if (variation.collectives[op].is_reduced(i)) continue;
      Web::Values& known = rejected[{reduction.digits, reduction.reducer}];
      Web web(module, uses, variation, homes, reduction, known);
      if (!web.grow(OpView(module, op).operand(i))) {
        // The next web that reaches one of these values fails at once: values of a web hold together or not at all.
        known.insert(web.values().begin(), web.values().end());
        continue;
      }
      for (const ValueId value : web.values()) variation.varying[value.index] &= ~reduction.digits;
      for (const OpId maker : web.makers()) makers.emplace(maker, reduction);
      for (const auto& [collective, operand] : web.collectives()) {
        std::vector<bool>& reduced = variation.collectives[collective].reduced;
        reduced.resize(OpView(module, collective).operand_count(), false);
        reduced[operand] = true;
      }
    }
  }
  return makers;
}

}  // namespace shardwise
