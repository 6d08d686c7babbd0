// SPDX-License-Identifier: Apache-2.0
//
// The mesh on which an op is computed:
//
//   {<@a, [{"x"}: 4]>, <@b, [{}: 16]>}      @a: a replicated value is on every mesh
#pragma once

#include <span>

#include "shardwise/ir/module.h"

namespace shardwise {

// The mesh of the tensors of an op: that of the first which is not replicated, or else of the first. None are on
// others.
const MeshPtr& working_mesh(const Context& context, std::span<const PlacementId> tensors);

}  // namespace shardwise
