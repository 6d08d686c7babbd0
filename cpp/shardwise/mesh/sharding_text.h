// SPDX-License-Identifier: Apache-2.0
//
// Reads and prints meshes and shardings in Shardy's syntax.
//
//   <["x"=2, "y"=4], device_ids=[...]>                                       a mesh
//   #sdy.sharding<@mesh, [{"a", ?}, {}p1], replicated={"c"}, unreduced=max{"d"}>
//   <@mesh, [{"a":(1)2}, {}]>         <mesh<["x"=2]>, [{"x"}]>               bare; with an inline mesh
//   #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{?}]>]>                 of several results
//   [{"x":(1)2, ?}p1, {}], replicated={"y"}                                  short: the caller knows the mesh
//   #shardwise.placement<@mesh, [{"a"}: 6, {}: 4], unreduced=max{"b"}>       a placement: each dim with its block
//   #shardwise.placement<@mesh, [{}: 24], unreduced=owned{"b"}>              … of an owned value
//
// `?` marks an open dim, and `pN` its priority. unreduced={...} is a sum. The reducers prod, and, or are extensions;
// the others are Shardy's. Parsing and printing are inverse to each other, except for white space, the order of
// replicated and unreduced axes, and an explicit `sum`.
//
// Invalid text is a ParseError with line and column. Axes that the mesh does not have are a ShardingError, from
// `resolve`. `verify` checks whether a sharding fits a tensor.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/mesh/placement.h"
#include "shardwise/mesh/sdy_cursor.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

// Returns the mesh of that name, or null.
using MeshLookup = std::function<MeshPtr(std::string_view name)>;

// These parse at the cursor and move it past the text.
Mesh parse_mesh(SdyCursor& cursor, std::string symbol_name);                    // <["x"=2]>
TensorSharding parse_sharding(SdyCursor& cursor, const MeshLookup& find_mesh);  // with or without #sdy.sharding
TensorSharding parse_short_sharding(SdyCursor& cursor, MeshPtr mesh);           // [{"x"}, {}], replicated={"y"}
std::vector<RawAxisRef> parse_axis_list(SdyCursor& cursor);                     // {"x", "y":(1)2}
RawAxisRef parse_axis(SdyCursor& cursor);                                       // "y":(1)2
Placement parse_placement(SdyCursor& cursor, const MeshLookup& find_mesh);      // with or without #shardwise.placement

// These parse a whole text.
TensorSharding parse_sharding(std::string_view text, const MeshLookup& find_mesh);
TensorSharding parse_short_sharding(std::string_view text, MeshPtr mesh);

std::string text(const TensorSharding& sharding);        // #sdy.sharding<@mesh, [...]>
std::string bare_text(const TensorSharding& sharding);   // <@mesh, [...]>
std::string short_text(const TensorSharding& sharding);  // [...], replicated={...}
std::string per_value_text(const std::vector<TensorSharding>& shardings);
std::string text(const Placement& placement);                    // #shardwise.placement<@mesh, [...]>
std::string dim_text(const Mesh& mesh, const DimSharding& dim);  // {"a", ?}p1

}  // namespace shardwise
