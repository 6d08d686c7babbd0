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

// Extracts the reason from an error of the JSON library, "[id] parse error at line 1, column 2: reason; last read:
// 'bytes'". Shardwise prints the position itself, and the bytes may not be valid text.
std::string reason_of_json_error(std::string_view what);

// The position of a number that is too large for JSON; `what` is the library's message, which quotes the number.
size_t place_of_large_number(std::string_view json, std::string_view what);

}  // namespace shardwise
