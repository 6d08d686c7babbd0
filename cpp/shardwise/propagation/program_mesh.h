// SPDX-License-Identifier: Apache-2.0
//
// The mesh of a program: that of its shardings. If they are of several meshes over the same devices, the one that the
// program declares first.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// Null if the program has no shardings. Throws ShardingError if there are meshes over different devices, or if a
// sharding is on a single device.
MeshPtr main_mesh(const Module& module);
// The same, or else the first declared mesh of several devices, on which a program without shardings runs.
MeshPtr program_mesh(const Module& module);
// As program_mesh, but null if there are several meshes, or a single device.
MeshPtr only_mesh(const Module& module);

}  // namespace shardwise
