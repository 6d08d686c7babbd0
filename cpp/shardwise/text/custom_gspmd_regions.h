// SPDX-License-Identifier: Apache-2.0
//
// Manual regions as JAX prints them without Shardy: calls around ops on shards.
//
//   %1 = custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}              %3 = sdy.manual_computation(%0)
//   %2 = call @shmap_body(%1)                                                                (%a) { call @shmap_body(%a) }
//   %3 = custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[4,1]<=[4]}"}
//
// The operand of a call that enters has the sharding of an @Sharding call, which is a constraint by now.
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/text/gspmd_sharding.h"

namespace shardwise {

bool is_gspmd_border(std::string_view target);  // the target of a call around a region

// Replaces the calls of a whole module. Returns the manual computations. Throws ShardingError or UnsupportedError.
std::vector<OpId> form_manual_regions(Module& module, GspmdShardings& shardings);

}  // namespace shardwise
