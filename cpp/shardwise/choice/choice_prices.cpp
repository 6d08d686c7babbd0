// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_prices.h"

#include <unordered_set>
#include <utility>

#include "shardwise/base/quantity.h"
#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/choice/computed_again.h"
#include "shardwise/choice/lost_splits.h"
#include "shardwise/choice/merged_exchanges.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

Price times(const Executions& executions, const Price& price) {
  return {executions.times(price.ps), executions.times(price.bytes), executions.times(price.rounds),
          executions.times(price.work), executions.times(price.position)};
}

// Whether an op makes the value in another placement.
bool is_moved(const Module& module, const Choice& choice, ValueId value, PlacementId need) {
  const Value& known = module.value(value);
  if (!known.op) return false;
  const std::vector<PlacementId>& made = choice.ops[known.op.index].results;
  return known.index < made.size() && made[known.index] != need;
}

}  // namespace

Price ChoicePrices::of(const Choice& choice) {
  Price total;
  walk(module_, [&](OpId id) {
    const OpChoice& chosen = choice.ops[id.index];
    if (chosen.operands.empty() && chosen.results.empty()) return;  // a constant, or an op of a combiner
    if (is_merged(module_, choice, id)) return;
    total += times(executions_.of(id), price_of_op(OpView(module_, id), choice));
  });
  for (const auto& [key, version] : choice.versions) {
    total += times(executions_.of_region(key.region), price_of_version(key, version));
  }
  return total;
}

Price ChoicePrices::at_loops(const Choice& choice) {
  std::unordered_set<ValueId> carried;
  walk(module_, [&](OpId id) {
    const OpView op(module_, id);
    if (op.def().regions != Regions::kLoop) return;
    for (size_t i = 0; i < op.result_count(); ++i) carried.insert(op.result(i));
    for (const RegionId id_of_region : op.regions()) {
      const Region& region = module_.region(id_of_region);
      carried.insert(region.arguments.begin(), region.arguments.end());
      carried.insert(region.results.begin(), region.results.end());
    }
  });
  Price total;
  for (const auto& [key, version] : choice.versions) {
    if (!carried.contains(key.value)) continue;
    total += times(executions_.of_region(key.region), price_of_version(key, version));
  }
  return total;
}

const Price& ChoicePrices::price_of_op(const OpView& op, const Choice& choice) {
  const OpChoice& chosen = choice.ops[op.id().index];
  moved_.clear();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    moved_.push_back(is_moved(module_, choice, op.operand(i), chosen.operands[i]));
  }
  Priced& priced = priced_[op.id().index];
  if (priced.is_known && priced.moved == moved_ && priced.chosen == chosen) return priced.price;
  priced = {.is_known = true, .chosen = chosen, .moved = moved_, .price = {}};
  priced.price = new_price(op, priced);
  return priced.price;
}

Price ChoicePrices::new_price(const OpView& op, const Priced& priced) {
  const OpChoice& chosen = priced.chosen;
  std::vector<bool> is_used;
  for (size_t i = 0; i < op.result_count(); ++i) is_used.push_back(!module_.uses(op.result(i)).empty());
  Price price = costs_.compute_price({op, sharding_rule(op), chosen, priced.moved, is_used});
  if (chosen.results.empty() || !has_wide_addends(placements_, op, chosen)) return price;
  // A wide sum is reduced at once (greedy/greedy_walk.cpp).
  for (size_t i = 0; i < op.result_count(); ++i) {
    const PlacementId made = chosen.results[i];
    price += costs_.reshard_price(type_made(placements_, op, i, made), made, placements_.declared(op.result(i)));
  }
  return price;
}

int64_t ChoicePrices::whole_flops(const OpView& op) {
  const auto [found, is_new] = whole_flops_.try_emplace(&sharding_rule(op));
  if (is_new) found->second = own_cost(op).flops();
  return found->second;
}

// The axes of the program's mesh over which no tensor of the op is split, nor a sum of parts.
AxisList ChoicePrices::repeated_axes(const OpChoice& chosen) const {
  AxisList repeated;
  if (placements_.mesh() == nullptr) return repeated;
  for (size_t i = 0; i < placements_.mesh()->axes().size(); ++i) {
    repeated.push_back(full_axis(*placements_.mesh(), static_cast<int>(i)));
  }
  for (const std::vector<PlacementId>* tensors : {&chosen.operands, &chosen.results}) {
    for (const PlacementId id : *tensors) {
      const Placement* placement = placements_.find(id);
      if (placement != nullptr && placement->mesh == placements_.mesh()) {
        repeated = difference(repeated, placement->axes());
      }
    }
  }
  erase_if(repeated, [](const AxisRef& axis) { return axis.size == 1; });
  return repeated;
}

int64_t ChoicePrices::dim_to_split(const OpView& op, const OpChoice& chosen, const AxisList& axes) const {
  const Placement* placement = chosen.results.empty() ? nullptr : placements_.find(chosen.results[0]);
  const ShardingRule& rule = sharding_rule(op);
  if (placement == nullptr || rule.empty() || axes.empty() || chosen.has_own_partition()) return -1;
  const Dims& shape = op.result_type().shape;
  int64_t best = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto factors = rule.dim(rule.result_tensor(0), d);
    const bool is_free = factors.size() == 1 && rule.factors()[factors[0]].kind == FactorKind::kPassThrough;
    if (!is_free || !placement->dims[d].axes.empty() || shape[d] < product(axes)) continue;
    if (best < 0 || shape[d] > shape[static_cast<size_t>(best)]) best = static_cast<int64_t>(d);
  }
  return best;
}

std::vector<OpWork> ChoicePrices::work(const Choice& choice) {
  std::vector<OpWork> rows;
  LostSplits lost(module_, placements_);
  walk(module_, [&](OpId id) {
    const OpChoice& chosen = choice.ops[id.index];
    if (chosen.operands.empty() && chosen.results.empty()) return;  // as in of()
    const OpView op(module_, id);
    const int64_t flops = price_of_op(op, choice).work;
    if (flops == 0) return;
    OpWork work{.op = id,
                .loc = op.loc(),
                .name = op.name(),
                .flops = flops,
                .whole = whole_flops(op),
                .executions = executions_.of(id),
                .repeated = {}};
    if (placements_.mesh() != nullptr && saturated_product(flops, placements_.mesh()->device_count()) > work.whole) {
      work.repeated = repeated_axes(chosen);
      work.dim = dim_to_split(op, chosen, work.repeated);
      for (const AxisRef& axis : work.repeated) {
        if (!work.lost) work.lost = lost.of(id, axis);
      }
    }
    rows.push_back(std::move(work));
  });
  return rows;
}

Price ChoicePrices::price_of_version(const VersionKey& key, const VersionChoice& version) {
  const Value& value = module_.value(key.value);
  switch (version.kind) {
    case VersionChoice::kMade: break;
    case VersionChoice::kReshard: return costs_.reshard_price(value.type, version.from, key.placement);
    case VersionChoice::kAgain: {
      const OpView op(module_, value.op);
      OpChoice chosen{.operands = {}, .results = {key.placement}};
      for (const ComputedAgain::Operand& operand : computed_again(op, key.placement, placements_).operands) {
        chosen.operands.push_back(operand.placement);
      }
      const std::vector<bool> is_moved(op.operand_count(), true);
      return costs_.compute_price({op, sharding_rule(op), chosen, is_moved, {true}});
    }
  }
  return {};
}

}  // namespace shardwise
