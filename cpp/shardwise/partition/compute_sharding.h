// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the devices may share the work on one op: axes for the factors of its rule.
//
//   dot_general ([i, k], [k, j])->([i, j])     lhs [{"data"}, {}]   rhs [{"data"}, {"model"}]   result as below
//
//   lhs leads      i: "data"   j: "model"      rhs must be gathered along k
//   rhs leads      k: "data"   j: "model"      lhs must be moved from i to k, the result is unreduced over data
//   result leads   as lhs                      [{"data"}, {"model"}]
//
// The leader's axes go to its factors, then the other tensors fill the factors that are left, as far as no axis is used
// twice; and each leader alone. No axes go to factors that need replication, to permutation factors, and to those of an
// operand that a result does not have and no reducer combines (3x2 reshaped to 2x3), nor then to factors of the result
// alone. Pairs that have nothing to do with each other (ShardingRule::of_pairs) may use the same axes. A factor of a
// compound dim gets only axes that divide it, and only where all factors before it in the dim are fully sharded: else
// local shards would not be tiles.
//
// Where an op exchanges the partial results of a reduction for itself, its results may come out split instead of whole:
//
//   argmax ([i, j])->([i])   operand [{}, {"x"}]   result [{"x"}]    j: "x", which lands on i
#pragma once

#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/partition/program_placements.h"
#include "shardwise/propagation/factor_projection.h"

namespace shardwise {

struct ComputeSharding {
  std::vector<AxisList> factors;     // by FactorId
  AxisList passed;                   // axes over which operands come, and results go, unreduced
  Reducer reducer = Reducer::kNone;  // of `reduced` and `passed`
  AxisList reduced;                  // axes of reduction factors
  AxisList landed;                   // axes of an exchanged reduction factor, in results also those of …
  FactorId landing = 0;              // … this factor, behind its own
  friend bool operator==(const ComputeSharding&, const ComputeSharding&) = default;

  // The dims of a tensor of the rule.
  std::vector<AxisList> dims(const ShardingRule& rule, size_t tensor) const;
  // Σ over factors of the local size: the work of one device.
  double local_work(const ShardingRule& rule) const;
};

class ComputeShardings {
 public:
  explicit ComputeShardings(const ShardingRule& rule);

  // Adds, without repeating any, the candidates that the projected shardings lead to.
  void add(const FactorProjection& projection, const AxisList& passed, Reducer passed_reducer);
  const std::vector<ComputeSharding>& candidates() const { return candidates_; }

 private:
  ComputeSharding choose(const FactorProjection& projection, std::span<const size_t> order, const AxisList& passed,
                         Reducer passed_reducer) const;
  // With the axes of its one exchanged reduction factor where a result wants them; unchanged where none does.
  ComputeSharding landed(const FactorProjection& projection, ComputeSharding chosen) const;
  void respect_compound_dims(std::vector<AxisList>& factors) const;

  const ShardingRule& rule_;
  std::vector<size_t> pairs_;   // by factor, of a rule of pairs: each pair has all axes for itself
  std::vector<bool> usable_;    // by factor
  std::vector<bool> compound_;  // by factor: part of a dim with several
  std::vector<ComputeSharding> candidates_;
};

// A pending reduction that an op could take as it is.
struct Pending {
  AxisList axes;
  Reducer reducer = Reducer::kNone;
  std::vector<bool> operands;  // which come unreduced
};

// Whether the op distributes over a reduction of its operands by `reducer`, as far as the op alone can say.
bool may_pass(const OpView& op, const ShardingRule& rule, Reducer reducer);
// What operands in these placements (null: whole) leave pending, where the op can take all of that; else nothing.
Pending pending_of(const OpView& op, const ShardingRule& rule, std::span<const Placement* const> operands);

// The placements of the tensors of an op that is computed so.
PlacementId operand_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                              const ComputeSharding& compute, const Pending& pending, size_t i);
PlacementId result_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                             const ComputeSharding& compute, size_t i);

}  // namespace shardwise
