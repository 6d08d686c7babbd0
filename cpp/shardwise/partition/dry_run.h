// SPDX-License-Identifier: Apache-2.0
//
// Prices the collectives of a method by making its ops in a scratch program and reading their ledger:
//
//   DryRuns runs(module);
//   runs.bytes(argmax, rule, method, {<[{}: 8, {"x"}: 8]>, …, <[{}: 8]>, <[{}: 8]>})     // 168, as prog.collectives()
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

class DryRuns {
 public:
  explicit DryRuns(const Module& source) : source_(source) {}

  // Received by one device. `placements` are those of operands and results; equal ops are run once.
  double bytes(const OpView& op, const ShardingRule& rule, const Method& method, std::vector<PlacementId> placements);

 private:
  double run(const OpView& op, const ShardingRule& rule, const Method& method,
             const std::vector<PlacementId>& placements) const;

  using Key = std::tuple<const ShardingRule*, const Method*, std::vector<uint32_t>>;  // equal ops share their rule
  const Module& source_;
  std::map<Key, double> known_;
};

}  // namespace shardwise
