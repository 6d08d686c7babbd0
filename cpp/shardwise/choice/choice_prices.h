// SPDX-License-Identifier: Apache-2.0
//
// The price of a whole choice on one device: of each op as it is computed, with what its method sends, and of each version
// that is made, times their executions (analysis/executions.h):
//
//   bf16 (32768, 8192) @ (8192, 8192), k on t=8, the result reduced to all devices
//     prices.of(choice).ps        2.64 ms: 0.556 ms of products and 2.088 ms of an all_reduce
//
// It is a sum, as if nothing ran at the same time, and without launches. Memory is paid where the groups of ops that run as
// one kernel read and write it, and where an op takes a value in another placement than its producer makes it.
#pragma once

#include "shardwise/analysis/executions.h"
#include "shardwise/choice/costs.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

class ChoicePrices {
 public:
  // The module that was chosen for, as it is. Its use lists are built, so it is not const.
  ChoicePrices(Module& module, ProgramPlacements& placements, Costs& costs)
      : module_(module), costs_(costs), placements_(placements), executions_(module), priced_(module.op_count()) {}
  Price of(const Choice& choice);
  Price at_loops(const Choice& choice);  // of the transfers of loop carries and loop results
  std::vector<OpWork> work(const Choice& choice);

 private:
  // The price of an op in the last choice that was priced. Most ops are computed alike in all choices.
  struct Priced {
    bool is_known = false;
    OpChoice chosen;
    std::vector<bool> moved;
    Price price;
  };
  const Price& price_of_op(const OpView& op, const Choice& choice);
  Price new_price(const OpView& op, const Priced& priced);
  int64_t whole_flops(const OpView& op);
  AxisList repeated_axes(const OpChoice& chosen) const;
  int64_t dim_to_split(const OpView& op, const OpChoice& chosen, const AxisList& axes) const;
  Price price_of_version(const VersionKey& key, const VersionChoice& version);

  Module& module_;
  Costs& costs_;
  ProgramPlacements& placements_;
  ModuleExecutions executions_;
  std::vector<Priced> priced_;                                    // by op
  std::vector<bool> moved_;                                       // operands of the op at hand
  std::unordered_map<const ShardingRule*, int64_t> whole_flops_;  // of ops with this rule, which have equal types
};

}  // namespace shardwise
