// SPDX-License-Identifier: Apache-2.0
//
// The placements of a program after propagation, and the shardings that its text shows for them.
//
//   of(<@mesh, [{"x", ?}p1, {}], replicated={"y"}>, tensor<17x4xf32>)     <@mesh, [{"x"}: 5, {}: 4]> on x=4
//   of(none, tensor<17x4xf32>)                                            <@mesh, [{}: 17, {}: 4]>
//
// Values that devices hold alike have one id. All placements are on the mesh of the program, and their blocks are
// ceil(size / shards). A program without a mesh has none: every id is none.
#pragma once

#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

class ProgramPlacements {
 public:
  explicit ProgramPlacements(const Module& module);

  const MeshPtr& mesh() const { return mesh_; }
  const Placement* find(PlacementId id) const { return id ? &context_.placement(id) : nullptr; }

  PlacementId declared(ValueId value);  // of its sharding, without unreduced axes
  PlacementId result(const Function& function, size_t i);
  PlacementId reduced(ShardingId sharding, TypeId type);  // without unreduced axes
  PlacementId of(ShardingId sharding, TypeId type);       // with them
  PlacementId replicated(TypeId type) { return reduced({}, type); }
  // `unreduced` is sorted.
  PlacementId of(TypeId type, std::vector<AxisList> dims, AxisList unreduced, Reducer reducer) const;
  // Closed, for the module's sharding column; none for none.
  ShardingId sharding(PlacementId placement);

 private:
  const Module& module_;
  Context& context_;
  MeshPtr mesh_;
  std::unordered_map<uint64_t, PlacementId> reduced_;  // by sharding and type
  std::unordered_map<PlacementId, ShardingId> shardings_;
};

}  // namespace shardwise
