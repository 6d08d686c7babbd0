// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/data_flow_edges.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/ops/sharding/propagation_control.h"

namespace shardwise {
namespace {

void for_each_op(const Module& module, RegionId region, const std::function<void(OpId)>& visit) {
  for (const OpId id : module.region(region).ops) {
    visit(id);
    for (const RegionId inner : module.regions(id)) for_each_op(module, inner, visit);
  }
}

std::vector<DataFlowEdge> edges_of(const Module& module, OpId id) {
  std::vector<DataFlowEdge> edges;
  const OpView op(module, id);
  if (op.def().flow != nullptr) op.def().flow(op, edges);
  return edges;
}

bool is_edge(const Module& module, OpId id) { return module.op(id).def->traits.data_flow_edge; }

class EdgeAdder {
 public:
  explicit EdgeAdder(Module& module) : module_(module) {
    for (const Function& function : module_.functions) {
      for_each_op(module_, function.body, [&](OpId id) {
        if (is_edge(module_, id)) known_.insert(module_.operands(id)[0]);
        has_flow_ = has_flow_ || module_.op(id).def->flow != nullptr;
      });
    }
  }

  void run() {
    if (!has_flow_) return;
    for (const Function& function : module_.functions) keep_manual_axes(function.body);
    for (const Function& function : module_.functions) add(function.body);
    for (const Function& function : module_.functions) replace(function.body);
  }

 private:
  // What a manual computation takes and gives is the same on all devices of a manual axis that splits none of its dims,
  // and must stay so.
  void keep_manual_axes(RegionId region) {
    for (const OpId id : module_.region(region).ops) {
      for (const RegionId inner : module_.regions(id)) keep_manual_axes(inner);
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
  }

  void add_edge(RegionId region, const DataFlowEdge& edge, LocId loc) {
    if (module_.type(edge.owner).dtype == DType::kToken || !known_.insert(edge.owner).second) return;
    Builder builder(module_, region, loc);
    const ValueId result = create_data_flow_edge(builder, edge.owner);
    replacement_[edge.owner] = result;
    const ShardingId declared = module_.value(edge.owner).sharding;
    module_.value(result).sharding = declared;
    if (!declared || !edge.target_inside) return;
    const TensorSharding inside = seen_from_inside(module_.context().sharding(declared), edge.manual_axes);
    module_.value(result).sharding = module_.context().intern(inside);
  }

  // The ops of a region are appended again in order, each with the edges of its results behind it.
  void add(RegionId region) {
    std::vector<OpId> ops;
    ops.swap(module_.region(region).ops);
    if (const OpId owner = module_.region(region).op) {
      for (const DataFlowEdge& edge : edges_of(module_, owner)) {
        const Value& value = module_.value(edge.owner);
        if (!value.op && value.region == region) add_edge(region, edge, module_.op(owner).loc);
      }
    }
    for (const OpId id : ops) {
      module_.region(region).ops.push_back(id);
      const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
      for (const RegionId body : inner) add(body);
      for (const DataFlowEdge& edge : edges_of(module_, id)) {
        if (module_.value(edge.owner).op == id) add_edge(region, edge, module_.op(id).loc);
      }
    }
  }

  void replace(RegionId region) {
    const auto replaced = [&](ValueId& value) {
      if (const auto it = replacement_.find(value); it != replacement_.end()) value = it->second;
    };
    for (const OpId id : module_.region(region).ops) {
      if (!is_edge(module_, id) || !replacement_.contains(module_.operands(id)[0])) {
        for (ValueId& operand : module_.operands(id)) replaced(operand);
      }
      for (const RegionId inner : module_.regions(id)) replace(inner);
    }
    for (ValueId& result : module_.region(region).results) replaced(result);
  }

  Module& module_;
  bool has_flow_ = false;
  std::unordered_set<ValueId> known_;                 // owners that have an edge
  std::unordered_map<ValueId, ValueId> replacement_;  // owner to edge
};

class EdgeSinker {
 public:
  EdgeSinker(Module& module, Provenance& provenance) : module_(module), provenance_(provenance), edges_(module) {}

  void run() {
    if (edges_.empty()) return;
    provenance_.edges = edges_.all();
    provenance_.edges_are_sunk = true;
    for (const auto& [op, edge] : edges_.all()) sink(op, edge);
    for (const Function& function : module_.functions) remove(function.body);
    hand_on_history();
  }

 private:
  void sink(OpId op, const DataFlowEdge& edge) {
    const ValueId result = module_.result(op);
    owner_[result] = edge.owner;
    if (edge.target_inside && edge.outside) inside_.emplace(result, &edge);
    const ShardingId sharding = said_of_owner(result, module_.value(result).sharding);
    for (const ValueId target : edge.targets) module_.value(target).sharding = sharding;
  }

  // A manual computation's argument is said to be sharded as its operand, the edge as the inside sees it.
  ShardingId said_of_owner(ValueId edge, ShardingId sharding) const {
    const auto it = inside_.find(edge);
    if (it == inside_.end() || !sharding) return sharding;
    Context& context = module_.context();
    return context.intern(
        seen_from_outside(context.sharding(sharding), context.sharding(it->second->outside), it->second->manual_axes));
  }

  void hand_on_history() {
    for (auto& [op, edge] : provenance_.edges) {
      for (ValueId& source : edge.sources) {
        if (const auto it = owner_.find(source); it != owner_.end()) source = it->second;
      }
    }
    for (PropagationStep& step : provenance_.steps) {
      const auto it = owner_.find(step.value);
      if (it == owner_.end()) continue;
      step.before = said_of_owner(step.value, step.before);
      step.after = said_of_owner(step.value, step.after);
      step.value = it->second;
    }
    provenance_.initial.resize(module_.value_count());
    for (const auto& [edge, owner] : owner_) {
      ShardingId& initial = provenance_.initial[owner.index];
      if (!initial) initial = said_of_owner(edge, provenance_.initial[edge.index]);
    }
  }

  void remove(RegionId region) {
    const auto replaced = [&](ValueId& value) {
      if (const auto it = owner_.find(value); it != owner_.end()) value = it->second;
    };
    std::vector<OpId>& ops = module_.region(region).ops;
    std::erase_if(ops, [&](OpId id) { return edges_.find(id) != nullptr; });
    for (const OpId id : ops) {
      for (ValueId& operand : module_.operands(id)) replaced(operand);
      for (const RegionId inner : module_.regions(id)) remove(inner);
    }
    for (ValueId& result : module_.region(region).results) replaced(result);
  }

  Module& module_;
  Provenance& provenance_;
  DataFlowEdges edges_;
  std::unordered_map<ValueId, ValueId> owner_;               // by edge
  std::unordered_map<ValueId, const DataFlowEdge*> inside_;  // edges of what is inside a manual region
};

}  // namespace

DataFlowEdges::DataFlowEdges(const Module& module) {
  std::unordered_map<ValueId, DataFlowEdge> by_owner;
  std::vector<OpId> edge_ops;
  for (const Function& function : module.functions) {
    for_each_op(module, function.body, [&](OpId id) {
      if (is_edge(module, id)) edge_ops.push_back(id);
    });
  }
  if (edge_ops.empty()) return;
  for (const Function& function : module.functions) {
    for_each_op(module, function.body, [&](OpId id) {
      for (DataFlowEdge& edge : edges_of(module, id)) by_owner.emplace(edge.owner, std::move(edge));
    });
  }
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
  for (const Function& function : module.functions) {
    for_each_op(module, function.body, [&](OpId id) {
      if (is_edge(module, id)) behind_edges.insert(module.operands(id)[0]);
      for (DataFlowEdge& edge : edges_of(module, id)) edges.push_back(std::move(edge));
    });
  }
  std::erase_if(edges, [&](const DataFlowEdge& edge) { return behind_edges.contains(edge.owner); });
  return edges;
}

void add_data_flow_edges(Module& module) { EdgeAdder(module).run(); }

void sink_data_flow_edges(Module& module, Provenance& provenance) { EdgeSinker(module, provenance).run(); }

}  // namespace shardwise
