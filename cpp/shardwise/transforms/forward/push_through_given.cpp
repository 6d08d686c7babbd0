// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/transforms/forward/push_forward.h"
#include "shardwise/transforms/forward/tangent_regions.h"
#include "shardwise/transforms/forward/tangent_walk.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/gradient/given_derivatives.h"

namespace shardwise {

void push_through_given(TangentWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const std::vector<ValueId> operands(module.operands(id).begin(), module.operands(id).end());
  const uint32_t count = module.op(id).result_count;
  const GivenDerivative derivative = given_derivative(module, id);
  const std::vector<ValueId> of_operands = walk.tangents_of(operands);
  refuse_closed_over(module, id, derivative, [&](size_t i) { return bool{of_operands[i]}; });
  std::vector<ValueId> inputs = operands;
  if (derivative.tangents) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (derivative.has_gradient[i]) inputs.push_back(tangent_or_zeros(builder, of_operands[i], operands[i]));
    }
    const std::vector<ValueId> made = append_given(builder, *derivative.tangents, inputs);
    std::vector<ValueId> tangents(count);
    size_t next = count;
    for (uint32_t i = 0; i < count; ++i) {
      if (derivative.has_cotangent[i]) tangents[i] = made[next++];
    }
    return walk.put_in_place_of(id, made, tangents);
  }
  if (derivative.is_reverse_only) {
    fail<UnsupportedError>("jvp", "forward mode cannot pass a function of custom_vjp, which has a reverse rule alone",
                           derivative.forward.name, "use sw.custom_jvp, or differentiate in reverse mode");
  }
  // The transpose of its vjp, as in push_forward.h.
  const std::vector<ValueId> forward = append_given(builder, derivative.forward, operands);
  Builder scratch(module, module.add_region(), builder.loc());
  std::vector<ValueId> residuals(forward.begin() + count, forward.end()), variables, outputs, seeds;
  for (uint32_t i = 0; i < count; ++i) {
    if (!derivative.has_cotangent[i]) continue;
    variables.push_back(module.add_argument(scratch.region(), module.value(forward[i]).type));
    residuals.push_back(variables.back());
  }
  const std::vector<ValueId> gradients = append_given(scratch, derivative.backward, residuals);
  size_t next = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!derivative.has_gradient[i]) continue;
    if (of_operands[i]) {
      outputs.push_back(gradients[next]);
      seeds.push_back(of_operands[i]);
    }
    ++next;
  }
  const Gradients made = append_vjp_without_zeros(scratch, outputs, seeds, variables);
  move_needed_ops(builder, scratch.region(), made.values);
  std::vector<ValueId> tangents(count);
  next = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (derivative.has_cotangent[i]) tangents[i] = made.values[next++];
  }
  walk.put_in_place_of(id, std::span(forward).first(count), tangents);
}

}  // namespace shardwise
