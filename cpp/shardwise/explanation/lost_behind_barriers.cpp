// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/lost_behind_barriers.h"

#include <algorithm>
#include <set>

namespace shardwise {
namespace {

// A dim of a value that nothing splits, and the dim of the value asked about that would get its axes.
struct CarriedDim {
  ValueId value;
  size_t dim = 0;
  size_t asked = 0;
  auto operator<=>(const CarriedDim&) const = default;
};

// The unsplit dims whose axes the op would carry on.
std::vector<CarriedDim> carried_dims(AxisHistory& history, const CarriedDim& to, OpId op) {
  std::vector<CarriedDim> found;
  const FactorProjection& projection = history.project({op}, history.now());
  const ShardingRule& rule = projection.rule();
  const Direction direction = participation(OpView(history.module(), op), kLastRound).direction;
  const std::vector<TensorRef> tensors = history.tensors({op});
  for (size_t own = 0; own < tensors.size() && !rule.empty(); ++own) {
    // An op that carries nothing to `to` is a barrier itself, and has its own entry among the lost axes.
    const Direction towards = own < rule.operand_count() ? Direction::kBackward : Direction::kForward;
    if (tensors[own].value != to.value || (direction != Direction::kBoth && direction != towards)) continue;
    for (const FactorId factor : rule.dim(own, to.dim)) {
      for (size_t t = 0; t < tensors.size() && !rule.factors()[factor].blocked; ++t) {
        const FactorSharding* theirs = projection.find(t, factor);
        if (t == own || theirs == nullptr || !theirs->axes.empty()) continue;
        found.push_back({tensors[t].value, dim_of(rule, t, factor), to.asked});
      }
    }
  }
  return found;
}

}  // namespace

std::vector<LostAxis> lost_behind_barriers(AxisHistory& history, AxisTracer& tracer, ValueId value) {
  std::vector<LostAxis> lost;
  if (!history.has_barrier()) return lost;
  std::vector<CarriedDim> stack;
  for (size_t d = history.module().type(value).shape.size(); d-- > 0;) stack.push_back({value, d, d});
  std::set<CarriedDim> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    const CarriedDim at = stack.back();
    stack.pop_back();
    for (LostAxis& one : lost_axes(history, tracer, at.value)) {
      if (one.dim != static_cast<int64_t>(at.dim) || one.verdict != Verdict::kDirection) continue;
      one.dim = static_cast<int64_t>(at.asked);
      one.reason += ", and this value is downstream of it";
      lost.push_back(std::move(one));
    }
    for (const VisitedOp visited : history.visits_of(at.value)) {
      if (!visited.op) continue;  // a result of main has the axes of its value
      for (const CarriedDim& next : carried_dims(history, at, visited.op)) {
        if (seen.insert(next).second) stack.push_back(next);
      }
    }
  }
  return lost;
}

}  // namespace shardwise
