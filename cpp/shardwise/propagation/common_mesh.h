// SPDX-License-Identifier: Apache-2.0
//
// The mesh of the shardings of one op's tensors. Shardings propagate only between tensors on one mesh.
//
//   common_mesh(context, {<@m, …>, none, <@m, …>})     @m
//   common_mesh(context, {<@m, …>, <@n, …>})           null, unless both have the same devices: then the first, @m
#pragma once

#include <span>

#include "shardwise/ir/module.h"

namespace shardwise {

// Returns the mesh under the first of its names. Null when the meshes differ, when there is none, or when it has no
// axes.
inline const MeshPtr* common_mesh(const Context& context, std::span<const ShardingId> shardings) {
  const MeshPtr* common = nullptr;
  for (ShardingId id : shardings) {
    if (!id) continue;
    const MeshPtr& mesh = context.sharding(id).mesh;
    if (mesh == nullptr || mesh->is_empty()) continue;
    if (mesh->is_maximal() || (common != nullptr && *common != mesh && !(*common)->same_devices(*mesh))) return nullptr;
    if (common == nullptr) common = &mesh;
  }
  return common;
}

}  // namespace shardwise
