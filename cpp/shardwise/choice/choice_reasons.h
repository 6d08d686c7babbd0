// SPDX-License-Identifier: Apache-2.0
//
// Why an op with a collective is computed as it is, in a few words for the ledger:
//
//   all_reduce  {"t"}   reduction in dot_general   faster than [{"t"}, {}]: another way makes rows, and takes longer
//
// A way is named by its results, or by its operands where the results are those of the chosen way. The words compare what
// the walk saw at this op; `why` states what the whole program would cost (compiler/priced_ways.h).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/ir/module.h"

namespace shardwise {

class ChoiceReasons {
 public:
  ChoiceReasons(const Choice* choice, const Context& context);  // null: of a text, which has no choice
  // Returns the reason for the op that needed a collective here with this cause. "" if the op had one way, or
  // if ops of the same name at this location have different reasons.
  std::string_view of(LocId loc, std::string_view cause) const;

 private:
  struct Reason {
    std::string_view op;
    std::string text;
  };
  std::unordered_map<LocId, std::vector<Reason>> reasons_;  // one for each name of an op
};

}  // namespace shardwise
