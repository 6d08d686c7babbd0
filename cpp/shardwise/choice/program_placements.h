// SPDX-License-Identifier: Apache-2.0
//
// The placements of a program after propagation, and the shardings that its text shows for them.
//
//   of(<@mesh, [{"x", ?}p1, {}], replicated={"y"}>, tensor<17x4xf32>)     <@mesh, [{"x"}: 5, {}: 4]> on x=4
//   of(none, tensor<17x4xf32>)                                            <@mesh, [{}: 17, {}: 4]>
//
// Values with equal placements share one id. Placements are on the mesh of the program, except for shardings of another
// mesh over the same devices; replicated values are always on the mesh of the program. Blocks are ceil(size / shards).
// A program without a mesh has none: every id is none.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

// The placement of a value as a user sees it, on the mesh of its own sharding. None before the assigned stage, and for
// a value with neither a part nor a sharding, which is whole on every device.
std::optional<Placement> placement_of_value(const Module& module, ValueId value);

// The form of a placement in choices: without sizes, and with the name of any mesh other than `mesh`, that of the
// program; "" for none.
std::string placement_text(const Context& context, PlacementId placement, const MeshPtr& mesh);

class ProgramPlacements {
 public:
  explicit ProgramPlacements(const Module& module);

  const MeshPtr& mesh() const { return mesh_; }
  bool has_several_meshes() const { return !others_.empty(); }
  const std::vector<MeshPtr>& other_meshes() const { return others_; }
  const Placement* find(PlacementId id) const { return id ? &context_.placement(id) : nullptr; }

  PlacementId at(ValueId value);        // of its part, or else of its sharding
  PlacementId declared(ValueId value);  // of its sharding, without unreduced axes
  PlacementId result(const Function& function, size_t i);
  // Results of main that may be wherever they are made (candidates/free_results.h).
  void open(std::unordered_set<ValueId> results) { open_ = std::move(results); }
  bool is_open(ValueId value) const { return !open_.empty() && open_.contains(value); }
  PlacementId reduced(ShardingId sharding, TypeId type);  // without unreduced axes
  PlacementId of(ShardingId sharding, TypeId type);       // with them
  PlacementId replicated(TypeId type) { return reduced({}, type); }
  // Where an annotation puts a value that is at `at_home`. Annotated unreduced axes stay if the value is unreduced over
  // them; an annotation alone makes nothing unreduced.
  PlacementId annotated(ValueId value, PlacementId at_home);
  // `unreduced` is sorted. A mesh over the same devices; null is that of the program.
  PlacementId of(TypeId type, std::vector<AxisList> dims, AxisList unreduced, Reducer reducer,
                 const MeshPtr& mesh = nullptr, bool is_owned = false) const;
  const std::string& text(PlacementId placement);  // placement_text
  // Closed, for the module's sharding column; none for none.
  ShardingId sharding(PlacementId placement);

 private:
  const Module& module_;
  const MeshPtr& mesh_of(ShardingId sharding) const;

  Context& context_;
  MeshPtr mesh_;
  std::unordered_set<ValueId> open_;
  std::vector<MeshPtr> others_;                        // over the same devices, in other orders or with other axes
  std::unordered_map<uint64_t, PlacementId> reduced_;  // by sharding and type
  std::unordered_map<PlacementId, ShardingId> shardings_;
  std::unordered_map<PlacementId, std::string> texts_;  // few: each op of the program asks for those of its tensors
};

}  // namespace shardwise
