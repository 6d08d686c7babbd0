// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/forward/push_forward.h"

#include <algorithm>
#include <unordered_set>

#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/ops/partitioning/linearity.h"
#include "shardwise/transforms/gradient/differentiate.h"

namespace shardwise {
namespace {

// ---- ops that are their own derivative -----------------------------------------------------------------------------

class LinearOp {
 public:
  LinearOp(Builder& builder, const OpView& op, std::span<const ValueId> tangents)
      : builder_(builder), module_(builder.module()), id_(op.id()), tangents_(tangents) {}

  // None if the op is not linear in these operands, or its transpose is as short.
  ValueId run() {
    const OpView op(module_, id_);
    if (op.result_count() != 1) return {};
    switch (linear_in(op, sharding_rule(op), Reducer::kSum)) {
      case Linear::kFirst: return is_only_first() ? of_first() : ValueId{};
      case Linear::kJoint: return jointly();
      case Linear::kEach: return by_each();
      case Linear::kNone:
      case Linear::kDividend: break;
    }
    return {};
  }

 private:
  ValueId operand(size_t i) const { return module_.operands(id_)[i]; }
  ValueId zeros_like(ValueId value) { return build_zeros(builder_, TensorType(module_.type(value))); }

  bool is_only_first() const {
    const auto others = tangents_.subspan(1);
    return tangents_[0] && std::ranges::none_of(others, [](ValueId tangent) { return bool{tangent}; });
  }

  // The initial value of a reduction is an addend of it; other operands are indices, or a divisor.
  ValueId of_first() {
    const bool reduces = module_.op(id_).def->regions == Regions::kCombiner;
    std::vector<ValueId> operands{tangents_[0]};
    for (size_t i = 1; i < tangents_.size(); ++i) {
      const bool is_addend = reduces && is_inexact(module_.type(operand(i)).dtype);
      operands.push_back(is_addend ? zeros_like(operand(i)) : operand(i));
    }
    return applied_to(operands);
  }

  ValueId jointly() {
    const OpDef& def = *module_.op(id_).def;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < tangents_.size(); ++i) {
      if (!def.is_joint(i)) {
        if (tangents_[i]) return {};
        operands.push_back(operand(i));
        continue;
      }
      // A sum with zeros: the transpose has the other addend alone.
      const bool copies = def.linear.reducers == kAllReducers;
      if (!tangents_[i] && !copies) return {};
      operands.push_back(tangents_[i] ? tangents_[i] : zeros_like(operand(i)));
    }
    return applied_to(operands);
  }

  ValueId by_each() {
    ValueId sum;
    for (size_t i = 0; i < tangents_.size(); ++i) {
      if (!tangents_[i]) continue;
      std::vector<ValueId> operands(module_.operands(id_).begin(), module_.operands(id_).end());
      operands[i] = tangents_[i];
      const ValueId addend = applied_to(operands);
      sum = sum ? builder_.create("stablehlo.add", {sum, addend}) : addend;
    }
    return sum;
  }

  ValueId applied_to(const std::vector<ValueId>& operands) {
    GraphCopy copy(module_, module_);
    const std::vector<RegionId> originals(module_.regions(id_).begin(), module_.regions(id_).end());
    std::vector<RegionId> regions;
    for (const RegionId region : originals) regions.push_back(copy.region(region));
    const TypeId type = module_.value(module_.result(id_)).type;
    return builder_.create(*module_.op(id_).def, operands, module_.op(id_).attrs, {&type, 1}, regions);
  }

  Builder& builder_;
  Module& module_;
  OpId id_;
  std::span<const ValueId> tangents_;
};

// ---- the transpose of a vjp ----------------------------------------------------------------------------------------

class CotangentContext final : public VjpContext {
 public:
  CotangentContext(Builder& builder, OpId id, std::span<const ValueId> tangents)
      : builder_(builder), module_(builder.module()), id_(id), tangents_(tangents), cotangents_(tangents.size()) {
    for (const ValueId result : list_of_results(module_, id)) {
      const bool has_one = is_inexact(module_.type(result).dtype);
      variables_.push_back(has_one ? module_.add_argument(builder.region(), module_.value(result).type) : ValueId{});
    }
  }

  OpView op() const override { return OpView(module_, id_); }
  Builder& builder() override { return builder_; }
  ValueId operand(size_t i) const override { return module_.operands(id_)[i]; }
  ValueId result(size_t i) const override { return module_.result(id_, static_cast<uint32_t>(i)); }
  ValueId cotangent(size_t i) override {
    return variables_[i] ? variables_[i] : build_zeros(builder_, TensorType(module_.type(result(i))));
  }
  bool needs(size_t i) const override { return bool{tangents_[i]}; }
  void set(size_t i, ValueId cotangent) override {
    if (!needs(i)) return;
    ValueId& sum = cotangents_[i];
    sum = sum ? builder_.create("stablehlo.add", {sum, cotangent}) : cotangent;
  }

  const std::vector<ValueId>& variables() const { return variables_; }    // by result; none for integers
  const std::vector<ValueId>& cotangents() const { return cotangents_; }  // by operand

 private:
  Builder& builder_;
  Module& module_;
  OpId id_;
  std::span<const ValueId> tangents_;
  std::vector<ValueId> variables_, cotangents_;
};

std::vector<ValueId> by_transposing(Builder& builder, const OpView& op, std::span<const ValueId> tangents) {
  Module& module = builder.module();
  Builder scratch(module, module.add_region(), builder.loc());
  CotangentContext context(scratch, op.id(), tangents);
  apply_vjp(context);
  std::vector<ValueId> outputs, seeds, variables;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (!context.cotangents()[i]) continue;
    outputs.push_back(context.cotangents()[i]);
    seeds.push_back(tangents[i]);
  }
  for (const ValueId variable : context.variables()) {
    if (variable) variables.push_back(variable);
  }
  // The result moves in steps.
  if (outputs.empty()) return std::vector<ValueId>(context.variables().size());
  const Gradients gradients = append_vjp_without_zeros(scratch, outputs, seeds, variables);
  move_needed_ops(builder, scratch.region(), gradients.values);
  std::vector<ValueId> results;
  size_t next = 0;
  for (const ValueId variable : context.variables()) {
    results.push_back(variable ? gradients.values[next++] : ValueId{});
  }
  return results;
}

}  // namespace

void move_needed_ops(Builder& builder, RegionId from, std::span<const ValueId> wanted) {
  Module& module = builder.module();
  std::unordered_set<ValueId> needed(wanted.begin(), wanted.end());
  std::vector<OpId> ops;
  for (const OpId op : module.region(from).ops | std::views::reverse) {
    if (!any_result(module, op, [&](ValueId result) { return needed.contains(result); })) continue;
    ops.push_back(op);
    visit_reads(module, op, [&](ValueId value) { needed.insert(value); });
  }
  // The derivative of a linear op does not contain its variable, but a rule may pass the variable to an op that ignores it.
  Redirection without(module);
  for (const ValueId variable : std::vector<ValueId>(module.region(from).arguments)) {
    if (needed.contains(variable)) without.add(variable, build_zeros(builder, TensorType(module.type(variable))));
  }
  for (const OpId op : ops | std::views::reverse) {
    without.apply(op);
    module.op(op).parent = builder.region();
    module.region(builder.region()).ops.push_back(op);
  }
  module.region(from).ops.clear();
}

std::vector<ValueId> push_forward(Builder& builder, const OpView& op, std::span<const ValueId> tangents) {
  const MatchesVarying matches(false);  // a tangent may differ where its value is equal
  // Linear in the cotangent; of the value, only its variation counts.
  if (is_match_varying(op.def())) {
    return {tangents[0] ? create_match_varying(builder, tangents[0], op.operands()[1]) : ValueId{}};
  }
  if (const ValueId result = LinearOp(builder, op, tangents).run()) return {result};
  return by_transposing(builder, op, tangents);
}

}  // namespace shardwise
