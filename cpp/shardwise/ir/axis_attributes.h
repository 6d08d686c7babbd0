// SPDX-License-Identifier: Apache-2.0
//
// Converts attributes of collectives between axis names and the axes of a mesh.
//
//   axes_per_dim(mesh, {{x}, {}})                                 // AxesPerDimAttr [{"x"}, {}]
//   moves_attr(mesh, {{.axes = {x}, .from_dim = 0, .to_dim = 1}}) // [{axes = {"x"}, from_dim = 0, to_dim = 1}]
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/attribute.h"

namespace shardwise {

AxesPerDimAttr axes_per_dim(const Mesh& mesh, std::span<const AxisList> dims);
std::vector<AxisList> resolve(const Mesh& mesh, const AxesPerDimAttr& lists);

AttrArray moves_attr(const Mesh& mesh, std::span<const AllToAllMove> moves);
// Returns none unless the attribute is a dictionary with `axes`, `from_dim` and `to_dim`.
std::optional<AllToAllMove> move_of(const Mesh& mesh, const Attribute& attribute);

}  // namespace shardwise
