// SPDX-License-Identifier: Apache-2.0
//
// Drops axes of size 1 from shardings: they split nothing, but would conflict with each other.
//
//   sdy.mesh @mesh = <["a"=1, "b"=4]>
//   <@mesh, [{"a", "b", ?}p1, {"a"}p2], replicated={"a"}>     ->     <@mesh, [{"b", ?}p1, {}]>
//
// A dim that becomes closed and empty loses its priority. Collectives lose these axes, too; a collective without axes
// becomes a reshard. Meshes keep their axes.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

void remove_size_one_axes(Module& module);
inline constexpr Pass kRemoveSizeOneAxes{"remove_size_one_axes", "drop axes of size 1 from shardings",
                                         in_place<remove_size_one_axes>};

}  // namespace shardwise
