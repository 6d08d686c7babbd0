// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/data_flow_edges.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/ops/sharding/propagation_control.h"

namespace shardwise {
namespace {

ShardingId inside(Context& context, const DataFlowEdge& edge, ShardingId sharding) {
  if (!sharding || edge.manual_axes.empty()) return sharding;
  return context.intern(seen_from_inside(context.sharding(sharding), edge.manual_axes));
}

ShardingId outside(Context& context, const DataFlowEdge& edge, ShardingId sharding) {
  if (!sharding || edge.manual_axes.empty()) return sharding;
  return context.intern(
      seen_from_outside(context.sharding(sharding), context.sharding(edge.outside), edge.manual_axes));
}

class EdgeAdder {
 public:
  explicit EdgeAdder(Module& module) : module_(module), rewrite_(module) {}

  void run() {
    const DataFlowEdges known(module_);
    for (const auto& [op, edge] : known.all()) known_.insert(edge.owner);
    if (known.empty() && known.bare().empty()) return;
    // Before edges are added: an edge starts with its owner's sharding.
    walk<Order::kRegionsFirst>(module_, [&](OpId id) { keep_manual_axes(id); });
    for (const Function& function : module_.functions) add(function.body);
  }

 private:
  // Operands and results of a manual computation are replicated along each manual axis that splits none of their dims,
  // and must stay replicated.
  void keep_manual_axes(OpId id) {
    for (const DataFlowEdge& edge : edges_of(OpView(module_, id))) {
      if (!edge.outside || edge.manual_axes.empty()) continue;
      TensorSharding sharding = module_.context().sharding(edge.outside);
      for (const AxisRef& axis : edge.manual_axes) {
        const AxisList used = sharding.axes_used();
        const bool is_used = std::ranges::any_of(used, [&](const AxisRef& ref) { return ref.axis == axis.axis; });
        if (!is_used) sharding.replicated.push_back(axis);
      }
      std::ranges::sort(sharding.replicated);
      module_.value(edge.owner).sharding = module_.context().intern(sharding);
    }
  }

  // Those of its arguments at its begin, and after each op those of its results.
  void add(RegionId region) {
    if (const OpId owner = module_.region(region).op) {
      add_edges(owner, [&](const Value& value) { return value.region == region; });
    }
    // A copy, because edges are appended to the region on the way.
    const std::vector<OpId> ops = module_.region(region).ops;
    for (const OpId id : ops) {
      for (size_t r = 0; r < module_.regions(id).size(); ++r) add(module_.regions(id)[r]);
      add_edges(id, [&](const Value& value) { return value.op == id; });
    }
  }

  template <class Belongs>
  void add_edges(OpId id, Belongs belongs) {
    std::optional<Cursor> at;  // after the first value: the others follow in order
    for (const DataFlowEdge& edge : edges_of(OpView(module_, id))) {
      // A token has no dims to shard.
      if (!belongs(module_.value(edge.owner)) || module_.type(edge.owner).dtype == DType::kToken) continue;
      if (!known_.insert(edge.owner).second) continue;
      if (!at) at = rewrite_.behind(edge.owner);
      add_edge(edge, *at, module_.op(id).loc);
    }
  }

  void add_edge(const DataFlowEdge& edge, Cursor at, LocId loc) {
    const ValueId result =
        rewrite_.insert(at, loc, [&](Builder& builder) { return create_data_flow_edge(builder, edge.owner); });
    Value& made = module_.value(result);
    made.sharding = module_.value(edge.owner).sharding;
    made.origin = module_.value(edge.owner).origin;
    if (edge.target_inside) made.sharding = inside(module_.context(), edge, made.sharding);
    rewrite_.replace(edge.owner, result, made.op);
  }

  Module& module_;
  Rewrite rewrite_;
  std::unordered_set<ValueId> known_;  // owners that have an edge
};

class EdgeSinker {
 public:
  EdgeSinker(Module& module, Provenance& provenance) : module_(module), provenance_(provenance), edges_(module) {}

  void run() {
    if (edges_.empty()) return;
    // Kept after the ops are gone, because recorded steps name them.
    provenance_.edges = edges_.all();
    provenance_.edges_are_sunk = true;
    for (const auto& [op, edge] : edges_.all()) sink(op, edge);
    Rewrite rewrite(module_);
    for (const auto& [op, edge] : edges_.all()) rewrite.replace(op, module_.operands(op).first(1));
    rewrite.commit();
    move_history_to_owners();
  }

 private:
  void sink(OpId op, const DataFlowEdge& edge) {
    const ValueId result = module_.result(op);
    edge_[result] = &edge;
    const ShardingId sharding = as_owner_has_it(edge, module_.value(result).sharding);
    // A while: the result, and the carry's argument in condition and body.
    for (const ValueId target : edge.targets) module_.value(target).sharding = sharding;
  }

  // An argument of a manual computation has the annotation of its operand; its edge has the sharding as seen from
  // inside.
  ShardingId as_owner_has_it(const DataFlowEdge& edge, ShardingId sharding) const {
    return edge.target_inside ? outside(module_.context(), edge, sharding) : sharding;
  }

  void move_history_to_owners() {
    for (auto& [op, edge] : provenance_.edges) {
      for (ValueId& source : edge.sources) {
        // In a loop within a loop, a source may be the result of another edge op, which is gone as well.
        if (const auto it = edge_.find(source); it != edge_.end()) source = it->second->owner;
      }
    }
    for (PropagationStep& step : provenance_.steps) {
      const auto it = edge_.find(step.value);
      if (it == edge_.end()) continue;
      step.after = as_owner_has_it(*it->second, step.after);
      step.value = it->second->owner;
    }
    if (provenance_.initial.empty()) return;  // annotations were not recorded
    for (const auto& [result, edge] : edge_) {
      ShardingId& initial = provenance_.initial[edge->owner.index];
      if (!initial) initial = as_owner_has_it(*edge, provenance_.initial[result.index]);
    }
  }

  Module& module_;
  Provenance& provenance_;
  DataFlowEdges edges_;
  std::unordered_map<ValueId, const DataFlowEdge*> edge_;  // by the result of its op
};

}  // namespace

DataFlowEdges::DataFlowEdges(const Module& module) {
  std::vector<DataFlowEdge> found;
  walk(module, [&](OpId id) {
    const OpView op(module, id);
    if (op.def().traits.data_flow_edge) {
      const ValueId owner = op.operand(0);
      edges_.emplace_back(id, DataFlowEdge{.owner = owner, .sources = {owner}, .targets = {}});
    }
    if (op.def().flow != nullptr) op.def().flow(op, found);
  });
  // find() searches in the order of ids, which is not that of the program.
  std::ranges::sort(edges_, {}, &std::pair<OpId, DataFlowEdge>::first);
  std::unordered_map<ValueId, DataFlowEdge*> by_owner;
  for (auto& [id, edge] : edges_) by_owner.emplace(edge.owner, &edge);
  for (DataFlowEdge& edge : found) {
    const auto it = by_owner.find(edge.owner);
    (it == by_owner.end() ? bare_.emplace_back() : *it->second) = std::move(edge);
  }
}

const DataFlowEdge* DataFlowEdges::find(const std::vector<std::pair<OpId, DataFlowEdge>>& edges, OpId edge_op) {
  const auto it = std::ranges::lower_bound(edges, edge_op, {}, &std::pair<OpId, DataFlowEdge>::first);
  return it == edges.end() || it->first != edge_op ? nullptr : &it->second;
}

void add_data_flow_edges(Module& module) { EdgeAdder(module).run(); }

void sink_data_flow_edges(Module& module, PassContext& context) { EdgeSinker(module, context.provenance).run(); }

ShardingId seen_from_sources(Context& context, const DataFlowEdge& edge, ShardingId kept) {
  return edge.target_inside ? outside(context, edge, kept) : inside(context, edge, kept);
}

ShardingId seen_from_target(Context& context, const DataFlowEdge& edge, ShardingId at_sources) {
  return edge.target_inside ? inside(context, edge, at_sources) : outside(context, edge, at_sources);
}

}  // namespace shardwise
