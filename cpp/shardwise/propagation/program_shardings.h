// SPDX-License-Identifier: Apache-2.0
//
// Shardings after propagation, in one form, so that equal means equal id: closed, on the mesh of the program, without
// priorities and replicated lists; "no sharding" is the whole value on every device.
//
//   <@mesh, [{"x", ?}p1, {}], replicated={"y"}>   and   <@mesh, [{"x"}, {}]>      one id
//   none                                          and   <@mesh, [{}, {}]>         one id
//
// A program without a mesh has no shardings: every id is none.
#pragma once

#include <map>

#include "shardwise/ir/module.h"

namespace shardwise {

// The mesh that the program's shardings are of; null when there are none. ShardingError when there are several that are
// not one mesh under different names, or one device is singled out.
MeshPtr main_mesh(const Module& module);
// The same, or else the first mesh of several devices that the program declares: where it runs without any sharding.
MeshPtr program_mesh(const Module& module);
// As program_mesh, but null where main_mesh is an error.
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
