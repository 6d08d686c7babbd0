// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/custom_call.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/shared/custom_call_def.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/identity.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/refusals.h"

namespace shardwise {
namespace {

std::string subject(const OpView& op) { return str("custom_call @", custom_call_target(op)); }

CustomCallPtr known_call(const OpView& op) {
  CustomCallPtr call = find_custom_call(custom_call_target(op));
  if (call != nullptr) return call;
  const Refusal& refusal = refusals::kUnknownTarget;
  UnsupportedError error(error_message(subject(op), refused_because(refusal), {}, refusal.way_out));
  error.at(op.module().context().location_text(op.loc()));
  throw error;
}

void infer_custom_call(const InferContext& op, std::vector<TypeId>& results) {
  // Calls of other compilers that have effects take a token and return one.
  op.accept_tokens();
  if (op.attr<std::string>("call_target_name").empty()) op.fail_shape("call_target_name must not be empty");
  infer_declared(op, results);
}

bool effect_of_custom_call(const OpView& op) { return is_set(op.attrs(), "has_side_effect"); }

ShardingRule rule_custom_call(const OpView& op) {
  const CustomCallPtr call = find_custom_call(custom_call_target(op));
  // An unknown target has no rule: a program with it still propagates, and is refused when it is compiled.
  return call == nullptr || !call->rule ? ShardingRule{} : call->rule(op);
}

// Nothing for a call that has a kernel.
void decompose_custom_call(DecomposeContext& context) {
  const CustomCallPtr call = find_custom_call(custom_call_target(context.op()));
  if (call != nullptr && call->decompose) call->decompose(context);
}

void verify_custom_call(const OpView& op) {
  const CustomCallPtr call = known_call(op);
  if (call->check) call->check(op);
}

std::optional<Kernel> prepare_custom_call(const OpView& op, const KernelTypes& types) {
  const CustomCallPtr call = known_call(op);
  return call->prepare ? call->prepare(op, types) : std::nullopt;
}

OpCost cost_custom_call(const OpView& op, const LocalTypes& types) {
  const CustomCallPtr call = find_custom_call(custom_call_target(op));
  return call == nullptr || !call->cost ? cost_by_rule(op, types) : call->cost(op, types);
}

void vjp_custom_call(VjpContext& context) {
  const OpView op = context.op();
  const CustomCallPtr call = known_call(op);
  if (call->vjp) return call->vjp(context);
  fail<UnsupportedError>(subject(op), "a call must have a gradient to be differentiated", {}, call->no_vjp_reason);
}

void batch_custom_call(BatchContext& context) {
  const OpView op = context.op();
  const CustomCallPtr call = known_call(op);
  if (call->batch) return call->batch(context);
  fail<UnsupportedError>(subject(op), "a call must have a batching rule to be vectorized", {},
                         "pass batch= to sw.register_custom_call");
}

constexpr OpDef kCustomCallOps[] = {
    {.name = "stablehlo.custom_call",
     .infer = infer_custom_call,
     .rule = rule_custom_call,
     .decompose = decompose_custom_call,
     .prepare = prepare_custom_call,
     .cost = cost_custom_call,
     .vjp = vjp_custom_call,
     .batch = batch_custom_call,
     .verify_runnable = verify_custom_call,
     .effect = effect_of_custom_call,
     .format = "custom<symbol>($call_target_name) `(` operands `)` attr-dict `:` functional-type",
     .doc = "A call of a function by name: linear algebra, and functions that users register (StableHLO custom_call).",
     .traits = {.side_effect = true, .shares_memory = true}},
};
static_assert(all_complete(kCustomCallOps));

// ---- identities ----------------------------------------------------------------------------------------------------

void check_identity(const OpView& op) {
  const bool fits = op.operand_count() == 1 && op.result_count() <= 1 &&
                    (op.result_count() == 0 || op.result_type() == op.operand_type(0));
  if (fits) return;
  const std::string results = types_text(op.module(), list_of_results(op.module(), op.id()));
  const std::string types = str(types_text(op.module(), op.operands()), results.empty() ? " ->" : " -> ", results);
  fail<ShapeError>(subject(op), "it must have one operand, and no result or one of the same type", types);
}

// A call without results keeps the dims of its operand sharded, too: nothing is sent for it.
ShardingRule rule_identity(const OpView& op) {
  if (op.operand_count() != 1) return {};
  if (op.result_count() == 1) return rule_like_first_result(op);
  const Dims& shape = op.operand_type(0).shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) { return rule.factor(shape[dim]); });
}

std::optional<Kernel> prepare_identity_call(const OpView& op, const KernelTypes& types) {
  if (op.result_count() == 0) return [](KernelContext&) {};
  return prepare_identity(op, types);
}

CustomCallDef identity_call(std::string_view target) {
  return {.name = std::string(target),
          .check = check_identity,
          .rule = rule_identity,
          .prepare = prepare_identity_call,
          .cost = costs_nothing,
          .vjp = vjp_identity,
          .batch = batch_by_leading_dim};
}

}  // namespace

void register_identity_calls() {
  // Layouts, memories and questions of other compilers: no number depends on them.
  constexpr std::string_view kTargets[] = {"annotate_device_placement", "InspectSharding", "LayoutConstraint",
                                           "MoveToDevice", "MoveToHost"};
  for (const std::string_view target : kTargets) {
    CustomCallDef def = identity_call(target);
    def.propagates = true;
    register_custom_call(std::move(def));
  }
  register_custom_call(identity_call("Sharding"));
}

std::span<const OpDef> custom_call_ops() { return kCustomCallOps; }

}  // namespace shardwise
