// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes meshes and shardings as JSON text.
//
//   {"name": "mesh", "axes": [{"name": "x", "size": 4}], "device_ids": [3, 2, 1, 0]}
//   {"mesh": {…}, "dims": [{"axes": ["x", {"axis": "y", "pre": 1, "size": 2}], "open": true, "priority": 1}],
//    "replicated": ["z"], "unreduced": ["w"], "reducer": "sum"}
//
// name, device_ids, open, priority, replicated, unreduced and reducer are optional. Invalid JSON is a ParseError. So is
// JSON of another form, with its path, such as `axes[0].size`. An invalid mesh is a MeshError, and an unknown axis a
// ShardingError.
#pragma once

#include <string>
#include <string_view>

#include "shardwise/mesh/mesh.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

std::string mesh_to_json(const Mesh& mesh);
Mesh mesh_from_json(std::string_view json);

std::string sharding_to_json(const TensorSharding& sharding);
TensorSharding sharding_from_json(std::string_view json);

}  // namespace shardwise
