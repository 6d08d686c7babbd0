// SPDX-License-Identifier: Apache-2.0
//
// Sharding rules that a text or a user attaches to an op:
//
//   %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] {sdy.sharding_rule =
//          #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}, custom>}
//
// Factors are i … z, then z_1, z_2, …. A dim of several factors names them in a row, major first: [ij, zz_1]. Sizes
// follow in the order of the factors, then the lists of factors that are not pass-through; an empty list is left out.
// `custom` marks a rule that a user wrote.
//
// Propagation follows such a rule instead of the op's own (propagation/rules_by_op.h). The op still computes what its
// OpDef defines, so a custom rule can change shardings, never values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// A list of factors in the text of a rule, such as reduction={k}.
struct FactorList {
  std::string_view name;
  Dims RuleAttr::* factors;
  std::optional<FactorKind> kind = {};  // none: the list goes with any kind
};
inline constexpr FactorList kFactorLists[] = {  // in the order of the text
    {"reduction", &RuleAttr::reduction, FactorKind::kReduction},
    {"need_replication", &RuleAttr::need_replication, FactorKind::kNeedReplication},
    {"permutation", &RuleAttr::permutation, FactorKind::kPermutation},
    {"blocked_propagation", &RuleAttr::blocked}};

std::string text(const RuleAttr& rule);  // ([i])->([i]) {i=4}
std::string text(const ShardingRule& rule);

// Throws ShardingError, naming the op, unless `rule` is valid for it: a mapping for each operand and result with an
// entry per dim; existing factors, each used, at most once in a tensor, none of size 1 beside others; ordered lists, no
// factor in two of them, no reduced factor in a result. The sizes of factors need not multiply to the dim.
void verify(const RuleAttr& rule, const OpView& op);

ShardingRule to_rule(const RuleAttr& rule);  // of a rule that `verify` accepts; reductions are sums
RuleAttr to_attribute(const ShardingRule& rule, bool custom);

}  // namespace shardwise
