// SPDX-License-Identifier: Apache-2.0
//
// Shardings after propagation, in a normal form, so that equal shardings have equal ids: closed, on the mesh of the
// program, without priorities and replicated lists. "No sharding" is replicated.
//
//   <@mesh, [{"x", ?}p1, {}], replicated={"y"}>   and   <@mesh, [{"x"}, {}]>      one id
//   none                                          and   <@mesh, [{}, {}]>         one id
//
// A program without a mesh has no shardings: every id is none.
#pragma once

#include <map>

#include "shardwise/ir/module.h"

namespace shardwise {

// The mesh of the program's shardings; null if there are none. Throws ShardingError if there are several meshes that do
// not have the same devices, or if a sharding is on a single device.
MeshPtr main_mesh(const Module& module);
// The same, or else the first declared mesh of several devices, on which a program without shardings runs.
MeshPtr program_mesh(const Module& module);
// As program_mesh, but null if main_mesh throws.
MeshPtr only_mesh(const Module& module);

class ProgramShardings {
 public:
  explicit ProgramShardings(const Module& module);

  const MeshPtr& mesh() const { return mesh_; }
  const TensorSharding* find(ShardingId id) const { return id ? &context_.sharding(id) : nullptr; }
  ShardingId declared(ValueId value);                      // without unreduced axes
  ShardingId reduced(ShardingId id, int64_t ndim);         // in the one form, without unreduced axes
  ShardingId with_unreduced(ShardingId id, int64_t ndim);  // in the one form
  ShardingId replicated(int64_t ndim) const;
  // `unreduced` is sorted.
  ShardingId of(std::vector<AxisList> dims, AxisList unreduced, Reducer reducer) const;

 private:
  const Module& module_;
  Context& context_;
  MeshPtr mesh_;
  std::map<std::pair<ShardingId, int64_t>, ShardingId> reduced_;
};

}  // namespace shardwise
