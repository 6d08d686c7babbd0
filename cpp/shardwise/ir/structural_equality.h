// SPDX-License-Identifier: Apache-2.0
//
// Whether two modules are the same program: the same functions, ops in the same order, corresponding operands, and
// equal types, attributes (in any order), shardings, block sizes and meshes. Ids, contexts and locations may differ.
//
//   structurally_equal(module, parse(print(module), context))   // always
//
// A result without a sharding equals one with an open sharding if another result of the op has a sharding, because
// their text is the same.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

bool structurally_equal(const Module& a, const Module& b);
// The same for two regions that capture no values.
bool same_bodies(const Module& module, RegionId a, RegionId b);

}  // namespace shardwise
