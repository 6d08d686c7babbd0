// SPDX-License-Identifier: Apache-2.0
//
// Prices the collectives of a method by making its ops in a scratch program and reading their ledger:
//
//   DryRuns runs(module);
//   runs.cost(argmax, rule, method, {<[{}: 8, {"x"}: 8]>, …, <[{}: 8]>, <[{}: 8]>})  // 168 bytes: prog.collectives()
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

struct MethodCost {
  double bytes = 0;       // received by one device
  bool is_chain = false;  // the devices wait for each other, one after another
};

class DryRuns {
 public:
  explicit DryRuns(const Module& source) : source_(source) {}

  // `placements` are those of operands and results; collectives for unused results do not
  // count. Equal ops are run once: they share their rule and their constant operands, such as the starts of a slice.
  MethodCost cost(const OpView& op, const ShardingRule& rule, const Method& method,
                  const std::vector<PlacementId>& placements, const std::vector<bool>& is_used);

 private:
  MethodCost run(const OpView& op, const ShardingRule& rule, const Method& method,
                 const std::vector<PlacementId>& placements, const std::vector<bool>& is_used) const;

  using Key = std::tuple<const ShardingRule*, const Method*, std::vector<PlacementId>, std::vector<bool>,
                         std::vector<std::pair<size_t, AttrsId>>>;  // constants by operand
  const Module& source_;
  std::map<Key, MethodCost> known_;
};

}  // namespace shardwise
