// SPDX-License-Identifier: Apache-2.0
//
// The second half of fuse() (fusion.h): which tensors of the ops of a group are in memory, once it is known which ops are
// in one group.
//
//   group {dot, add, tanh}      reads the operands of dot, and the operand of add that dot does not make
//                               writes the result of tanh; that of dot as well, if another group reads it
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "shardwise/analysis/fusion.h"
#include "shardwise/analysis/fusion_roles.h"
#include "shardwise/analysis/mergeable_groups.h"

namespace shardwise {

class BorderAccesses {
 public:
  // `groups` is by op: any number that the ops of a group share. `is_row` is by value.
  BorderAccesses(const Module& module, const FusionOptions& options, const FusionRoles& roles,
                 const std::vector<uint32_t>& groups, const std::vector<bool>& is_row);
  Fusion run(const std::function<GroupFacts(uint32_t)>& facts);

 private:
  // A tensor of `access.op`, in `group`, that another group makes and this one could make again.
  struct ScoresRead {
    uint32_t group;
    BorderAccess access;
  };

  // A tensor of an op, as a group reads it.
  struct Known {
    uint32_t group;
    OpId op;
    size_t tensor;
    friend bool operator==(const Known&, const Known&) = default;
  };
  struct KnownHash {
    size_t operator()(const Known& known) const {
      return hash_combine(hash_combine(known.group, known.op.index), known.tensor);
    }
  };
  using KnownSet = std::unordered_set<Known, KnownHash>;

  void add_region(RegionId region, const std::function<GroupFacts(uint32_t)>& facts);
  void add_reads(const OpView& op);
  void read(uint32_t group, const BorderAccess& access);
  bool may_be_made_again(uint32_t group, ValueId value) const;
  void keep_in_memory(ValueId value);
  uint32_t add_copy(OpId view);
  void make_again(uint32_t group, OpId op);
  void make_again_or_read();
  void add_writes();
  uint32_t maker_group(ValueId value) const;

  const Module& module_;
  const FusionOptions& options_;
  const FusionRoles& roles_;
  const std::vector<uint32_t>& shared_;  // by op
  const std::vector<bool>& is_row_;      // by value
  std::vector<GroupFacts> facts_;        // by group
  std::vector<bool> is_in_memory_;       // by value
  std::vector<ScoresRead> scores_reads_;
  KnownSet known_reads_;
  KnownSet made_again_;  // of tensor 0
  Fusion fusion_;
};

}  // namespace shardwise
