// SPDX-License-Identifier: Apache-2.0
//
// Checks the invariants that every pass must preserve. Runs between passes in tests, and always if SHARDWISE_VERIFY is
// set.
//
//   verify(module);
//   // InternalError: a bug in shardwise: stablehlo.add: operand 1 must be defined before the op … (at train.py:31)
//
// Structure: ids in range, every op and region in one place, every value defined before its uses, in an enclosing
// region. Types: as `infer` computes them. Shardings: meshes declared (or inline), axes valid, one entry per dim.
// Broken structure is an InternalError; types and shardings fail with the errors of `infer` and of mesh/sharding.h.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void verify(const Module& module);

}  // namespace shardwise
