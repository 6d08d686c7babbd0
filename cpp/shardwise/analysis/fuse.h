// SPDX-License-Identifier: Apache-2.0
//
// Finds the groups of ops that run as one kernel (fusion.h), in linear time:
//
//   for (const FusionGroup& group : fuse(module, {.fused_attention = hardware.fused_attention}).groups) {
//     total += group_time(module, group, hardware).ps();
//   }
#pragma once

#include "shardwise/analysis/fusion.h"

namespace shardwise {

Fusion fuse(const Module& module, const FusionOptions& options);

}  // namespace shardwise
