// SPDX-License-Identifier: Apache-2.0
//
// Caches the effect of visiting one op on the shardings of its tensors. Layers of a model are alike, so all but the
// first cost lookups only.
//
//   visits.after({.rule = rule_of_dot, .part = participation}, {s1, none, none})     ->  {s1, none, s2}
//
// Shardings are ids, so equal shardings are equal questions (run_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/context.h"
#include "shardwise/propagation/factor_projection.h"
#include "shardwise/propagation/propagate_factors.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/run_cache.h"

namespace shardwise {

// All that decides a visit of an op, beside the shardings of its tensors.
struct Visit {
  const ShardingRule& rule;
  Participation part = {};
  bool elementwise = false;
  bool is_return = false;  // of a value to a result of main, which Shardy never restricts to full axes
};

class OpPropagation {
 public:
  OpPropagation(Context& context, const CompileOptions& options);

  // The ids of the shardings that tensors with shardings `before` have after a visit, operands first. Valid until the
  // next call.
  const uint32_t* after(const Visit& visit, std::span<const ShardingId> before);

  // Repeats a visit without caching it and reports to `observer`. With `only`, the op has two tensors: the observer's,
  // without its own axes of the factor, and `only`.
  std::span<const uint32_t> replay(const Visit& visit, std::span<const ShardingId> before, AxisObserver& observer,
                                   std::optional<size_t> only = {});

  int64_t distinct() const { return static_cast<int64_t>(cache_.size()); }

 private:
  void start(std::span<const ShardingId> before);
  void grow(const Visit& visit, const MeshPtr& mesh, std::span<const ShardingId> before,
            AxisObserver* observer = nullptr, std::optional<size_t> only = {});
  void hide_all_but(const AxisObserver& observer, size_t only);
  void observe_dim(AxisObserver& observer) const;

  Context& context_;
  FactorPropagation factors_;
  FactorProjection projection_;
  RunCache<ShardingId> cache_;
  bool whole_axes_only_;
  std::vector<uint32_t> after_;
  std::vector<const TensorSharding*> shardings_;
};

}  // namespace shardwise
