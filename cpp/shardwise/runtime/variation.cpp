// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/variation.h"

#include <unordered_set>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

void append(AxisList& all, AxisSpan axes) { all.insert(all.end(), axes.begin(), axes.end()); }

AxisList axes_of(const Placement& placement) {
  AxisList axes = placement.unreduced;
  for (const DimPlacement& dim : placement.dims) append(axes, dim.axes);
  return axes;
}

std::unordered_set<PlacementId> placements_of(const Module& module) {
  std::unordered_set<PlacementId> placements;
  for (uint32_t i = 1; i < module.value_count(); ++i) placements.insert(module.part(ValueId{i}).placement);
  placements.erase(PlacementId{});
  return placements;
}

// Digits and collectives; nothing varies yet.
Variation cut_digits(const Module& module, const Mesh& mesh, AxisSpan pinned) {
  Variation variation;
  AxisList used(pinned.begin(), pinned.end());
  for (const PlacementId id : placements_of(module)) append(used, axes_of(module.context().placement(id)));
  for (OpId op : module.region(module.main().body).ops) {
    const OpView view(module, op);
    if (!is_local_collective(view)) continue;
    append(used, variation.collectives.emplace(op, read_collective(view)).first->second.axes_used());
  }
  variation.digits = Digits(mesh, used);
  const DigitSet fixed = variation.digits.covered(pinned);
  check_internal(fixed == variation.digits.touched(pinned), "run: pinned axes are digits of the program");
  variation.free = variation.digits.all() & ~fixed;
  variation.varying.resize(module.value_count(), 0);
  return variation;
}

}  // namespace

Variation find_variation(const Module& module, const Mesh& mesh, AxisSpan pinned, bool everywhere) {
  Variation variation = cut_digits(module, mesh, pinned);
  const Digits& digits = variation.digits;
  std::vector<DigitSet>& varying = variation.varying;
  const Region& body = module.region(module.main().body);
  for (ValueId argument : body.arguments) {
    if (const PlacementId placement = module.part(argument).placement) {
      varying[argument.index] = digits.touched(axes_of(module.context().placement(placement)));
    }
    if (everywhere) varying[argument.index] = digits.all();
  }
  for (OpId op : body.ops) {
    DigitSet after = 0;
    for (ValueId operand : module.operands(op)) after |= varying[operand.index];
    const auto call = variation.collectives.find(op);
    if (call != variation.collectives.end()) after = call->second.varying_after(digits, after);
    if (everywhere) after = digits.all();
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) varying[module.result(op, i).index] = after;
  }
  for (DigitSet& digits_of_value : varying) digits_of_value &= variation.free;
  return variation;
}

}  // namespace shardwise
