// SPDX-License-Identifier: Apache-2.0
//
// The candidate ways to share the work of one op among devices: axes for the factors of its rule.
//
//   dot_general ([i, k], [k, j])->([i, j])     lhs [{"data"}, {}]   rhs [{"data"}, {"model"}]   result as below
//
//   lhs leads      i: "data"   j: "model"      rhs must be resharded: replicated along k, "model" on j
//   rhs leads      k: "data"   j: "model"      lhs must be moved from i to k, the result is unreduced over data
//   result leads   as lhs                      [{"data"}, {"model"}]
//
// The leader's axes go to its factors. Then the other tensors fill the remaining factors, as long as no axis is used
// twice. Each leader alone is a candidate, too. Three kinds of factors get no axes: those that need replication,
// permutation factors whose ranges cross shards, and factors of an operand that a result does not have and no reducer
// combines (3x2 reshaped to 2x3). In the last case, factors of the result alone get none either. Independent pairs
// (ShardingRule::has_independent_pairs) may use the same axes. A factor of a compound dim gets only axes that divide
// it, and only if all factors before it in the dim are fully sharded: otherwise local shards would not be tiles.
//
// Factors that only a method can keep sharded (OpDef::methods) make two candidates: by each method, and without axes.
// A method decides where the results are:
//
//   argmax ([i, j])->([i])   operand [{}, {"x"}]   j: "x"   by partial results: result [{}], or split: [{"x"}]
//
// A method may also take each tensor where it is, such as the exchange of a slice: the operands where the projection
// has them, and the result there, too, or in the tiling of operand 0.
#pragma once

#include <vector>

#include "shardwise/choice/op_linearity.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/propagation/factor_projection.h"

namespace shardwise {

struct ComputeSharding {
  MeshPtr mesh = nullptr;                           // of all axes; null: that of the program
  std::vector<AxisList> factors;                    // by FactorId
  AxisList passed;                                  // axes over which operands come, and results go, unreduced
  Reducer reducer = Reducer::kNone;                 // of `reduced` and `passed`
  AxisList reduced;                                 // axes over which the op leaves its results unreduced
  const Method* method = nullptr;                   // instead of the rule
  std::vector<std::vector<AxisList>> tensors = {};  // of a method: the axes of all dims
  friend bool operator==(const ComputeSharding&, const ComputeSharding&) = default;

  // The op is not computed by its rule. A method without a partition only places it differently.
  bool has_own_partition() const { return method != nullptr && method->partition != nullptr; }
  // The axes of the dims of a tensor of the rule.
  std::vector<AxisList> dims(const ShardingRule& rule, size_t tensor) const;
  // The work of one device: the product of the local sizes of all factors, or the written elements of a movement op.
  double local_work(const OpView& op, const ShardingRule& rule) const;
};

class ComputeShardings {
 public:
  ComputeShardings(const OpView& op, const ShardingRule& rule);

  // The mesh of the candidates that are added from now on.
  void set_mesh(MeshPtr mesh) { mesh_ = std::move(mesh); }
  // Adds the candidates that the projected shardings lead to, without duplicates. `tensors` are the placements that
  // were projected, null if replicated.
  void add(const FactorProjection& projection, std::span<const Placement* const> tensors, const AxisList& passed,
           Reducer passed_reducer);
  // Adds the candidates that have these axes along the factors, as far as the rule or a method can use them.
  void add_assigned(const std::vector<AxisList>& factors, const AxisList& passed, Reducer passed_reducer);
  // Adds methods that take each tensor where it is, as `tensors` are placed.
  void add_where_they_are(std::span<const Placement* const> tensors, const AxisList& passed, Reducer passed_reducer);
  // Whether the rule or a method may shard the factor.
  bool may_shard(FactorId factor) const {
    return usable_[factor] || (!usable_by_methods_.empty() && usable_by_methods_[factor]);
  }
  size_t pair_of(FactorId factor) const { return pairs_[factor]; }  // of a rule of independent pairs; else 0
  const std::vector<ComputeSharding>& candidates() const { return candidates_; }

 private:
  struct Request {
    const FactorProjection& projection;
    AxisList passed;
    Reducer reducer;
  };
  void add(const Request& request, std::span<const size_t> order);
  ComputeSharding choose(const Request& request, std::span<const size_t> order, const std::vector<bool>& usable) const;
  ComputeSharding assigned(const std::vector<AxisList>& factors, const AxisList& passed, Reducer passed_reducer,
                           const std::vector<bool>& usable) const;
  void take_axes(ComputeSharding& chosen, std::vector<AxisList>& used, FactorId factor, const AxisList& axes) const;
  std::vector<AxisList> nothing_used(const AxisList& passed) const;
  bool needs_method(const ComputeSharding& chosen) const;
  void add_by_methods(const ComputeSharding& chosen);
  bool is_sharded_along(const std::vector<std::vector<AxisList>>& tensors, const std::vector<FactorId>& factors) const;
  void add_placed(const Method& method, std::vector<std::vector<AxisList>> tensors, const AxisList& passed,
                  Reducer passed_reducer);
  void keep(ComputeSharding candidate);

  OpView op_;
  const ShardingRule& rule_;
  MeshPtr mesh_;
  std::vector<size_t> pairs_;                   // by factor, of a rule of pairs: each pair has all axes for itself
  std::vector<bool> usable_;                    // by factor, by the rule
  std::vector<bool> usable_by_methods_;         // … or by a method; empty if no method has a factor
  std::vector<std::vector<FactorId>> methods_;  // the factors of each method
  std::vector<bool> compound_;                  // by factor: part of a dim with several
  std::vector<ComputeSharding> candidates_;
  std::vector<size_t> hashes_;  // of the candidates
};

// Whether the rule gives a read range for some operand along `factor`.
bool has_range(const ShardingRule& rule, FactorId factor);
// Whether each of `shards` shards of the factor reads only its own block, by the ranges of the dims that carry it.
bool stays_local(const OpView& op, const ShardingRule& rule, FactorId factor, int64_t shards);

// A pending reduction that an op can pass on.
struct Pending {
  AxisList axes;
  Reducer reducer = Reducer::kNone;
  std::vector<bool> operands;  // which come unreduced
  std::vector<bool> owned;     // which of these are owned
  MeshPtr mesh = nullptr;      // of the axes
  bool only_if_less = false;   // reduced operands become unreduced only if that sends less
};

// The pending reductions of operands with these placements (null: replicated), if the op can pass on all of them; else
// none. If an op is joint in its operands, reduced operands may become parts of such a reduction. An op that copies
// elements passes no reduction on in which owned operands and addends meet: their sum would make signalling NaNs quiet.
//
//   concatenate(x[i], y @ w)             x[i] is owned: one device has its bits
Pending pending_of(const OpView& op, const ProgramLinearity& linearity, std::span<const Placement* const> operands);

// The placement of a tensor of an op that is computed with this compute sharding. A result is owned if the method gives
// each element by its owner, or if the op copies elements of operands that are.
PlacementId operand_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                              const ComputeSharding& compute, const Pending& pending, size_t i);
PlacementId result_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                             const ComputeSharding& compute, const Pending& pending, size_t i);
// The type in which the op makes a result with this placement: that of the addends of a pending sum may be wider.
TypeId type_made(const ProgramPlacements& placements, const OpView& op, size_t i, PlacementId made);

}  // namespace shardwise
