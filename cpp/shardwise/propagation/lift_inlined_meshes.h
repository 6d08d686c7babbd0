// SPDX-License-Identifier: Apache-2.0
//
// Gives every mesh that a sharding spells out a symbol, and equal meshes one symbol:
//
//   sdy.mesh @grid = <["x"=2]>                                     sdy.mesh @grid = <["x"=2]>
//   sdy.mesh @same = <["x"=2]>                                     sdy.mesh @mesh = <["x"=4]>
//   <mesh<["x"=2]>, [{"x"}]>   <@same, [{"x"}]>            ->      <@grid, [{"x"}]>   <@grid, [{"x"}]>
//   <mesh<["x"=4]>, [{"x"}]>   <mesh<[], device_ids=[5]>, []>      <@mesh, [{"x"}]>   <@maximal_mesh_5, []>
//
// The first mesh declared stands for all equal to it; new ones are called mesh, mesh_0, mesh_1, …, or after their only
// device, or empty_mesh, as Shardy calls them. Two meshes with their devices in different orders are not equal.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

void lift_inlined_meshes(Module& module);
inline constexpr Pass kLiftInlinedMeshes{"lift_inlined_meshes", "give every mesh one symbol", in_place<lift_inlined_meshes>};

}  // namespace shardwise
