// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/apply_constraints.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/propagation/data_flow_edges.h"

namespace shardwise {
namespace {

class ConstraintApplier {
 public:
  ConstraintApplier(Module& module, Provenance& provenance)
      : module_(module), rewrite_(module), provenance_(provenance), order_(module.op_count(), 0) {
    const DataFlowEdges edges(module);
    for (const auto& [op, edge] : edges.all()) {
      const ValueId result = module_.result(op);
      targets_.emplace(result, result);
      for (const ValueId target : edge.targets) {
        if (target != edge.owner) targets_.emplace(target, result);
      }
    }
    // Ids are not in the order of the program: earlier passes have inserted ops.
    uint32_t position = 0;
    walk(module_, [&](OpId id) { order_[id.index] = ++position; });
    // In the order of MLIR's walk, since one constraint that is applied can keep another one from being applied.
    walk<Order::kRegionsFirst>(module_, [&](OpId id) {
      find_in_shardings(id);
      if (is_constraint(id)) constraints_.push_back(id);
    });
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
  // The in-shardings of a manual computation constrain its operands as well.
  void find_in_shardings(OpId id) {
    std::vector<ShardingId> shardings;
    for (const DataFlowEdge& edge : edges_of(OpView(module_, id))) {
      if (edge.target_inside) shardings.push_back(edge.outside);
    }
    if (shardings.empty()) return;
    in_shardings_.emplace(id, std::move(shardings));
    constraints_.push_back(id);
  }

  bool is_constraint(OpId id) const { return id && module_.op(id).def->traits.constraint; }
  ValueId input(OpId id) const { return module_.operands(id)[0]; }
  ShardingId sharding_of(OpId constraint) const { return module_.value(module_.result(constraint)).sharding; }
  // The annotation of the used value by its user; none if the user is not a constraint.
  std::optional<ShardingId> annotation_at(const Use& use) const {
    if (is_constraint(use.op)) return sharding_of(use.op);
    const auto manual = in_shardings_.find(use.op);
    return manual == in_shardings_.end() ? std::nullopt : std::optional(manual->second[use.index]);
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
    // An open constraint may still grow, so that its value need not have the same sharding. An argument of an inner
    // region without an edge is sharded by the op that owns it.
    if (!sharding || known || (is_inner_argument && !is_target) || !fully_closed(sharding)) return;
    for (const Use use : module_.uses(value)) {
      // Two annotations of one value: neither is its own, and each needs a reshard.
      if (const std::optional<ShardingId> annotation = annotation_at(use); annotation && *annotation != sharding)
        return;
    }
    if (is_target) keep_unreduced(edge->second, sharding, constraint);
    if (is_target && is_constraint(constraint)) return take_over(constraint, value);
    const ValueId constrained = is_target ? behind(value, sharding) : value;
    provenance_.steps.push_back(PropagationStep{
        .op = constraint, .value = constrained, .after = sharding, .tensor = operand & PropagationStep::kMaxTensor});
    if (is_target) return take_over(module_.value(constrained).op, value);
    module_.value(value).sharding = sharding;
  }

  // The value gets the constraint's unreduced axes, because a constraint cannot make a reduced value unreduced.
  void keep_unreduced(ValueId value, ShardingId sharding, OpId constraint) {
    const TensorSharding& annotation = module_.context().sharding(sharding);
    if (annotation.unreduced.empty()) return;
    TensorSharding open = TensorSharding::open(annotation.mesh, annotation.ndim());
    open.unreduced = annotation.unreduced;
    open.reducer = annotation.reducer;
    const ShardingId after = module_.context().intern(open);
    module_.value(value).sharding = after;
    provenance_.steps.push_back({.op = constraint, .value = value, .after = after});
  }

  ValueId behind(ValueId value, ShardingId sharding) {
    const ValueId made = rewrite_.insert(rewrite_.behind(value), rewrite_.loc(value), [&](Builder& builder) {
      return create_sharding_constraint(builder, value, TensorSharding(module_.context().sharding(sharding)));
    });
    // The new op has position 0, so that no tail of a chain takes over its operand.
    order_.resize(module_.op_count());
    return made;
  }

  // A value of a data-flow edge shares its sharding with other values. The constraint, which is for this value only,
  // therefore moves right after it and takes over all its uses.
  void take_over(OpId constraint, ValueId value) {
    rewrite_.move(constraint, rewrite_.behind(value));
    rewrite_.replace(value, module_.result(constraint), constraint);
  }

  // The last of two or more constraints in a row, each the only user of the one before; none for other constraints.
  OpId tail_of_chain(OpId head) {
    const ValueId value = input(head);
    if (is_constraint(module_.value(value).op) || module_.value(value).sharding) return {};
    for (const Use use : module_.uses(value)) {
      if (use.op != head && annotation_at(use)) return {};
    }
    OpId tail = head;
    for (;;) {
      const UseRange uses = module_.uses(module_.result(tail));
      if (uses.empty() || std::next(uses.begin()) != uses.end() || !is_constraint((*uses.begin()).op)) break;
      tail = (*uses.begin()).op;
    }
    if (tail == head) return {};
    for (const Use use : module_.uses(module_.result(tail))) {
      if (annotation_at(use)) return {};
    }
    return tail;
  }

  void replace_by_tail(OpId head) {
    const OpId tail = tail_of_chain(head);
    if (!tail) return;
    const RegionId region = module_.op(tail).parent;
    rewrite_.replace_if(input(head), module_.result(tail), [&](const Use& use) {
      // A result of main is not replaced.
      if (!use.op) return use.region == region && module_.region(region).op;
      return use.op != head && module_.op(use.op).parent == region && order_[use.op.index] > order_[tail.index];
    });
  }

  Module& module_;
  Rewrite rewrite_;
  Provenance& provenance_;
  std::vector<uint32_t> order_;  // by op: position in the program
  std::vector<OpId> constraints_;
  std::unordered_map<ValueId, ValueId> targets_;  // edges, and the region arguments that they represent: to the edge
  std::unordered_map<OpId, std::vector<ShardingId>> in_shardings_;  // by manual computation: of its operands
};

}  // namespace

void apply_constraints(Module& module, PassContext& context) {
  const auto may_constrain = [](const OpDef& def) { return def.traits.constraint || def.flow != nullptr; };
  if (any_op(module, may_constrain)) ConstraintApplier(module, context.provenance).run();
}

}  // namespace shardwise
