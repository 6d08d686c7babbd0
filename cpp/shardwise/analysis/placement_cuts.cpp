// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/placement_cuts.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "shardwise/analysis/product_format.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// The axes of each factor of an op, as its tensors are placed.
class FactorAxes {
 public:
  explicit FactorAxes(const ShardingRule& rule) : rule_(rule), axes_(rule.factors().size()), is_known_(axes_.size()) {}

  // Whether the tensor agrees with those before it.
  bool add(size_t tensor, const Placement& placement) {
    for (size_t d = 0; d < rule_.ndim(tensor); ++d) {
      const auto factors = rule_.dim(tensor, d);
      if (factors.size() != 1) continue;
      if (is_known_[factors[0]] && axes_[factors[0]] != placement.dims[d].axes) return false;
      axes_[factors[0]] = placement.dims[d].axes;
      is_known_[factors[0]] = true;
    }
    // Of dims of several factors, as a reshape has, the factors are known by the other side.
    const std::vector<AxisList> dims = dims_by_rule(rule_, tensor, axes_);
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto factors = rule_.dim(tensor, d);
      const bool is_known = std::ranges::all_of(factors, [&](FactorId factor) { return is_known_[factor]; });
      if (factors.size() > 1 && is_known && dims[d] != placement.dims[d].axes) return false;
    }
    return true;
  }

  bool is_reduced() const {
    for (size_t f = 0; f < axes_.size(); ++f) {
      if (rule_.factors()[f].kind == FactorKind::kReduction && !axes_[f].empty()) return true;
    }
    return false;
  }

 private:
  const ShardingRule& rule_;
  std::vector<AxisList> axes_;
  std::vector<bool> is_known_;
};

class PlacementCuts {
 public:
  explicit PlacementCuts(const std::vector<PlacementId>& placements) : placements_(placements) {}

  bool operator()(const OpView& op, size_t operand) {
    return differs(op, operand) || is_cut_before(op.module(), op.operand(operand));
  }

 private:
  // Between the value and what it is a view of. Views are in no group. Each view is looked at once.
  bool is_cut_before(const Module& module, ValueId value) {
    std::vector<ValueId> views;
    bool is_cut = false;
    while (true) {
      if (const auto known = is_cut_before_.find(value); known != is_cut_before_.end()) {
        is_cut = known->second;
        break;
      }
      views.push_back(value);
      const OpId maker = module.value(value).op;
      if (!maker) break;
      const OpView producer(module, maker);
      is_cut = is_reduced_between(producer, value);
      const Traits& traits = producer.def().traits;
      const bool is_view =
          (traits.movement || traits.constraint || is_widening(producer)) && producer.operand_count() == 1;
      if (is_cut || !is_view) break;
      is_cut = differs(producer, 0);
      if (is_cut) break;
      value = producer.operand(0);
    }
    for (const ValueId view : views) is_cut_before_.emplace(view, is_cut);
    return is_cut;
  }

  const Placement* placement(const Module& module, ValueId value) const {
    const PlacementId id = value.index < placements_.size() ? placements_[value.index] : PlacementId{};
    return id ? &module.context().placement(id) : nullptr;
  }

  // From the results, whose placement is where the op computes.
  bool differs(const OpView& op, size_t operand) const {
    const ShardingRule& rule = sharding_rule(op);
    const Placement* read = placement(op.module(), op.operand(operand));
    if (rule.empty() || read == nullptr) return false;
    FactorAxes axes(rule);
    for (size_t i = 0; i < op.result_count(); ++i) {
      const Placement* made = placement(op.module(), op.result(i));
      if (made != nullptr && !axes.add(rule.result_tensor(i), *made)) return true;
    }
    const Placement* made = op.result_count() == 0 ? nullptr : placement(op.module(), op.result());
    const bool stays_unreduced = made != nullptr && made->unreduced == read->unreduced;
    return (!read->unreduced.empty() && !stays_unreduced) || !axes.add(operand, *read);
  }

  // A collective completes the sums of the producer, unless its result stays unreduced.
  bool is_reduced_between(const OpView& producer, ValueId value) const {
    const ShardingRule& rule = sharding_rule(producer);
    const Placement* made = placement(producer.module(), value);
    if (rule.empty() || made == nullptr || !made->unreduced.empty()) return false;
    FactorAxes axes(rule);
    for (size_t i = 0; i < producer.operand_count(); ++i) {
      const Placement* read = placement(producer.module(), producer.operand(i));
      if (read != nullptr) axes.add(i, *read);
    }
    return axes.is_reduced();
  }

  const std::vector<PlacementId>& placements_;
  std::unordered_map<ValueId, bool> is_cut_before_;
};

}  // namespace

std::function<bool(const OpView&, size_t)> cuts_between(const std::vector<PlacementId>& placements) {
  // Copies of the function share what is known.
  const auto cuts = std::make_shared<PlacementCuts>(placements);
  return [cuts](const OpView& op, size_t operand) { return (*cuts)(op, operand); };
}

}  // namespace shardwise
