// SPDX-License-Identifier: Apache-2.0
//
// Writes the sharding rule of every op into its attribute sdy.sharding_rule, for inspection:
//
//   %2 = stablehlo.dot %0, %1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j])
//          {i=4, j=16, k=8} reduction={k}>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
//
// An op that has the attribute keeps it. Ops that annotate shardings have no rule, nor have ops without operands.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module populate_rules(Module module, PassContext& context);
inline constexpr Pass kPopulateRules{.name = "populate_rules",
                                     .doc = "write each op's sharding rule into its attributes",
                                     .run = populate_rules,
                                     .reads = option("conservative")};

// Removes the rules without `custom`, which no user wrote, as Shardy does after propagation.
void drop_populated_rules(Module& module);

}  // namespace shardwise
