// SPDX-License-Identifier: Apache-2.0
//
// Arguments of main whose arrays arrive in another sharding than `in_shardings` names:
//
//   func @main(%w: [{"data"}, {}]) {
//     %0 = constraint %w [{}, {}] {cause = "in_shardings of w"}
//     …                                                            reads %0
//
// `in_shardings` describes the model, so the updates are found and laid out by it: the constructor folds the constraint,
// and %w has [{}, {}]. `restore` writes the layout of the arrays back. A state that is split has its own constraint by
// then, which starts from that layout; any other argument gets the folded constraint again.
#pragma once

#include <string>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

class Arrivals {
 public:
  explicit Arrivals(Module& module);

  // The sharding of the arrays that the argument gets; none if they arrive as `in_shardings` names.
  ShardingId of(ValueId argument) const;
  // Once the updates are written. UpdateWriter takes the sharding of a split state away.
  void restore(Module& module) const;

 private:
  struct Arrival {
    ValueId argument;
    ShardingId sharding, given;
    std::string cause;
  };

  std::vector<Arrival> arrivals_;
};

}  // namespace shardwise
