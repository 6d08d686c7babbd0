// SPDX-License-Identifier: Apache-2.0
//
// Where results are wanted in a known choice: where their users have them, and where users of elementwise ops have theirs,
// through any number of such ops. They may stand in front of a move or behind it:
//
//   %1 = multiply %0, %c     %2 = tanh %0       made as [{"x"}, {}]
//   return %1, %2                               as [{}, {}]
//
//   of(%1)   [{}, {}]      of(%2)   [{}, {}]      then %0 may move, instead of both
#pragma once

#include <unordered_map>
#include <vector>

#include "shardwise/choice/greedy/walked_program.h"

namespace shardwise {

class WantedPlacements {
 public:
  // At most `most` of a value.
  WantedPlacements(const WalkedProgram& program, const Choice& known, size_t most);
  // Different placements of a result of an op; that of the first user first.
  const std::vector<PlacementId>& of(ValueId result) const { return wanted_[result.index]; }

 private:
  void add_region(RegionId region);
  void add_result(ValueId result);
  void add(ValueId value, PlacementId placement);
  PlacementId need(const Use& use) const;  // none: it has no placement in the choice

  const WalkedProgram& program_;
  const Choice& known_;
  const size_t most_;
  std::unordered_map<RegionId, const Function*> bodies_;
  std::vector<std::vector<PlacementId>> wanted_;  // by value
};

}  // namespace shardwise
