// SPDX-License-Identifier: Apache-2.0
//
// Writes constraints for one group of states, and its rows of the report:
//
//   writer.write(graph, group, updates, report.states);
//
// Each constraint has the attribute `cause`, by which the ledger and why() name the switch:
//
//   sdy.sharding_constraint %w <@mesh, [{"data"}, {}]> {cause = "shard_update: state w"}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/shard_update/sharded_state.h"
#include "shardwise/shard_update/update_graph.h"
#include "shardwise/shard_update/update_layout.h"

namespace shardwise {

struct StateUpdate {
  ValueId state;
  TensorSharding own;  // without the switch; the gradient of a whole weight is summed to this
  UpdateLayout layout;
};

class UpdateWriter {
 public:
  UpdateWriter(Module& module, MeshPtr mesh, AxisList axes, std::optional<DType> gather_dtype)
      : module_(module),
        rewrite_(module),
        mesh_(std::move(mesh)),
        axes_(std::move(axes)),
        gather_dtype_(gather_dtype) {}

  void write(UpdateGraph& graph, const UpdateGroup& group, const std::vector<StateUpdate>& updates,
             std::vector<std::pair<ValueId, ShardedState>>& rows);

 private:
  ValueId constrain(ValueId value, const TensorSharding& sharding, const std::string& cause);  // behind it
  ValueId constrain(Cursor at, ValueId value, const TensorSharding& sharding, const std::string& cause);
  void scatter_gradient(UpdateGraph& graph, ValueId gradient, const TensorSharding& sharding, const std::string& name);
  void scatter_results(const UpdateGraph& graph, const UpdateGroup& group, const TensorSharding& sharding,
                       const std::string& name);
  void gather_where_read(ValueId value, std::span<const Use> uses, const TensorSharding& sharding,
                         const std::string& cause);
  void gather(UpdateGraph& graph, ValueId weight, const StateUpdate& update, ShardedState& row);
  ShardedState row_of(const StateUpdate& update, const UpdateGroup& group) const;
  std::string name_of(ValueId value) const;

  Module& module_;
  Rewrite rewrite_;
  MeshPtr mesh_;
  AxisList axes_;
  std::optional<DType> gather_dtype_;
};

}  // namespace shardwise
