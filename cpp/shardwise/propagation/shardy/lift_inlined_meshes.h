// SPDX-License-Identifier: Apache-2.0
//
// Gives every inline mesh of a sharding a symbol, and merges equal meshes:
//
//   sdy.mesh @grid = <["x"=2]>                                     sdy.mesh @grid = <["x"=2]>
//   sdy.mesh @same = <["x"=2]>                                     sdy.mesh @mesh = <["x"=4]>
//   <mesh<["x"=2]>, [{"x"}]>   <@same, [{"x"}]>            ->      <@grid, [{"x"}]>   <@grid, [{"x"}]>
//   <mesh<["x"=4]>, [{"x"}]>   <mesh<[], device_ids=[5]>, []>      <@mesh, [{"x"}]>   <@maximal_mesh_5, []>
//
// The first declared mesh replaces all meshes that equal it. New ones are named mesh, mesh_0, mesh_1, …, or after their
// only device, or empty_mesh, as in Shardy. Two meshes with different device orders are not equal.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

void lift_inlined_meshes(Module& module);
inline constexpr Pass kLiftInlinedMeshes{"lift_inlined_meshes", "give every mesh one symbol",
                                         in_place<lift_inlined_meshes>};

}  // namespace shardwise
