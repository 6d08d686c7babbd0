// SPDX-License-Identifier: Apache-2.0
//
// Caches the effect of visiting one op on the shardings of its tensors. Layers of a model are alike, so all but the
// first cost lookups only.
//
//   visits.after(rule_of_dot, participation, false, {s1, none, none})     ->  {s1, none, s2}
//
// Shardings are ids, so equal shardings are equal questions (run_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/context.h"
#include "shardwise/propagation/factor_projection.h"
#include "shardwise/propagation/identity_rules.h"
#include "shardwise/propagation/propagate_factors.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/run_cache.h"

namespace shardwise {

class OpPropagation {
 public:
  OpPropagation(Context& context, Strategy strategy, bool conservative)
      : context_(context), factors_(strategy), identities_(context), conservative_(conservative) {}

  // The ids of the shardings that tensors with shardings `before` have after a visit, operands first. Valid until the
  // next call.
  const uint32_t* after(const ShardingRule& rule, Participation part, bool elementwise,
                        std::span<const ShardingId> before) {
    return after(rule, part, elementwise, conservative_, before);
  }
  // The same for values that agree as by an identity op with one result, all of type `type`.
  const uint32_t* after_identity(TypeId type, Participation part, std::span<const ShardingId> before) {
    return after(identities_.of(type, before.size() - 1), part, false, conservative_, before);
  }
  // The value that main returns and the result of main. Shardy never restricts these to full axes.
  const uint32_t* after_return(TypeId type, std::span<const ShardingId> before) {
    return after(identities_.of(type, 1), {}, true, false, before);
  }

  // Repeats a visit without caching it and reports to `observer`. With `only`, the op has two tensors: the observer's,
  // without its own axes of the factor, and `only`.
  struct Visit {
    const ShardingRule& rule;
    Participation part;
    bool elementwise = false, conservative = false;
  };
  std::span<const uint32_t> replay(const Visit& visit, std::span<const ShardingId> before, AxisObserver& observer,
                                   std::optional<size_t> only = {});

  int64_t distinct() const { return static_cast<int64_t>(cache_.size()); }

 private:
  const uint32_t* after(const ShardingRule& rule, Participation part, bool elementwise, bool conservative,
                        std::span<const ShardingId> before);
  void grow(const Visit& visit, const MeshPtr& mesh, std::span<const ShardingId> before, std::optional<size_t> only,
            AxisObserver* observer = nullptr);
  void hide_all_but(const AxisObserver& observer, size_t only);
  void observe_dim(AxisObserver& observer) const;

  Context& context_;
  FactorPropagation factors_;
  FactorProjection projection_;
  IdentityRules identities_;
  RunCache<ShardingId> cache_;
  bool conservative_;
  std::vector<uint32_t> after_;
  std::vector<const TensorSharding*> shardings_;
};

}  // namespace shardwise
