// SPDX-License-Identifier: Apache-2.0
//
// Values that annotations ask to be left unreduced, and those that must be for it:
//
//   %0 = dot_general %x, %w                                     requested: unreduced={"t"}
//   %1 = negate %0                                              requested
//   %2 = sdy.sharding_constraint %1 <[{}, {}], unreduced={"t"}>
//
// A request goes back through ops that distribute over the sum to the ops that make it. Where there is none, as behind a tanh,
// nothing is requested. What became of each annotation is read from the choice (warn_of_refused).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/choice/op_linearity.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

class RequestedSums {
 public:
  // One walk back serves all annotations that ask for the same axes and reducer.
  RequestedSums(const Module& module, const ProgramLinearity& linearity, ProgramPlacements& placements);

  // Where a value must be left, unreduced; none: as it is best.
  PlacementId of(ValueId value) const {
    const auto found = placements_of_.find(value);
    return found == placements_of_.end() ? PlacementId{} : found->second;
  }
  // Appends a warning for each annotation that the choice does not follow, with the op that is in the way.
  void warn_of_refused(const Choice& choice, std::vector<std::string>& warnings) const;

 private:
  struct Sum {
    AxisList axes;
    Reducer reducer;
    MeshPtr mesh;
    friend bool operator==(const Sum&, const Sum&) = default;
  };
  struct Annotation {
    OpId op;
    std::string obstacle;  // "" if the value can be left unreduced
  };
  class Search;  // of the values behind the annotations that ask for one sum

  void add_annotation(const OpView& annotation, Search& search);
  void add(ValueId value, const Sum& sum);

  const Module& module_;
  ProgramPlacements& placements_;
  std::unordered_map<ValueId, PlacementId> placements_of_;
  std::vector<Annotation> annotations_;
};

}  // namespace shardwise
