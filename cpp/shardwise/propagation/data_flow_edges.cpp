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

std::vector<DataFlowEdge> edges_of(const Module& module, OpId id) {
  std::vector<DataFlowEdge> edges;
  const OpView op(module, id);
  if (op.def().flow != nullptr) op.def().flow(op, edges);
  return edges;
}

bool is_edge(const Module& module, OpId id) { return module.op(id).def->traits.data_flow_edge; }

class EdgeAdder {
 public:
  explicit EdgeAdder(Module& module) : module_(module), rewrite_(module) {
    walk(module_, [&](OpId id) {
      if (is_edge(module_, id)) known_.insert(module_.operands(id)[0]);
      has_flow_ = has_flow_ || module_.op(id).def->flow != nullptr;
    });
  }

  void run() {
    if (!has_flow_) return;
    // Before edges are added: an edge starts with its owner's sharding.
    walk<Order::kRegionsFirst>(module_, [&](OpId id) { keep_manual_axes(id); });
    for (const Function& function : module_.functions) add(function.body);
  }

 private:
  // Operands and results of a manual computation are replicated along each manual axis that splits none of their dims,
  // and must stay replicated.
  void keep_manual_axes(OpId id) {
    for (const DataFlowEdge& edge : edges_of(module_, id)) {
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
    for (const DataFlowEdge& edge : edges_of(module_, id)) {
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
    if (made.sharding && edge.target_inside) {
      const TensorSharding inside = seen_from_inside(module_.context().sharding(made.sharding), edge.manual_axes);
      made.sharding = module_.context().intern(inside);
    }
    rewrite_.replace(edge.owner, result, made.op);
  }

  Module& module_;
  Rewrite rewrite_;
  bool has_flow_ = false;
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
    owner_[result] = edge.owner;
    if (edge.target_inside && edge.outside) inside_.emplace(result, &edge);
    const ShardingId sharding = as_owner_has_it(result, module_.value(result).sharding);
    // A while: the result, and the carry's argument in condition and body.
    for (const ValueId target : edge.targets) module_.value(target).sharding = sharding;
  }

  // An argument of a manual computation has the annotation of its operand; its edge has the sharding as seen from
  // inside.
  ShardingId as_owner_has_it(ValueId edge, ShardingId sharding) const {
    const auto it = inside_.find(edge);
    if (it == inside_.end() || !sharding) return sharding;
    Context& context = module_.context();
    return context.intern(
        seen_from_outside(context.sharding(sharding), context.sharding(it->second->outside), it->second->manual_axes));
  }

  void move_history_to_owners() {
    for (auto& [op, edge] : provenance_.edges) {
      for (ValueId& source : edge.sources) {
        // In a loop within a loop, a source may be the result of another edge op, which is gone as well.
        if (const auto it = owner_.find(source); it != owner_.end()) source = it->second;
      }
    }
    for (PropagationStep& step : provenance_.steps) {
      const auto it = owner_.find(step.value);
      if (it == owner_.end()) continue;
      step.before = as_owner_has_it(step.value, step.before);
      step.after = as_owner_has_it(step.value, step.after);
      step.value = it->second;
    }
    if (provenance_.initial.empty()) return;  // annotations were not recorded
    for (const auto& [edge, owner] : owner_) {
      ShardingId& initial = provenance_.initial[owner.index];
      if (!initial) initial = as_owner_has_it(edge, provenance_.initial[edge.index]);
    }
  }

  Module& module_;
  Provenance& provenance_;
  DataFlowEdges edges_;
  std::unordered_map<ValueId, ValueId> owner_;               // by edge
  std::unordered_map<ValueId, const DataFlowEdge*> inside_;  // edges of values inside a manual region
};

}  // namespace

DataFlowEdges::DataFlowEdges(const Module& module) {
  std::unordered_map<ValueId, DataFlowEdge> by_owner;
  std::vector<OpId> edge_ops;
  walk(module, [&](OpId id) {
    if (is_edge(module, id)) edge_ops.push_back(id);
  });
  // Most programs have no regions, and their ops need not be asked for edges.
  if (edge_ops.empty()) return;
  walk(module, [&](OpId id) {
    for (DataFlowEdge& edge : edges_of(module, id)) by_owner.emplace(edge.owner, std::move(edge));
  });
  // find() searches in the order of ids, which is not that of the program.
  std::ranges::sort(edge_ops);
  for (const OpId id : edge_ops) {
    const ValueId owner = module.operands(id)[0];
    const auto it = by_owner.find(owner);
    edges_.emplace_back(
        id, it != by_owner.end() ? it->second : DataFlowEdge{.owner = owner, .sources = {owner}, .targets = {}});
  }
}

const DataFlowEdge* DataFlowEdges::find(OpId edge_op) const {
  const auto it = std::ranges::lower_bound(edges_, edge_op, {}, [](const auto& entry) { return entry.first; });
  return it == edges_.end() || it->first != edge_op ? nullptr : &it->second;
}

std::vector<DataFlowEdge> bare_edges(const Module& module) {
  std::vector<DataFlowEdge> edges;
  std::unordered_set<ValueId> behind_edges;
  walk(module, [&](OpId id) {
    if (is_edge(module, id)) behind_edges.insert(module.operands(id)[0]);
    for (DataFlowEdge& edge : edges_of(module, id)) edges.push_back(std::move(edge));
  });
  std::erase_if(edges, [&](const DataFlowEdge& edge) { return behind_edges.contains(edge.owner); });
  return edges;
}

void add_data_flow_edges(Module& module) { EdgeAdder(module).run(); }

void sink_data_flow_edges(Module& module, Provenance& provenance) { EdgeSinker(module, provenance).run(); }

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

}  // namespace

ShardingId seen_from_sources(Context& context, const DataFlowEdge& edge, ShardingId kept) {
  return edge.target_inside ? outside(context, edge, kept) : inside(context, edge, kept);
}

ShardingId seen_from_target(Context& context, const DataFlowEdge& edge, ShardingId at_sources) {
  return edge.target_inside ? inside(context, edge, at_sources) : outside(context, edge, at_sources);
}

}  // namespace shardwise
