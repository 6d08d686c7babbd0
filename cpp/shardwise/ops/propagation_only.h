// SPDX-License-Identifier: Apache-2.0
//
// Ops that are parsed and propagated, but have no kernel yet.
//
//   constexpr OpDef kCholesky = propagation_only_op("stablehlo.cholesky", infer_cholesky, rule_cholesky, "operands …",
//                                                   "Lower or upper factor of … (StableHLO cholesky).");
#pragma once

#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

constexpr OpDef propagation_only_op(std::string_view name, InferFn infer, RuleFn rule, std::string_view format,
                                    std::string_view doc, Traits traits = {}) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = rule,
               .prepare = propagation_only,
               .vjp = propagation_only,
               .batch = propagation_only,
               .format = format,
               .doc = doc,
               .traits = traits};
}

template <size_t Count>
constexpr bool all_complete(const OpDef (&ops)[Count]) {
  for (const OpDef& def : ops) {
    if (!def.complete()) return false;
  }
  return true;
}

inline ShardingRule rule_like_first_result(const OpView& op) { return RuleBuilder(op).pointwise().build(); }

// Takes the declared types of a text, for ops whose operands do not imply them.
inline void infer_declared(const InferContext& op, std::vector<TypeId>& results) {
  results.assign(op.declared().begin(), op.declared().end());
}

}  // namespace shardwise
