// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/apply_constraints.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/propagation/data_flow_edges.h"

namespace shardwise {
namespace {

class ConstraintApplier {
 public:
  ConstraintApplier(Module& module, Provenance& provenance)
      : module_(module), provenance_(provenance), order_(module.op_count(), 0), returned_(module.value_count(), 0) {
    const DataFlowEdges edges(module);
    for (const auto& [op, edge] : edges.all()) {
      const ValueId result = module_.result(op);
      targets_.emplace(result, result);
      for (const ValueId target : edge.targets) {
        if (target != edge.owner) targets_.emplace(target, result);
      }
    }
    for (const Function& function : module_.functions) find_constraints(function.body);
    for (const Function& function : module_.functions) index_uses(function.body);
  }

  void run() {
    for (OpId op : constraints_) {
      if (const auto manual = in_shardings_.find(op); manual != in_shardings_.end()) {
        for (uint32_t i = 0; i < manual->second.size(); ++i) apply(op, i, manual->second[i]);
      } else {
        replace_by_tail(op);
        apply(op, 0, sharding_of(op));
      }
    }
  }

 private:
  void find_constraints(RegionId region) {
    for (OpId id : module_.region(region).ops) {
      order_[id.index] = ++position_;
      for (RegionId inner : module_.regions(id)) find_constraints(inner);
      if (module_.op(id).def->flow != nullptr) find_in_shardings(id);
      if (!is_constraint(id)) continue;
      constraints_.push_back(id);
      uses_[input(id)];
      uses_[module_.result(id)];
    }
    for (ValueId result : module_.region(region).results) ++returned_[result.index];
  }

  // What a manual computation says of its operands constrains them as well.
  void find_in_shardings(OpId id) {
    std::vector<DataFlowEdge> edges;
    const OpView op(module_, id);
    op.def().flow(op, edges);
    std::vector<ShardingId> shardings;
    for (const DataFlowEdge& edge : edges) {
      if (edge.target_inside) shardings.push_back(edge.outside);
    }
    if (shardings.empty()) return;
    for (const ValueId operand : module_.operands(id)) uses_[operand];
    in_shardings_.emplace(id, std::move(shardings));
    constraints_.push_back(id);
  }

  // Of operands and results of constraints only.
  void index_uses(RegionId region) {
    for (OpId id : module_.region(region).ops) {
      const auto operands = module_.operands(id);
      for (uint32_t i = 0; i < operands.size(); ++i) {
        if (auto it = uses_.find(operands[i]); it != uses_.end()) it->second.push_back(Use{id, i});
      }
      for (RegionId inner : module_.regions(id)) index_uses(inner);
    }
  }

  bool is_constraint(OpId id) const { return id && module_.op(id).def->traits.constraint; }
  ValueId input(OpId id) const { return module_.operands(id)[0]; }
  ShardingId sharding_of(OpId constraint) const { return module_.value(module_.result(constraint)).sharding; }
  // What a use says about the value used; none for ops that are no constraints.
  std::optional<ShardingId> said_by(const Use& use) const {
    if (is_constraint(use.op)) return sharding_of(use.op);
    const auto manual = in_shardings_.find(use.op);
    return manual == in_shardings_.end() ? std::nullopt : std::optional(manual->second[use.operand]);
  }

  bool fully_closed(ShardingId id) const {
    const TensorSharding& sharding = module_.context().sharding(id);
    return std::ranges::none_of(sharding.dims, [](const DimSharding& dim) { return dim.open; });
  }

  void apply(OpId constraint, uint32_t operand, ShardingId sharding) {
    const ValueId value = module_.operands(constraint)[operand];
    const Value& target = module_.value(value);
    const auto edge = targets_.find(value);
    const bool is_target = edge != targets_.end();
    const bool is_inner_argument = !target.op && module_.region(target.region).op;
    const ShardingId known = is_target ? module_.value(edge->second).sharding : target.sharding;
    if (!sharding || known || (is_inner_argument && !is_target) || !fully_closed(sharding)) return;
    for (const Use& use : uses_.at(value)) {
      if (const std::optional<ShardingId> said = said_by(use); said && *said != sharding) return;
    }
    if (is_target) keep_unreduced(edge->second, sharding, constraint);
    if (is_target && is_constraint(constraint)) return take_over(constraint, value);
    const ValueId constrained = is_target ? behind(value, sharding) : value;
    provenance_.steps.push_back(
        PropagationStep{.op = constraint, .value = constrained, .tensor = operand, .before = {}, .after = sharding});
    if (is_target) return take_over(module_.value(constrained).op, value);
    module_.value(value).sharding = sharding;
  }

  // A constraint behind the value cannot make it whole again: what it leaves unreduced, the value does.
  void keep_unreduced(ValueId value, ShardingId sharding, OpId constraint) {
    const TensorSharding& said = module_.context().sharding(sharding);
    if (said.unreduced.empty()) return;
    TensorSharding open = TensorSharding::open(said.mesh, said.ndim());
    open.unreduced = said.unreduced;
    open.reducer = said.reducer;
    const ShardingId after = module_.context().intern(open);
    module_.value(value).sharding = after;
    provenance_.steps.push_back({.op = constraint, .value = value, .tensor = 0, .before = {}, .after = after});
  }

  // A constraint on the value, somewhere in its region.
  ValueId behind(ValueId value, ShardingId sharding) {
    const Value& target = module_.value(value);
    const RegionId region = target.op ? module_.op(target.op).parent : target.region;
    Builder builder(module_, region, target.op ? module_.op(target.op).loc : target.loc);
    const ValueId made =
        create_sharding_constraint(builder, value, TensorSharding(module_.context().sharding(sharding)));
    order_.resize(module_.op_count());
    returned_.resize(module_.value_count());
    uses_[made];
    uses_.at(value).push_back({module_.value(made).op, 0});
    return made;
  }

  // What an op hands on has one sharding for several values: the constraint, which is of this one, goes right behind it
  // and takes all its uses.
  void take_over(OpId constraint, ValueId value) {
    std::vector<OpId>& before = module_.region(module_.op(constraint).parent).ops;
    before.erase(std::ranges::find(before, constraint));
    const Value& target = module_.value(value);
    const RegionId region = target.op ? module_.op(target.op).parent : target.region;
    module_.op(constraint).parent = region;
    std::vector<OpId>& ops = module_.region(region).ops;
    ops.insert(target.op ? std::next(std::ranges::find(ops, target.op)) : ops.begin(), constraint);
    const ValueId result = module_.result(constraint);
    for (const Use& use : uses_.at(value)) {
      if (use.op == constraint) continue;
      module_.operands(use.op)[use.operand] = result;
      uses_.at(result).push_back(use);
    }
    uses_.at(value) = {Use{constraint, 0}};
    for (uint32_t i = 1; i < module_.region_count(); ++i) {
      for (ValueId& returned : module_.region(RegionId{i}).results) {
        if (returned != value) continue;
        returned = result;
        --returned_[value.index], ++returned_[result.index];
      }
    }
  }

  // The last of two or more constraints in a row, each the only user of the one before; none for other constraints.
  OpId tail_of_chain(OpId head) const {
    const ValueId value = input(head);
    if (is_constraint(module_.value(value).op) || module_.value(value).sharding) return {};
    for (const Use& use : uses_.at(value)) {
      if (use.op != head && said_by(use)) return {};
    }
    OpId tail = head;
    for (;;) {
      const ValueId result = module_.result(tail);
      const auto& uses = uses_.at(result);
      if (uses.size() != 1 || returned_[result.index] != 0 || !is_constraint(uses[0].op)) break;
      tail = uses[0].op;
    }
    if (tail == head) return {};
    const bool has_constraint_user =
        std::ranges::any_of(uses_.at(module_.result(tail)), [&](const Use& use) { return said_by(use).has_value(); });
    return has_constraint_user ? OpId{} : tail;
  }

  void replace_by_tail(OpId head) {
    const OpId tail = tail_of_chain(head);
    if (!tail) return;
    const ValueId value = input(head);
    const ValueId replacement = module_.result(tail);
    std::vector<Use> kept;
    for (const Use& use : uses_.at(value)) {
      const bool later = use.op != head && module_.op(use.op).parent == module_.op(tail).parent &&
                         order_[use.op.index] > order_[tail.index];
      if (!later) {
        kept.push_back(use);
        continue;
      }
      module_.operands(use.op)[use.operand] = replacement;
      uses_.at(replacement).push_back(use);
    }
    uses_.at(value) = std::move(kept);
    Region& region = module_.region(module_.op(tail).parent);
    if (!region.op) return;  // what main returns stays
    for (ValueId& returned : region.results) {
      if (returned != value) continue;
      returned = replacement;
      --returned_[value.index], ++returned_[replacement.index];
    }
  }

  Module& module_;
  Provenance& provenance_;
  std::vector<uint32_t> order_;  // by op: position in the program
  std::unordered_map<ValueId, std::vector<Use>> uses_;
  std::vector<uint32_t> returned_;  // by value: how often a region returns it
  std::vector<OpId> constraints_;
  std::unordered_map<ValueId, ValueId> targets_;  // edges, and the region arguments that they stand for: to the edge
  std::unordered_map<OpId, std::vector<ShardingId>> in_shardings_;  // by manual computation: of its operands
  uint32_t position_ = 0;
};

bool has_constraints(const Module& module) {
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    const OpDef& def = *module.op(OpId{i}).def;
    if (def.traits.constraint || def.flow != nullptr) return true;
  }
  return false;
}

}  // namespace

void apply_constraints(Module& module, Provenance& provenance) {
  if (has_constraints(module)) ConstraintApplier(module, provenance).run();
}

}  // namespace shardwise
