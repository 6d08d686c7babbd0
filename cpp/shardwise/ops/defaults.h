// SPDX-License-Identifier: Apache-2.0
//
// What the sharding rule of an op already implies (declared in op_def.h):
//
//   partition_by_rule   masks the padding of uneven dims that carry a reduction factor with the neutral element of its
//                       reducer, then runs the same op on the local operands:
//                         custom_sum over 17 columns on 4 devices:   select(column < 17, x, 0), custom_sum
//   cost_by_rule        bytes of operands and results; flops: the product of all factors, twice for a contraction
#pragma once

#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The op's regions, copied to the module that its local form is written to.
std::vector<RegionId> copy_regions(const OpView& op, Module& target);

}  // namespace shardwise
