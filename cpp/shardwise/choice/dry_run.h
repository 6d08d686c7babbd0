// SPDX-License-Identifier: Apache-2.0
//
// Prices a method by making its ops in a scratch program:
//
//   DryRuns runs(module);
//   runs.cost(argmax, rule, method, {<[{}: 8, {"x"}: 8]>, …, <[{}: 8]>, <[{}: 8]>}).bytes  // 168: prog.collectives()
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

struct MethodCost {
  double bytes = 0;       // received by one device
  bool is_chain = false;  // the devices wait for each other, one after another
};

class DryRuns {
 public:
  explicit DryRuns(const Module& source) : source_(source) {}

  // `placements` are those of operands and results; what unused results cost does not count. Equal ops are run once: they
  // share their rule and their constant operands, such as the starts of a slice.
  MethodCost cost(const OpView& op, const ShardingRule& rule, const Method& method,
                  const std::vector<PlacementId>& placements, const std::vector<bool>& is_used);
  // Of the ops and collectives that it emits, one after another. Made anew each time.
  Price price(const OpView& op, const ShardingRule& rule, const Method& method,
              const std::vector<PlacementId>& placements, const std::vector<bool>& is_used,
              const Hardware& hardware) const;

 private:
  // The program of one device.
  Module emitted(const OpView& op, const ShardingRule& rule, const Method& method,
                 const std::vector<PlacementId>& placements, const std::vector<bool>& is_used) const;

  using Key = std::tuple<const ShardingRule*, const Method*, std::vector<PlacementId>, std::vector<bool>,
                         std::vector<std::pair<size_t, AttrsId>>>;  // constants by operand
  const Module& source_;
  std::map<Key, MethodCost> known_;
};

}  // namespace shardwise
