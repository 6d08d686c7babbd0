// SPDX-License-Identifier: Apache-2.0
//
// Meshes and shardings as JSON text, both ways.
//
//   {"name": "mesh", "axes": [{"name": "x", "size": 4}], "device_ids": [3, 2, 1, 0]}
//   {"mesh": {…}, "dims": [{"axes": ["x", {"axis": "y", "pre": 1, "size": 2}], "open": true, "priority": 1}],
//    "replicated": ["z"], "unreduced": ["w"], "reducer": "sum"}
//
// name, device_ids, open, priority, replicated, unreduced and reducer may be left out. What is no JSON, or JSON of
// another form, is a ParseError (the second names the path, such as `axes[0].size`); an impossible mesh is a MeshError
// and an unknown axis a ShardingError.
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

// The reason alone of an error of the JSON library, "[id] parse error at line 1, column 2: reason; last read: 'bytes'":
// the position is ours to give, and the bytes may be no text at all.
std::string reason_of_json_error(std::string_view what);

// Where the number stands that is too large for any JSON value; `what` is the reader's message, which quotes it.
size_t place_of_large_number(std::string_view json, std::string_view what);

}  // namespace shardwise
