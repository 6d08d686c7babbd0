// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/differentiate.h"

#include "shardwise/base/error.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/gradient/in_place_expansion.h"
#include "shardwise/transforms/gradient/reverse_walk.h"

namespace shardwise {

Gradients append_vjp_without_zeros(Builder& builder, std::span<const ValueId> outputs,
                                   std::span<const ValueId> cotangents, std::span<const ValueId> wrt) {
  check_internal(outputs.size() == cotangents.size(), "one cotangent per output");
  InPlaceExpansion expansion(builder, wrt);
  expansion.run();
  ReverseWalk walk(builder, wrt);
  for (size_t i = 0; i < outputs.size(); ++i) {
    // The caller names the output of the expanded op, which no cotangent flows into any more.
    if (cotangents[i]) walk.seed(expansion.expanded()(outputs[i]), cotangents[i]);
  }
  walk.run();
  Gradients gradients{.values = {}, .replaced = walk.replaced()};
  for (const ValueId value : wrt) gradients.values.push_back(walk.cotangent(value));
  for (const auto& [from, to] : expansion.expanded().targets()) gradients.replaced.add(from, to);
  return gradients;
}

Gradients append_vjp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                     std::span<const ValueId> wrt) {
  Gradients gradients = append_vjp_without_zeros(builder, outputs, cotangents, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!gradients.values[i]) gradients.values[i] = build_zeros(builder, builder.module().type(wrt[i]));
  }
  return gradients;
}

}  // namespace shardwise
