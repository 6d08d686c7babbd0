// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/computed_again.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// Elementwise ops must make wider elements; movement ops must not drop any.
bool makes_more(const OpView& op) {
  const TensorType &from = op.module().type(op.operand(0)), &to = op.module().type(op.result());
  // Not a bitcast of several elements to one.
  if (op.def().traits.elementwise) return item_size(from.dtype) < item_size(to.dtype) && from.shape == to.shape;
  return element_count(from.shape) <= element_count(to.shape) && !sharding_rule(op).empty();
}

bool can_be_made_again(const OpView& op) {
  const Traits& traits = op.def().traits;
  if (op.operand_count() == 0 || op.result_count() != 1 || traits.annotates() || traits.side_effect) return false;
  if (traits.elementwise) return op.operand_count() > 1 || op.operand_type(0).shape == op.result_type().shape;
  return traits.movement && op.operand_count() == 1 && makes_more(op);
}

// Gives the axes of each split dim of the result to the dim of the operand that has the same factor.
PlacementId operand_of_copies(const OpView& op, const Placement& wanted, const ProgramPlacements& placements) {
  if (!wanted.unreduced.empty()) return {};
  const ShardingRule& rule = sharding_rule(op);
  const TypeId type = op.module().value(op.operand(0)).type;
  const Dims &from = op.module().type(op.operand(0)).shape, &to = op.module().type(op.result()).shape;
  std::vector<AxisList> dims(from.size());
  for (size_t d = 0; d < to.size(); ++d) {
    const DimPlacement& split = wanted.dims[d];
    if (split.axes.empty()) continue;
    const auto factors = rule.dim(rule.result_tensor(0), d);
    if (factors.size() != 1 || rule.factors()[factors[0]].kind != FactorKind::kPassThrough) return {};
    bool is_of_operand = false;
    for (size_t e = 0; e < from.size(); ++e) {
      const auto others = rule.dim(0, e);
      if (std::ranges::find(others, factors[0]) == others.end()) continue;
      // The operand has the blocks that its size gives, and a factor of its own for the dim.
      if (others.size() != 1 || from[e] != to[d] || split.block != ceil_div(to[d], product(split.axes))) return {};
      dims[e] = split.axes;
      is_of_operand = true;
    }
    // Only copies have dims of their own: a reshape of 4x9 to 18x2 has no factor for them.
    if (!is_of_operand && element_count(from) == element_count(to)) return {};
  }
  return placements.of(type, std::move(dims), {}, Reducer::kNone, wanted.mesh);
}

PlacementId whole(const OpView& op, size_t operand, const Placement& wanted, const ProgramPlacements& placements) {
  const TypeId type = op.module().value(op.operand(operand)).type;
  return placements.of(type, std::vector<AxisList>(op.operand_type(operand).shape.size()), {}, Reducer::kNone,
                       wanted.mesh);
}

}  // namespace

ComputedAgain computed_again(const OpView& op, PlacementId result, const ProgramPlacements& placements) {
  if (!can_be_made_again(op)) return {};
  const Placement* wanted = placements.find(result);
  ComputedAgain again{.operands = {}, .is_of_less = op.operand_count() == 1 && makes_more(op)};
  if (!op.def().traits.elementwise && wanted != nullptr) {
    const PlacementId placement = operand_of_copies(op, *wanted, placements);
    if (!placement) return {};
    again.copies = op.operand_type(0).size() < op.result_type().size();
    again.operands.push_back({op.operand(0), placement});
    return again;
  }
  if (wanted != nullptr && !wanted->unreduced.empty() && op.operand_count() > 1) return {};
  for (size_t i = 0; i < op.operand_count(); ++i) {
    // A scalar for all elements is whole.
    const bool is_alike = op.operand_type(i).shape == op.result_type().shape;
    const PlacementId same = is_alike || wanted == nullptr ? result : whole(op, i, *wanted, placements);
    again.operands.push_back({op.operand(i), same});
  }
  return again;
}

}  // namespace shardwise
