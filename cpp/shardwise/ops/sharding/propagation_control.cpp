// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/propagation_control.h"

#include <algorithm>
#include <array>

#include "shardwise/base/text.h"
#include "shardwise/ir/builder.h"
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

// On an op that vmap made: the group of one example.
constexpr std::string_view kGroupOfExample = "shardwise.group_of_example";
// Those of programs are smaller, and a trace numbers its groups from 0.
constexpr int64_t kFirstOfVmap = int64_t{1} << 62;

// The group of the batched members of `op`'s group: members that vmap does not batch stay in the other one, since all
// members have one shape.
int64_t batched_group(const Module& module, const OpView& op, const Dims& shape) {
  const int64_t group = op.attrs().get_int("group_id");
  int64_t next = kFirstOfVmap;
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    const OpId id{i};
    if (!module.op(id).def->traits.sharding_group) continue;
    const Attrs& attrs = module.attrs(id);
    const auto* of_example = attrs.find<IntAttr>(kGroupOfExample);
    const bool is_alike = of_example != nullptr && of_example->value == group;
    if (is_alike && module.type(module.operands(id)[0]).shape == shape) return attrs.get_int("group_id");
    next = std::max(next, attrs.get_int("group_id") + 1);
  }
  return next;
}

void batch_group(BatchContext& context) {
  const OpView op = context.op();
  Module& module = context.builder().module();
  const ValueId member = context.batched(0);
  Attrs attrs = op.attrs();
  const IntAttr group = attrs.get<IntAttr>("group_id");
  IntAttr batched = group;
  batched.value = batched_group(module, op, module.type(member).shape);
  attrs.set(kGroupOfExample, group);
  attrs.set("group_id", batched);
  context.builder().create_op(op.name(), std::array{member}, attrs);
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
     .batch = batch_group,
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
