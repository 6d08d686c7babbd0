// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/forward/differentiate_forward.h"

#include "shardwise/base/error.h"
#include "shardwise/transforms/forward/tangent_walk.h"
#include "shardwise/transforms/gradient/in_place_expansion.h"

namespace shardwise {

Tangents append_jvp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                    std::span<const ValueId> tangents) {
  check_internal(wrt.size() == tangents.size(), "one tangent per variable");
  InPlaceExpansion expansion(builder, wrt);
  expansion.run();
  std::vector<ValueId> wanted(outputs.begin(), outputs.end());
  for (ValueId& output : wanted) output = expansion.expanded()(output);
  TangentWalk walk(builder, wanted, wrt, tangents);
  walk.run();
  Tangents made{.values = {}, .replaced = walk.replaced()};
  for (const auto& [from, to] : expansion.expanded().targets()) made.replaced.add(from, to);
  for (const ValueId output : outputs) made.values.push_back(walk.tangent(made.replaced(output)));
  return made;
}

}  // namespace shardwise
