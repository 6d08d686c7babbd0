// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "shardwise/base/text.h"
#include "shardwise/explanation/lost_axes.h"
#include "shardwise/explanation/verdict_text.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/propagation/common_mesh.h"

namespace shardwise {

// A dim of a value that nothing splits, and the dim of the value asked about that would get its axes.
struct LostAxisFinder::CarriedDim {
  ValueId value;
  size_t dim = 0;
  size_t asked = 0;
  auto operator<=>(const CarriedDim&) const = default;
};

void LostAxisFinder::find_behind_barriers(std::vector<LostAxis>& lost) {
  std::vector<CarriedDim> stack;
  for (size_t d = module_.type(value_).shape.size(); d-- > 0;) stack.push_back({value_, d, d});
  std::set<CarriedDim> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    const CarriedDim at = stack.back();
    stack.pop_back();
    for (const OpId op : context_.ops_at(at.value)) {
      if (!connects(op)) continue;
      const std::vector<TensorRef> tensors = history_.tensors(op);
      for (size_t own = 0; own < tensors.size(); ++own) {
        if (tensors[own] != TensorRef{at.value}) continue;
        for (const CarriedDim& next : carried_dims(at, op, own, lost)) {
          if (seen.insert(next).second) stack.push_back(next);
        }
      }
    }
  }
}

// Whether the tensors of the op are on one mesh. So are tensors without shardings.
bool LostAxisFinder::connects(OpId op) const {
  const std::vector<ShardingId> shardings = history_.seen_by(op, history_.now());
  if (std::ranges::none_of(shardings, [](ShardingId id) { return static_cast<bool>(id); })) return true;
  const MeshPtr* mesh = common_mesh(module_.context(), shardings);
  return mesh != nullptr && (*mesh)->same_devices(mesh_);
}

// The dims that tensor `own` of the op would get axes from. An axis that a barrier keeps back is appended to `lost`.
std::vector<LostAxisFinder::CarriedDim> LostAxisFinder::carried_dims(const CarriedDim& at, OpId op, size_t own,
                                                                     std::vector<LostAxis>& lost) {
  std::vector<CarriedDim> found;
  const FactorProjection& projection = history_.project(op, history_.now());
  const ShardingRule& rule = projection.rule();
  if (rule.empty()) return found;
  const Direction direction = participation(OpView(module_, op), kLastRound).direction;
  const bool passes = direction == Direction::kBoth ||
                      direction == (own < rule.operand_count() ? Direction::kBackward : Direction::kForward);
  const std::vector<TensorRef> tensors = history_.tensors(op);
  for (const FactorId factor : rule.dim(own, at.dim)) {
    if (rule.factors()[factor].blocked) continue;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const FactorSharding* theirs = projection.find(t, factor);
      if (t == own || theirs == nullptr) continue;
      if (passes) {
        if (theirs->axes.empty()) found.push_back({tensors[t].value, dim_of(rule, t, factor), at.asked});
      } else if (!theirs->axes.empty()) {
        const OpId barrier = tracer_.shown(op);
        lost.push_back({.axis_text = axis_text(mesh_, theirs->axes.front()),
                        .dim = static_cast<int64_t>(at.asked),
                        .op = std::string(module_.op(barrier).def->name),
                        .value = shown_name(module_, barrier),
                        .location = module_.context().location_text(module_.op(barrier).loc),
                        .reason = str(direction_text(direction), ", and the value is behind it"),
                        .rule = std::string(verdict_text(Verdict::kDirection).rule)});
      }
    }
  }
  return found;
}

}  // namespace shardwise
