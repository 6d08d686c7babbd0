// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/cotangent_sums.h"

#include <algorithm>
#include <vector>

#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/transforms/batch/manual_axes.h"

namespace shardwise {
namespace {

bool has_match(const Module& module, RegionId region) {
  return std::ranges::any_of(module.region(region).ops, [&](OpId op) {
    return is_match_varying(*module.op(op).def) ||
           std::ranges::any_of(module.regions(op), [&](RegionId inner) { return has_match(module, inner); });
  });
}

class Sums {
 public:
  Sums(Module& module, const CotangentSums& sums) : module_(module), sums_(sums), replaced_(module) {}

  void visit(RegionId region) {
    const std::vector<OpId> ops = std::move(module_.region(region).ops);
    module_.region(region).ops.clear();
    for (const OpId op : ops) {
      map_operands(module_, op, replaced_);
      if (is_match_varying(*module_.op(op).def)) {
        replace(region, op);
        continue;
      }
      module_.region(region).ops.push_back(op);
      const std::vector<RegionId> inner(module_.regions(op).begin(), module_.regions(op).end());
      for (const RegionId body : inner) visit(body);
    }
    map_results(module_, region, replaced_);
  }

 private:
  void replace(RegionId region, OpId op) {
    const ValueId cotangent = module_.operands(op)[0];
    const auto sum = sums_.find(op);
    const bool is_equal = sum == sums_.end() || sum->second.set == 0;
    Builder builder(module_, region, module_.op(op).loc);
    replaced_.add(module_.result(op),
                  is_equal ? cotangent : create_sum_over(builder, *sum->second.mesh, cotangent, sum->second.axes));
    module_.drop_uses(op);
  }

  Module& module_;
  const CotangentSums& sums_;
  Redirection replaced_;
};

}  // namespace

CotangentSums find_cotangent_sums(const OpView& op, const ManualAxes& manual) {
  CotangentSums sums;
  if (!has_match(op.module(), op.regions()[0])) return sums;
  BatchDependence dependence(op.module(), manual.axes(), [](ValueId) { return AxisSet{0}; });
  dependence.find_sums(sums);
  dependence.manual_results(op.id(), manual);
  return sums;
}

void sum_cotangents(Module& module, OpId manual) {
  const OpView op(module, manual);
  const RegionId body = op.regions()[0];
  if (!has_match(module, body)) return;
  const CotangentSums sums = find_cotangent_sums(op, ManualAxes(op, BatchAxes()));
  Sums(module, sums).visit(body);
}

}  // namespace shardwise
