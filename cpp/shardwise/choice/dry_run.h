// SPDX-License-Identifier: Apache-2.0
//
// Prices a method by making its ops in a scratch program:
//
//   DryRuns runs(module, hardware);
//   const MethodCost cost = runs.cost(argmax, rule, method, {<[{}: 8, {"x"}: 8]>, …, <[{}: 8]>, <[{}: 8]>}, …);
//   cost.bytes        // 168: prog.collectives()
//   cost.price.ps     // of the ops and collectives that it emits, one after another
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

struct MethodCost {
  double bytes = 0;         // received by one device
  bool is_chain = false;    // the devices wait for each other, one after another
  bool is_possible = true;  // no: a device would hold more elements than a type can have
  Price price;              // of its ops, too
};

// The operands that are constants, or made of one by movement alone, with its attributes: what the cost of a method may depend
// on besides the rule, such as the starts of a slice.
std::vector<std::pair<size_t, AttrsId>> constant_operands(const OpView& op);

class DryRuns {
 public:
  // Both must outlive it.
  DryRuns(const Module& source, const Hardware& hardware) : source_(source), hardware_(hardware) {}

  // `placements` are those of operands and results; what unused results cost does not count. Equal ops are run once: they
  // share their rule and their constant operands, such as the starts of a slice.
  const MethodCost& cost(const OpView& op, const ShardingRule& rule, const Method& method,
                         const std::vector<PlacementId>& placements, const std::vector<bool>& is_used);

 private:
  // The program of one device.
  Module emitted(const OpView& op, const ShardingRule& rule, const Method& method,
                 const std::vector<PlacementId>& placements, const std::vector<bool>& is_used) const;

  using Key = std::tuple<const ShardingRule*, const Method*, std::vector<PlacementId>, std::vector<bool>,
                         std::vector<std::pair<size_t, AttrsId>>>;  // constants by operand
  void add_cost(const Module& program, MethodCost& cost) const;
  Price price_of(const Module& program) const;

  const Module& source_;
  const Hardware& hardware_;
  std::map<Key, MethodCost> known_;
};

}  // namespace shardwise
