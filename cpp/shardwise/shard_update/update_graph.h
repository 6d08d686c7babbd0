// SPDX-License-Identifier: Apache-2.0
//
// The weight updates of one region, main or the body of a loop: which values are elementwise functions of the state.
//
//   func @main(%w, %m, %x) {
//     …                                     the forward pass and the gradient, which read %w
//     %g = dot_general %a, %b               the source of the group
//     %n = add (mul %m, 0.9), %g            members: elementwise, of the shape of %w, and behind them is a result
//     %v = sub %w, (mul %n, 0.1)
//     return %v, %n                         one group: states {%w, %m}, results {%v, %n}
//   }
//
// A member *depends* if a state is behind it by members alone: %v and %n do, a gradient that is only scaled does not.
// An op serves the update if all that reads it is a member or a sum of one: the squares behind the norm of %w.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/use_lists.h"
#include "shardwise/shard_update/broadcast_states.h"

namespace shardwise {

struct UpdateGroup {
  Dims shape = {};
  std::vector<ValueId> states = {};     // arguments of the region, in order
  std::vector<uint32_t> results = {};   // places among the region's results
  std::vector<ValueId> sources = {};    // what is neither a member nor a constant: gradients
  std::vector<ValueId> gradients = {};  // members or sources: the sums of sources that the update reads
  std::vector<ValueId> scales = {};     // what members repeat along dims: a norm, a threshold
  std::vector<ValueId> weights = {};    // states, or members that depend, that the forward pass reads
  std::vector<BroadcastState> broadcasts = {};
  OpId obstacle =
      {};  // update_obstacles.h: an op that is neither elementwise nor a norm, by which the update is computed
};

class UpdateGraph {
 public:
  // `results`: what the region returns; of a loop, the next carries.
  UpdateGraph(Module& module, RegionId region, std::vector<ValueId> arguments, std::vector<ValueId> results);

  Module& module() const { return module_; }
  RegionId region() const { return region_; }
  const std::vector<ValueId>& arguments() const { return arguments_; }
  const std::vector<ValueId>& results() const { return results_; }
  const std::vector<UpdateGroup>& groups() const { return groups_; }
  std::vector<UpdateGroup>& groups() { return groups_; }
  // Whether the op of a use belongs to an update, or serves it.
  bool is_in_update(const Use& use);
  // The group of a state, or of a member that depends on one.
  std::optional<size_t> group_of(ValueId value) const {
    const auto found = group_of_.find(value);
    return found == group_of_.end() ? std::nullopt : std::optional(found->second);
  }
  // Whether the value is a member that depends: an updated state, or on the way to one.
  bool depends(ValueId value) const { return value.index < depends_.size() && depends_[value.index]; }

 private:
  struct Walk;
  void walk_result(uint32_t place, Walk& walk);
  void form_groups(const std::vector<Walk>& walks);
  void find_dependence();
  void find_gradients(UpdateGroup& group);
  void find_weights();
  void pair_narrow_states(const std::vector<Walk>& walks);
  bool is_served(ValueId value);
  // Values that were made since are no members.
  bool is_member(ValueId value) const { return value.index < is_member_.size() && is_member_[value.index]; }

  Module& module_;
  RegionId region_;
  std::vector<ValueId> arguments_, results_;
  std::vector<UpdateGroup> groups_;
  std::unordered_map<ValueId, size_t> group_of_;  // of states and of members that depend
  std::vector<bool> is_member_, depends_;         // by value
  std::unordered_map<ValueId, bool> served_;
};

// Whether every forward use of the value is an operand of a product, behind movements at most.
bool feeds_products_only(UpdateGraph& graph, ValueId value);

// Whether the op computes each element of its result from those of its operands there, or annotates them.
bool is_elementwise(const OpView& op);
// Whether the op combines elements along dims, and does nothing else: a norm, a mean.
bool is_plain_reduction(const OpView& op);
// Whether the op multiplies and sums: a matrix product, a convolution.
bool is_product(const OpView& op);

}  // namespace shardwise
