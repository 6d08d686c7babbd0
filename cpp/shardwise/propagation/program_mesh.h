// SPDX-License-Identifier: Apache-2.0
//
// The one mesh that the shardings of a program are of.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// The mesh that the program's shardings are of; null when there are none. ShardingError when there are several that are
// not one mesh under different names, or one device is singled out.
MeshPtr main_mesh(const Module& module);
// The same, or else the first mesh of several devices that the program declares: where it runs without any sharding.
MeshPtr program_mesh(const Module& module);
// As program_mesh, but null where main_mesh is an error.
MeshPtr only_mesh(const Module& module);

}  // namespace shardwise
