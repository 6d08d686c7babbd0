// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagation_graph.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {

PropagationGraph::PropagationGraph(const Module& module, VisitOrder visit_order)
    : module_(module),
      visit_order_(visit_order),
      operand_pool_(module.operand_pool()),
      roles_(module.op_count()),
      tensors_(std::make_unique_for_overwrite<Tensors[]>(module.op_count())),
      uses_(module.value_count(), 0) {
  order_.reserve(module.op_count());
  const ShardyOps& shardy = ShardyOps::table();
  std::vector<RegionId> regions;
  for (const Function& function : module.functions) {
    regions.push_back(function.body);
    walk(module, function.body, [&](OpId id) {
      add(id, shardy);
      for (RegionId inner : module.regions(id)) regions.push_back(inner);
    });
  }
  if (holds_.edges || holds_.flow) edges_ = DataFlowEdges(module);
  index_users();
  // After index_users, which uses `uses_` only for the uses as an operand.
  for (RegionId region : regions) {
    for (ValueId result : module.region(region).results) ++uses_[result.index];
  }
}

const DataFlowEdge* PropagationGraph::edge(OpId op) const {
  return holds_.edges && module_.op(op).def->traits.data_flow_edge ? edges_.find(op) : nullptr;
}

bool PropagationGraph::shares_operands(OpId op) const {
  return std::ranges::any_of(
      operands(op), [&](ValueId operand) { return uses(operand) > 1 && !module_.type(operand).shape.empty(); });
}

void PropagationGraph::add(OpId id, const ShardyOps& shardy) {
  order_.push_back(id);
  const Operation& op = module_.op(id);
  const Traits& traits = op.def->traits;
  holds_.edges = holds_.edges || traits.data_flow_edge;
  holds_.groups = holds_.groups || traits.sharding_group;
  holds_.flow = holds_.flow || op.def->flow != nullptr;
  roles_[id.index] = {.order = RoundOrder(OpView(module_, id), shardy), .is_edge = traits.data_flow_edge};
  tensors_[id.index] = {op.operand_begin, op.operand_count, op.first_result, op.result_count};
  for (ValueId operand : operands(id)) ++uses_[operand.index];
}

// A counting sort, filled from the back.
void PropagationGraph::index_users() {
  // If there are no edges, the users of a value are its uses as an operand, which have been counted.
  if (edges_.empty()) {
    use_begin_ = uses_;
  } else {
    use_begin_.resize(uses_.size());
    for_each_use([&](ValueId value, OpId) { ++use_begin_[value.index]; });
  }
  uint32_t total = 0;
  for (uint32_t& end : use_begin_) end = total += end;
  use_begin_.push_back(total);
  users_.resize(total);
  // The last user comes first, as in MLIR's use lists.
  for_each_use([&](ValueId value, OpId user) { users_[--use_begin_[value.index]] = user; });
}

template <class Visit>
void PropagationGraph::for_each_use(Visit visit) const {
  if (edges_.empty()) {
    for (OpId id : order_) {
      for (ValueId operand : operands(id)) visit(operand, id);
    }
    return;
  }
  std::unordered_map<OpId, std::vector<OpId>> edges_of_op;
  for (const auto& [id, known] : edges_.all()) {
    edges_of_op[module_.owner(module_.value(known.owner))].push_back(id);
  }
  for (auto& [op, edges] : edges_of_op) {
    std::ranges::stable_sort(edges, {}, [&](OpId id) { return place_of(*edge(id)); });
  }
  for (const Function& function : module_.functions) for_each_use(function.body, edges_of_op, visit);
}

// The operand of its op that an edge follows, or the returned value of a body.
uint32_t PropagationGraph::place_of(const DataFlowEdge& edge) const { return module_.value(edge.owner).index; }

// A source of an edge is used where the edge's op, or the end of a body of it, uses the value.
template <class Visit>
void PropagationGraph::for_each_use(RegionId region, const std::unordered_map<OpId, std::vector<OpId>>& edges_of_op,
                                    Visit& visit) const {
  for (OpId id : module_.region(region).ops) {
    const auto known = edges_of_op.find(id);
    const auto visit_edge_reads = [&](std::span<const ValueId> values) {
      if (known == edges_of_op.end()) return;
      for (OpId reader : known->second) {
        const DataFlowEdge& read_edge = *edge(reader);
        const uint32_t place = place_of(read_edge);
        if (place >= values.size() || values[place] == read_edge.owner) continue;
        const bool is_source = std::ranges::find(read_edge.sources, values[place]) != read_edge.sources.end();
        if (is_source) visit(values[place], reader);
      }
    };
    const auto by_op = [&] {
      const DataFlowEdge* own = edge(id);
      // An edge op reads the sources of its edge, and not its operand, except after a value that no edge owns.
      const bool is_identity = own != nullptr && own->sources.size() == 1 && own->sources[0] == own->owner;
      if (own == nullptr || is_identity) {
        for (ValueId operand : module_.operands(id)) visit(operand, id);
      }
      visit_edge_reads(module_.operands(id));
    };
    if (visit_order_ == VisitOrder::kPipeline) by_op();
    for (RegionId inner : module_.regions(id)) {
      for_each_use(inner, edges_of_op, visit);
      visit_edge_reads(module_.region(inner).results);
    }
    if (visit_order_ == VisitOrder::kModulePass) by_op();
  }
}

}  // namespace shardwise
