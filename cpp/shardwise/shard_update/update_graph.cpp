// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/update_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

// A value that is repeated along dims: a norm that scales a gradient.
bool is_broadcast(const OpView& op) {
  return op.def().traits.movement && op.operand_count() == 1 && op.operand_type(0).size() < op.result_type().size();
}

bool keeps_elements(const OpView& op) {
  return op.def().traits.movement && op.operand_count() == 1 && op.operand_type(0).size() == op.result_type().size();
}

// Whether the op adds up gradients: of two uses of a tied weight, or a user's annotation of one. A factor stays behind
// the sum over devices, where the update without the switch has it: the numbers are the same to the bit.
bool adds_up(const OpView& op) {
  const Linearity& linear = op.def().linear;
  const bool is_joint = linear.kind == Linear::kJoint && (linear.reducers & reducer_bit(Reducer::kSum)) != 0;
  return is_joint || op.def().traits.constraint;
}

void add_once(std::vector<ValueId>& values, ValueId value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

// Disjoint sets of the places of arguments.
class Sets {
 public:
  explicit Sets(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }
  size_t find(size_t i) const {
    while (parents_[i] != i) i = parents_[i];
    return i;
  }
  // The first one stands for the set.
  void unite(size_t a, size_t b) {
    const auto [first, second] = std::minmax({find(a), find(b)});
    parents_[second] = first;
  }

 private:
  std::vector<size_t> parents_;
};

}  // namespace

bool is_elementwise(const OpView& op) {
  return op.result_count() == 1 && (op.def().traits.elementwise || op.def().traits.constraint);
}

bool is_plain_reduction(const OpView& op) {
  if (op.def().regions != Regions::kCombiner) return false;
  const ShardingRule& rule = sharding_rule(op);
  if (rule.has_ranges()) return false;
  bool reduces = false;
  for (const Factor& factor : rule.factors()) {
    if (factor.kind != FactorKind::kPassThrough && factor.kind != FactorKind::kReduction) return false;
    reduces = reduces || (factor.kind == FactorKind::kReduction && factor.reducer != Reducer::kNone);
  }
  return reduces;
}

bool is_product(const OpView& op) { return is_contraction(op.def(), sharding_rule(op)); }

// What is behind one result by elementwise ops of its shape.
struct UpdateGraph::Walk {
  Dims shape;
  std::vector<ValueId> states, sources, broadcasts;
  std::unordered_set<ValueId> seen;
};

UpdateGraph::UpdateGraph(Module& module, RegionId region, std::vector<ValueId> arguments, std::vector<ValueId> results)
    : module_(module),
      region_(region),
      arguments_(std::move(arguments)),
      results_(std::move(results)),
      is_member_(module.value_count()),
      depends_(module.value_count()) {
  std::vector<Walk> walks(results_.size());
  for (uint32_t place = 0; place < results_.size(); ++place) walk_result(place, walks[place]);
  form_groups(walks);
  pair_narrow_states(walks);
  find_dependence();
  for (UpdateGroup& group : groups_) find_gradients(group);
  find_weights();
}

void UpdateGraph::walk_result(uint32_t place, Walk& walk) {
  walk.shape = module_.type(results_[place]).shape;
  if (walk.shape.empty()) return;
  std::vector<ValueId> open{results_[place]};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    // Scalars and predicates of all elements are no part of the update.
    if (module_.type(value).shape != walk.shape || !walk.seen.insert(value).second) continue;
    const Value& known = module_.value(value);
    if (!known.op) {
      const bool is_argument = std::ranges::find(arguments_, value) != arguments_.end();
      (is_argument ? walk.states : walk.sources).push_back(value);
      continue;
    }
    const OpView op(module_, known.op);
    if (is_elementwise(op)) {
      is_member_[value.index] = true;
      open.insert(open.end(), op.operands().rbegin(), op.operands().rend());
    } else if (op.def().regions == Regions::kBranches) {
      is_member_[value.index] = true;
      for (const RegionId branch : op.regions()) open.push_back(module_.region(branch).results[known.index]);
    } else if (is_broadcast(op)) {
      walk.broadcasts.push_back(value);
    } else if (!op.def().traits.constant_like) {
      walk.sources.push_back(value);
    }
  }
}

void UpdateGraph::form_groups(const std::vector<Walk>& walks) {
  std::unordered_map<ValueId, size_t> place_of;
  for (size_t i = 0; i < arguments_.size(); ++i) place_of.emplace(arguments_[i], i);
  Sets sets(arguments_.size());
  std::vector<bool> is_state(arguments_.size());
  for (const Walk& walk : walks) {
    for (const ValueId state : walk.states) {
      is_state[place_of.at(state)] = true;
      sets.unite(place_of.at(walk.states.front()), place_of.at(state));
    }
  }
  std::unordered_map<size_t, size_t> group_at;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!is_state[i]) continue;
    const auto [at, is_new] = group_at.try_emplace(sets.find(i), groups_.size());
    if (is_new) groups_.push_back({.shape = module_.type(arguments_[i]).shape});
    groups_[at->second].states.push_back(arguments_[i]);
    group_of_.emplace(arguments_[i], at->second);
  }
  for (uint32_t place = 0; place < walks.size(); ++place) {
    const Walk& walk = walks[place];
    if (walk.states.empty()) continue;
    UpdateGroup& group = groups_[group_of_.at(walk.states.front())];
    group.results.push_back(place);
    for (const ValueId source : walk.sources) add_once(group.sources, source);
    group.scales.insert(group.scales.end(), walk.broadcasts.begin(), walk.broadcasts.end());
    for (const ValueId value : walk.broadcasts) append_broadcast_states(module_, value, arguments_, group.broadcasts);
  }
}

// The weights that a model uses in bfloat16 are roundings of float32 masters: the new ones are members, but the old
// ones are behind no result. They are paired by type where that leaves no doubt.
void UpdateGraph::pair_narrow_states(const std::vector<Walk>& walks) {
  std::unordered_map<TypeId, std::pair<std::vector<ValueId>, std::vector<size_t>>> by_type;
  for (const ValueId argument : arguments_) {
    if (!group_of_.contains(argument)) by_type[module_.value(argument).type].first.push_back(argument);
  }
  for (uint32_t place = 0; place < walks.size(); ++place) {
    if (walks[place].states.empty()) continue;
    const TypeId type = module_.value(results_[place]).type;
    const size_t group = group_of_.at(walks[place].states.front());
    const bool is_paired =
        std::ranges::any_of(groups_[group].states, [&](ValueId state) { return module_.value(state).type == type; });
    if (!is_paired) by_type[type].second.push_back(group);
  }
  for (const auto& [type, found] : by_type) {
    const auto& [arguments, groups] = found;
    if (arguments.size() != groups.size()) continue;
    for (size_t i = 0; i < groups.size(); ++i) {
      groups_[groups[i]].states.push_back(arguments[i]);
      group_of_.emplace(arguments[i], groups[i]);
    }
  }
}

void UpdateGraph::find_dependence() {
  walk<Order::kRegionsFirst>(module_, region_, [&](OpId id) {
    const OpView op(module_, id);
    for (const ValueId result : results_of(module_, id)) {
      if (!is_member(result)) continue;
      const Dims& shape = module_.type(result).shape;
      std::vector<ValueId> read(op.operands().begin(), op.operands().end());
      if (op.def().regions == Regions::kBranches) {
        for (const RegionId branch : op.regions()) {
          read.push_back(module_.region(branch).results[module_.value(result).index]);
        }
      }
      for (const ValueId value : read) {
        const auto group = module_.type(value).shape == shape ? group_of(value) : std::nullopt;
        if (!group) continue;
        depends_[result.index] = true;
        group_of_.emplace(result, *group);
      }
    }
  });
}

void UpdateGraph::find_gradients(UpdateGroup& group) {
  for (ValueId value : group.sources) {
    while (const auto use = only_use(module_, value)) {
      if (!use->op || module_.op(use->op).result_count != 1) break;
      const ValueId result = module_.result(use->op);
      const bool is_same = module_.value(result).type == module_.value(value).type;
      if (!is_same || !is_member(result) || depends(result) || !adds_up(OpView(module_, use->op))) break;
      value = result;
    }
    add_once(group.gradients, value);
  }
}

bool UpdateGraph::is_in_update(const Use& use) {
  if (!use.op) return false;
  if (module_.op(use.op).result_count == 1 && is_member(module_.result(use.op))) return true;
  const OpView op(module_, use.op);
  if (is_plain_reduction(op)) return true;
  return (is_elementwise(op) || keeps_elements(op) || is_broadcast(op)) && is_served(op.result());
}

bool UpdateGraph::is_served(ValueId value) {
  const auto [known, is_new] = served_.try_emplace(value, false);
  if (!is_new) return known->second;
  const UseRange uses = module_.uses(value);
  const bool served = std::ranges::all_of(uses.begin(), uses.end(), [&](const Use& use) { return is_in_update(use); });
  return served_[value] = served;
}

void UpdateGraph::find_weights() {
  const auto is_read_elsewhere = [&](ValueId value) {
    for (const Use use : module_.uses(value)) {
      if (use.op && !is_in_update(use)) return true;
    }
    return false;
  };
  const auto visit = [&](ValueId value) {
    const auto group = group_of_.find(value);
    if (group != group_of_.end() && is_read_elsewhere(value)) groups_[group->second].weights.push_back(value);
  };
  for (const ValueId argument : arguments_) visit(argument);
  for (const OpId op : module_.region(region_).ops) {
    for (const ValueId result : results_of(module_, op)) visit(result);
  }
}

bool feeds_products_only(UpdateGraph& graph, ValueId value) {
  for (const Use use : graph.module().uses(value)) {
    if (!use.op) return false;
    if (graph.is_in_update(use)) continue;
    const OpView op(graph.module(), use.op);
    if (is_product(op)) continue;
    const bool passes = keeps_elements(op) || op.def().traits.constraint;
    if (!passes || !feeds_products_only(graph, op.result())) return false;
  }
  return true;
}

}  // namespace shardwise
