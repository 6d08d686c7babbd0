// SPDX-License-Identifier: Apache-2.0
//
// Sharding groups before and after propagation. During propagation, ValueClasses keeps their shardings equal.
//
//   %x: [{"a", ?}, {?}];  sdy.sharding_group %x group_id=5;  sdy.sharding_group %y group_id=5
//   sync:   %y: [{"a", ?}, {?}]
//
// A value in two groups merges them. Members that start with different shardings keep them: an open constraint after
// each takes over its uses and its place in the group. That is legal but rarely intended, so there is a warning:
//
//   sharding_group 5: members should be annotated alike, got [{"a"}, {}] at f.mlir:3 and [{"b"}, {}] at f.mlir:4; …
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// Throws ShardingError for members of different shapes, or in different manual regions.
void sync_sharding_groups(Module& module, PassContext& context);
void drop_sharding_groups(Module& module);

// Whether the value is the result of such a constraint. The name in its location is the member's.
bool is_made_constraint(const Module& module, const Provenance& provenance, ValueId value);

}  // namespace shardwise
