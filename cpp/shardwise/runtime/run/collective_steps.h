// SPDX-License-Identifier: Apache-2.0
//
// Runs the collectives of a plan. Small all_reduces that the plan has put one after another (plan/batch_reductions.h)
// travel as one: the first of them reduces the operands of all.
//
//   %5 = all_reduce %1   together = 2     reduces %1 and %2, takes the first result
//   %6 = all_reduce %2                    takes the second one
#pragma once

#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/run/slots.h"

namespace shardwise {

class CollectiveSteps {
 public:
  CollectiveSteps(Slots& slots, Communicator& communicator) : slots_(slots), communicator_(communicator) {}

  // `step` is part of a block, which has the other steps of its batch after it.
  void run(const Step& step, const CollectiveCall& collective);

 private:
  void reduce_together(std::span<const Step> batch);

  Slots& slots_;
  Communicator& communicator_;
  std::vector<Shards> reduced_;  // the results of the next all_reduces of a batch, the last one first
};

}  // namespace shardwise
