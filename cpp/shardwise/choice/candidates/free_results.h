// SPDX-License-Identifier: Apache-2.0
//
// Results of main that no sharding places, where bytes are minimized. Propagation gave each of them a placement, which is a
// guess; another one may take fewer bytes:
//
//   %r = select %mask, %c, 0     %mask is whole, %c: [{}, {"x"}]
//     propagation    [{"x"}, {}]      from another user of %mask: %c moves, 1.5 KiB
//     free           [{}, {"x"}]      nothing moves
//
// A result that propagation left whole stays whole: it may be a value that the next call takes as it is. One that is split stays
// split over as many devices.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/choice/costs.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/module.h"

namespace shardwise {

class FreeResults {
 public:
  // Those of the given results of main that are split, and that an op makes which is no annotation.
  FreeResults(Module& module, std::span<const size_t> unplaced);

  bool is_empty() const { return results_.empty(); }
  std::unordered_set<ValueId> values() const;
  // Places each where a choice makes it for which all of them were open. Returns whether any has another placement now.
  bool place(const Choice& open, ProgramPlacements& placements, Costs& costs);
  void place_as_before();
  std::vector<Choice::PlacedResult> placed() const;

 private:
  struct Result {
    size_t place;  // among the results of main
    ValueId value;
    ShardingId of_value, of_result;  // by propagation
    ShardingId now;                  // none: as propagation placed it
  };

  Module& module_;
  std::vector<Result> results_;
};

}  // namespace shardwise
