// SPDX-License-Identifier: Apache-2.0
//
// A sharding rule is data: it maps each dim of each operand and result to an ordered list of factors (major first).
//
//   stablehlo.dot_general  tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>   contracting [1] x [0]
//     ([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}
//
// Sharding i or j needs no communication (pass-through). Sharding k leaves each result unreduced (a pending sum). A
// need-replication or permutation factor stays sharded only by a method of the op (op_def.h), such as an exchange of
// the rows that each shard reads. A blocked factor never propagates. A size-1 dim has its own size-1 factor.
//
// A dim that is not read at the index of the result's dim has a range (range.h). It stays sharded if each shard reads
// its own block alone, or by an exchange; else it is whole. Ranges are no part of Shardy's rule: propagation ignores
// them.
//
//   stablehlo.slice [0:4, 1:8:2]        ([i, j])->([i, j]) {i=4, j=8} permutation={j}        j reads 2·j + 1
//   rule.range(0, 1, {.scale = 2, .offset = 1});
//
// If a sharded factor needs more than that (the totals of a cumulative sum, the pairs of an argmax, positions that are
// operands), the op has methods (op_def.h).
//
// Three engines read rules: the choice of the compute sharding, localization, cost. Propagation reads them, too, except
// for the few ops that propagate by another one (propagation/shardy/rules.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/ir/rule/range.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

enum class FactorKind : uint8_t { kPassThrough, kReduction, kNeedReplication, kPermutation };
using FactorId = uint16_t;

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  Reducer reducer = Reducer::kNone;  // kReduction only: how the partial results combine
  bool blocked = false;
  friend bool operator==(const Factor&, const Factor&) = default;
};

// Shardy's symbols: i … z for factors 0 … 17, then z_1, z_2, ….
std::string factor_symbol(size_t factor);

class ShardingRule {
 public:
  bool empty() const { return dim_ends_.empty() && tensor_ends_.empty(); }  // no rule: the op does not propagate
  std::span<const Factor> factors() const { return factors_; }
  size_t operand_count() const { return operand_count_; }
  // Result i is computed only from operand i, as in an optimization_barrier.
  bool has_independent_pairs() const { return has_independent_pairs_; }
  size_t tensor_count() const { return tensor_ends_.size(); }  // operands, then results
  size_t result_tensor(size_t result) const { return operand_count_ + result; }
  size_t ndim(size_t tensor) const { return tensor_ends_[tensor] - tensor_begin(tensor); }
  std::span<const FactorId> dim(size_t tensor, size_t dim) const {
    const size_t flat = tensor_begin(tensor) + dim;
    const uint16_t begin = flat == 0 ? uint16_t{0} : dim_ends_[flat - 1];
    return std::span<const FactorId>(dim_factors_).subspan(begin, dim_ends_[flat] - begin);
  }
  // Calls visit(tensor, dim, factors) for each dim, those of the operands first.
  template <class Visit>
  void for_each_dim(Visit&& visit) const {
    for (size_t t = 0; t < tensor_count(); ++t) {
      for (size_t d = 0; d < ndim(t); ++d) visit(t, d, dim(t, d));
    }
  }
  bool has_factor(size_t tensor, FactorId factor) const;
  const Range* range(size_t operand, size_t dim) const;  // null: the dim is read at the result's index
  bool has_ranges() const { return !ranges_.empty(); }
  friend bool operator==(const ShardingRule&, const ShardingRule&) = default;

 private:
  friend class RuleBuilder;
  size_t tensor_begin(size_t tensor) const { return tensor == 0 ? 0 : tensor_ends_[tensor - 1]; }

  std::vector<Factor> factors_;
  std::vector<FactorId> dim_factors_;             // factors of all dims of all tensors, one after another
  std::vector<uint16_t> dim_ends_;                // end of each dim in dim_factors_
  std::vector<uint16_t> tensor_ends_;             // end of each tensor in dim_ends_
  std::vector<std::pair<size_t, Range>> ranges_;  // by flat dim, as in dim_ends_
  size_t operand_count_ = 0;
  bool has_independent_pairs_ = false;
};

}  // namespace shardwise
