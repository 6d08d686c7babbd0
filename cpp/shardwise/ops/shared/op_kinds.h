// SPDX-License-Identifier: Apache-2.0
//
// Makes rows of op tables: kinds of ops without a kernel, fields that a table adds to a row, and shared hooks.
//
//   constexpr OpDef kDot = composed_op("stablehlo.dot", infer_dot, rule_dot, decompose_dot, "operands …",
//                                      "The product of vectors and matrices (StableHLO dot).");
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/base/text.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_builder.h"

namespace shardwise {

constexpr OpDef composed_op(std::string_view name, InferFn infer, RuleFn rule, DecomposeFn decompose,
                            std::string_view format, std::string_view doc, Traits traits = {}) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = rule,
               .runs = Runs::kOps,
               .decompose = decompose,
               .format = format,
               .doc = doc,
               .traits = traits};
}

// Its region is a function of scalars.
constexpr OpDef with_combiner(OpDef def) {
  def.regions = Regions::kCombiner;
  return def;
}

// It moves elements and computes nothing: what it moves may be reduced afterwards.
constexpr OpDef moving(OpDef def, Linear kind = Linear::kFirst) {
  def.linear = {kind, kAllReducers};
  def.traits.movement = true;
  return def;
}

constexpr OpDef without_gradient(OpDef def, std::string_view reason) {
  def.vjp = not_differentiable;
  def.no_vjp_reason = reason;
  return def;
}

// `verify` throws an UnsupportedError for attributes or regions that cannot be run.
constexpr OpDef runnable_if(OpDef def, VerifyFn verify) {
  def.verify_runnable = verify;
  return def;
}

// An op that runs regions or a function: propagated along its edges, without a kernel. Its gradient is not an
// OpDef::vjp either (transforms/gradient/differentiate_regions.h).
constexpr OpDef region_op(std::string_view name, InferFn infer, Regions regions, FlowFn flow, VerifyFn verify,
                          std::string_view format, std::string_view doc) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = no_rule,
               .runs = Runs::kRegions,
               .cost = costs_nothing,  // what its regions or its function hold is counted op by op
               .regions = regions,
               .flow = flow,
               .verify = verify,
               .format = format,
               .doc = doc};
}

// An op that does not run has nothing else to show; tests/op/test_composed.py lists these.
template <size_t Count>
constexpr bool all_complete(const OpDef (&ops)[Count]) {
  for (const OpDef& def : ops) {
    if (!def.complete() && (def.runnable() || !def.is_described() || !def.runs_as_declared())) return false;
  }
  return true;
}

inline ShardingRule rule_like_first_result(const OpView& op) { return RuleBuilder(op).pointwise().build(); }

// Each dim of the first operand has one factor, factor_of(rule, dim), on this dim of all operands and results; scalars
// have none.
template <class FactorOf>
ShardingRule rule_by_dim(const OpView& op, const FactorOf& factor_of) {
  RuleBuilder rule(op);
  const size_t operands = op.operand_count();
  for (size_t dim = 0; dim < op.operand_type(0).shape.size(); ++dim) {
    const FactorId factor = factor_of(rule, dim);
    for (size_t t = 0; t < rule.tensor_count(); ++t) {
      const TensorType& type = t < operands ? op.operand_type(t) : op.result_type(t - operands);
      if (type.ndim() != 0) rule.map(t, dim, factor);
    }
  }
  return rule.build();
}

// Takes the declared types of a text, for ops whose operands do not imply them.
inline void infer_declared(const InferContext& op, std::vector<TypeId>& results) {
  results.assign(op.declared().begin(), op.declared().end());
}

// For an op whose shape is an operand: the declared type, of the first operand's dtype. `Count` operands.
template <int Count>
void infer_shape_operand(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(Count);
  const TensorType& result = op.declared_result();
  if (result.dtype != op.operand(0).dtype) {
    op.fail_dtype("operand and result must have the same dtype", str(op.operand_types_text(), " -> ", result.text()),
                  "convert first");
  }
  results.push_back(op.declared()[0]);
}

}  // namespace shardwise
