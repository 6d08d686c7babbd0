// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/propagation_control.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/shared/identity.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

void infer_propagation_barrier(const InferContext& op, std::vector<TypeId>& results) {
  infer_identity(op, results);
  const int64_t direction = op.attr<IntAttr>("allowed_direction").value;
  // BOTH would not be a barrier.
  if (direction < 0 || direction > 2) {
    op.fail_shape("allowed_direction must be NONE, FORWARD or BACKWARD", direction == 3 ? "BOTH" : str(direction),
                  "leave the barrier out for BOTH");
  }
}

void infer_group(const InferContext& op, std::vector<TypeId>&) {
  op.expect_operands(1);
  if (op.attr<IntAttr>("group_id").value < 0) {
    op.fail_shape("group_id must be at least 0", str(op.attr<IntAttr>("group_id").value));
  }
}
std::optional<Kernel> prepare_nothing(const OpView&, const KernelTypes&) {
  return [](KernelContext&) {};
}

constexpr OpDef identity(std::string_view name, InferFn infer, std::string_view format, std::string_view doc,
                         Traits traits) {
  return identity_op(name, infer, vjp_identity, batch_by_leading_dim, format, doc, traits);
}

constexpr OpDef kPropagationControlOps[] = {
    identity("sdy.data_flow_edge", infer_identity, "operands optional-sharding($sharding) attr-dict `:` result-type",
             "Connects the values that one value becomes in and after regions (Shardy data_flow_edge).",
             // Kept even if nothing uses its result: the edge itself carries the sharding.
             {.side_effect = true, .data_flow_edge = true}),
    identity("sdy.func_data_flow_edge", infer_identity, "operands attr-dict `:` result-type",
             "The identity of what a function takes, or of what a call returns (Shardy func_data_flow_edge).", {}),
    identity("sdy.propagation_barrier", infer_propagation_barrier,
             "operands `allowed_direction=` custom<direction>($allowed_direction) attr-dict `:` result-type",
             "The identity that shardings pass in one direction only, or in none (Shardy propagation_barrier).",
             {.barrier = true}),
    {.name = "sdy.sharding_group",
     .infer = infer_group,
     .rule = no_rule,
     .prepare = prepare_nothing,
     .cost = costs_nothing,
     .vjp = not_differentiable,
     .batch = batch_by_leading_dim,
     .no_vjp_reason = "it has no result",
     .format = "operands `group_id=` $group_id attr-dict `:` operand-type",
     .doc = "Its operand is sharded like all values of the same group (Shardy sharding_group).",
     // It has no result, so without an effect it would be dead code.
     .traits = {.side_effect = true, .sharding_group = true}},
};
static_assert(all_complete(kPropagationControlOps));

}  // namespace

std::span<const OpDef> propagation_control_ops() { return kPropagationControlOps; }

ValueId create_data_flow_edge(Builder& builder, ValueId owner) {
  return builder.create(kPropagationControlOps[0], {owner});
}

}  // namespace shardwise
