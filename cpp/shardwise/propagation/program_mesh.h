// SPDX-License-Identifier: Apache-2.0
//
// The one mesh that the shardings of a program are of.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// The mesh of the program's shardings; null if there are none. Throws ShardingError if there are several meshes that do
// not have the same devices, or if a sharding is on a single device.
MeshPtr main_mesh(const Module& module);
// The same, or else the first declared mesh of several devices, on which a program without shardings runs.
MeshPtr program_mesh(const Module& module);
// As program_mesh, but null if main_mesh throws.
MeshPtr only_mesh(const Module& module);

}  // namespace shardwise
