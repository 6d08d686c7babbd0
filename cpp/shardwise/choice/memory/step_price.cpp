// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/step_price.h"

#include <algorithm>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

int64_t region_ps(const Module& local, const LiveRanges& ranges, RegionId region, const Hardware& hardware) {
  int64_t sum = 0;
  for (const LiveStep& step : ranges.of(region).steps) {
    sum = saturated_sum(sum, step_ps(local, ranges, step, hardware));
  }
  return sum;
}

// Inputs are read and the result is written; what is between the ops stays on the chip.
int64_t chain_ps(const Module& local, const LiveStep& step, const Hardware& hardware) {
  OpTime sum;
  for (const OpId id : step.chain->ops) {
    const OpView op(local, id);
    uint64_t in_memory = 0;
    const size_t tensors = std::min<size_t>(op.operand_count() + op.result_count(), 64);
    for (size_t t = 0; t < tensors; ++t) {
      const bool is_result = t >= op.operand_count();
      const bool is_at_border =
          is_result ? id == step.op : std::ranges::find(step.inputs, op.operand(t)) != step.inputs.end();
      if (is_at_border) in_memory |= uint64_t{1} << t;
    }
    const OpTime time = op_time(op, own_types(op), hardware, in_memory);
    sum.launch_ps = time.launch_ps;
    sum.memory_ps = saturated_sum(sum.memory_ps, time.memory_ps);
    for (size_t unit = 0; unit < sum.unit_ps.size(); ++unit) {
      sum.unit_ps[unit] = saturated_sum(sum.unit_ps[unit], time.unit_ps[unit]);
    }
  }
  return sum.ps();
}

}  // namespace

int64_t step_ps(const Module& local, const LiveRanges& ranges, const LiveStep& step, const Hardware& hardware) {
  if (step.chain != nullptr) return chain_ps(local, step, hardware);
  const OpView op(local, step.op);
  if (is_call(local, step.op)) return region_ps(local, ranges, called_function(local, step.op).body, hardware);
  if (op.def().is_control_flow()) {
    int64_t sum = 0;
    for (size_t r = 0; r < op.regions().size(); ++r) {
      const int64_t once = region_ps(local, ranges, op.regions()[r], hardware);
      sum = saturated_sum(sum, executions_inside(op, r, {}).times(once));
    }
    return sum;
  }
  const int64_t kernel = op_time(op, hardware).ps();
  if (op.def().traits.collective == CollectiveKind::kNone) return kernel;
  return saturated_sum(kernel, collective_price(read_collective(op), hardware).ps);
}

}  // namespace shardwise
