// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/custom_call.h"

#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_custom_call(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  if (op.attr<std::string>("call_target_name").empty()) op.fail_shape("call_target_name must not be empty");
  infer_declared(op, results);
}

bool effect_of_custom_call(const OpView& op) {
  const bool* declared = op.attrs().find<bool>("has_side_effect");
  return declared != nullptr && *declared;
}

constexpr OpDef custom_call() {
  OpDef def = propagation_only_op("stablehlo.custom_call", infer_custom_call, no_rule,
                                  "custom<symbol>($call_target_name) `(` operands `)` attr-dict `:` functional-type",
                                  "A call of what its target knows (StableHLO custom_call).", {.side_effect = true});
  def.effect = effect_of_custom_call;
  return def;
}

constexpr OpDef kCustomCallOps[] = {custom_call()};
static_assert(all_complete(kCustomCallOps));

}  // namespace

std::span<const OpDef> custom_call_ops() { return kCustomCallOps; }

}  // namespace shardwise
