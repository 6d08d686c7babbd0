// SPDX-License-Identifier: Apache-2.0
//
// StableHLO's collectives, over lists of devices. In a manual computation they exchange the shards of its axes, and become
// ops on whole values (device_ops.h). A text that contains them elsewhere is the program of one device, in which groups
// of one device are identities. Shardwise's own collectives name axes (collectives.h).
//
//   %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
//          : (tensor<4x8xf32>) -> tensor<4x16xf32>
//   ([i, j])->([i, k]) {i=4, j=8, k=16} need_replication={j, k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> stablehlo_collective_ops();

}  // namespace shardwise
