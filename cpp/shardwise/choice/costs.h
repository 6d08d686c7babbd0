// SPDX-License-Identifier: Apache-2.0
//
// Costs: what the choice compares, by time or by bytes.
//
//   bf16 (32768, 8192) @ (8192, 8192), both split along k over t=8, default hardware         time            bytes
//     k: "t"     costs.compute(op, …)                                                       0.556 ms            0
//                + costs.reshard(type, <[{}, {}], unreduced {"t"}>, <[{}, {}]>)             2.088 ms      896 MiB
//     none       both operands gathered, the whole product on each device                   5.75 ms       560 MiB
//
// By time, a cost is that of compute, memory and transfers on the hardware; bytes break ties. By bytes, only bytes count.
// Memory is paid at the borders of the groups of ops that run as one kernel (analysis/fusion.h).
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/fusion.h"
#include "shardwise/choice/choice.h"
#include "shardwise/choice/dry_run.h"
#include "shardwise/choice/reshard_planner.h"

namespace shardwise {

// The cost of one run of the op at hand. A transfer before a loop is shared by its trips, so these are no integers.
struct Cost {
  double ps = 0;     // 0 by bytes
  double bytes = 0;  // received by one device: the one that receives most, or a device on average

  Cost& operator+=(const Cost& other) {
    ps += other.ps;
    bytes += other.bytes;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator*(double runs, const Cost& cost) { return {runs * cost.ps, runs * cost.bytes}; }
  friend Cost operator/(const Cost& cost, double shares) { return {cost.ps / shares, cost.bytes / shares}; }
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

// Whether memory is paid for each tensor of each op: operands, then results.
class GroupBorders {
 public:
  GroupBorders(const Module& module, const Hardware& hardware);
  // Ops in no group, such as views, take no time of their own.
  bool has_group(OpId op) const { return group_of_[op.index] != Fusion::kNoGroup; }
  uint64_t bits(OpId op) const { return borders_[op.index]; }

 private:
  static constexpr size_t kMost = 64;
  std::vector<uint32_t> group_of_;
  std::vector<uint64_t> borders_;  // by op
};

// Identifies everything that determines the cost of an op.
using CostKey = std::vector<uint64_t>;
struct HashOfCostKey {
  size_t operator()(const CostKey& key) const;
};

// For one module as it is. Prices are kept, so that equal ops and transfers are priced once.
class Costs {
 public:
  Costs(const Module& module, const CompileOptions& options);

  const HardwarePtr& hardware() const { return hardware_; }
  ReshardPlanner& planner() { return planner_; }
  bool are_times() const { return are_times_; }
  void set_are_times(bool are_times) { are_times_ = are_times; }

  // No transfer where both are the same.
  Cost reshard(TypeId type, PlacementId from, PlacementId to);
  Price reshard_price(TypeId type, PlacementId from, PlacementId to);

  // How an op is computed, and what that depends on besides.
  struct Computed {
    const OpView& op;
    const ShardingRule& rule;
    const OpChoice& choice;
    const std::vector<bool>& is_moved;  // operands that come from another placement than their home
    const std::vector<bool>& is_used;   // results
  };
  // The cost of an op, with what its method sends. It is infinite for a method that must not be taken.
  Cost compute(const Computed& computed);
  Price compute_price(const Computed& computed);

  // Appends what costs depend on besides an op's rule and the placements of its tensors.
  void append_to_key(const OpView& op, const ShardingRule& rule, CostKey& key) const;

 private:
  const ReshardPrice& known_price(TypeId type, PlacementId from, PlacementId to);
  const MethodCost& method(const Computed& computed);

  const HardwarePtr hardware_;
  const bool may_chain_;    // whether a schedule may be as long as the number of devices
  const bool counts_mean_;  // whether the bytes of a reshard are those of a device on average (reshard/problem.h)
  bool are_times_ = true;
  ReshardPlanner planner_;
  DryRuns dry_runs_;
  GroupBorders borders_;
  std::unordered_map<ReshardPlanner::Key, ReshardPrice, ReshardPlanner::KeyHash> reshards_;
  std::unordered_map<CostKey, Price, HashOfCostKey> computed_;
};

}  // namespace shardwise
