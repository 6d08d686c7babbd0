// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/graph/program_graph.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "shardwise/choice/versions.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// Costs are integers: bytes in 64ths, and picoseconds. One more is paid for what is not as in the known choice, so that
// nothing changes without a gain.
constexpr double kPartsOfByte = 64;
constexpr GraphCost kChange = 1;

}  // namespace

ProgramGraph::ProgramGraph(const WalkedProgram& program, const Choice& known)
    : program_(program),
      known_(known),
      executions_(program.module),
      options_(program),
      named_(program.module.op_count(), 0),
      homes_(program.module.value_count()),
      needs_(program.module.value_count()) {
  for (const Choice::NamedOp& named : known.named_ops) {
    if (!known.pinned.contains(named.op)) named_[named.op.index] = 1;
  }
  for (const size_t f : program.calls.reached()) add_function(program.module.functions[f]);
  make_graph();
}

void ProgramGraph::add_function(const Function& function) {
  const Module& module = program_.module;
  for (const ValueId argument : module.region(function.body).arguments) {
    const Value& value = module.value(argument);
    const bool is_of_main = &function == &module.main();
    set_home(argument,
             is_of_main ? program_.placements.of(value.sharding, value.type) : program_.placements.declared(argument),
             function.body);
  }
  add_ops(function.body, function);
  const std::vector<ValueId>& results = module.region(function.body).results;
  for (size_t i = 0; i < results.size(); ++i) {
    add_need(results[i], program_.placements.result(function, i), function.body);
  }
}

void ProgramGraph::add_ops(RegionId region, const Function& function) {
  for (const OpId id : program_.module.region(region).ops) add_op(OpView(program_.module, id), function);
}

void ProgramGraph::add_op(const OpView& op, const Function& function) {
  const Traits& traits = op.def().traits;
  if (op.def().regions == Regions::kLoop) return add_loop(op, function);
  if (op.def().regions == Regions::kBranches) return add_branches(op, function);
  const OpChoice& known = known_.ops[op.id().index];
  if (traits.constant_like && known.operands.empty() && known.results.empty()) {
    homes_[op.result().index].is_constant = true;
    return;
  }
  named_[op.id().index] != 0 ? add_node(op, function) : add_fixed(op);
}

void ProgramGraph::add_fixed(const OpView& op) {
  const OpChoice& known = known_.ops[op.id().index];
  const RegionId region = program_.module.op(op.id()).parent;
  for (size_t i = 0; i < op.operand_count(); ++i) add_need(op.operand(i), known.operands[i], region);
  for (size_t i = 0; i < op.result_count(); ++i) set_home(op.result(i), made(op, known, i), region);
}

void ProgramGraph::add_branches(const OpView& op, const Function& function) {
  const OpChoice& known = known_.ops[op.id().index];
  for (const RegionId branch : op.regions()) {
    add_ops(branch, function);
    const std::vector<ValueId>& results = program_.module.region(branch).results;
    for (size_t i = 0; i < results.size(); ++i) add_need(results[i], known.results[i], branch);
  }
  const RegionId region = program_.module.op(op.id()).parent;
  add_need(op.operand(0), known.operands[0], region);
  for (size_t i = 0; i < op.result_count(); ++i) set_home(op.result(i), known.results[i], region);
}

void ProgramGraph::add_loop(const OpView& op, const Function& function) {
  const Module& module = program_.module;
  const OpChoice& known = known_.ops[op.id().index];
  const LoopParts parts = loop_parts(op);
  for (const RegionId region : op.regions()) {
    const std::vector<ValueId>& arguments = module.region(region).arguments;
    for (size_t i = 0; i < arguments.size(); ++i) set_home(arguments[i], known.results[i], region);
    add_ops(region, function);
    const std::vector<ValueId>& results = module.region(region).results;
    for (size_t i = 0; i < results.size(); ++i) {
      const bool is_carry = region == parts.body;
      add_need(results[i], is_carry ? known.results[i] : program_.placements.replicated(module.value(results[i]).type),
               region);
    }
  }
  add_fixed(op);
}

PlacementId ProgramGraph::made(const OpView& op, const OpChoice& choice, size_t result) const {
  return has_wide_addends(program_.placements, op, choice) ? program_.placements.declared(op.result(result))
                                                           : choice.results[result];
}

void ProgramGraph::set_home(ValueId value, PlacementId placement, RegionId region) {
  Home& home = homes_[value.index];
  home.placements = {placement};
  home.region = region;
}

void ProgramGraph::add_need(ValueId value, PlacementId placement, RegionId region) {
  Need need;
  need.placements = {{placement}};
  need.region = region;
  needs_[value.index].push_back(std::move(need));
}

// Where the first user has it in the known choice.
PlacementId ProgramGraph::known_need(ValueId value) const {
  for (const Use use : program_.module.uses(value)) {
    if (!use.op) continue;
    const std::vector<PlacementId>& operands = known_.ops[use.op.index].operands;
    if (use.index < operands.size()) return operands[use.index];
  }
  return {};
}

OpOptions::Places ProgramGraph::places(const OpView& op) const {
  OpOptions::Places places;
  const RegionId region = program_.module.op(op.id()).parent;
  for (const ValueId operand : op.operands()) {
    const Home& home = homes_[operand.index];
    const PlacementId declared = program_.placements.declared(operand);
    std::vector<PlacementId> possible;
    for (PlacementId placement : home.placements) {
      const Placement* found = program_.placements.find(placement);
      // A region takes no pending reduction from around it.
      if (home.region != region && found != nullptr && !found->unreduced.empty()) placement = declared;
      if (std::ranges::find(possible, placement) == possible.end()) possible.push_back(placement);
      if (possible.size() == OpOptions::kMostPlaces) break;
    }
    places.is_constant.push_back(home.is_constant);
    places.operands.push_back(home.is_constant ? std::vector<PlacementId>{declared} : std::move(possible));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    places.results.push_back(known_need(op.result(i)));
    places.is_used.push_back(!program_.module.uses(op.result(i)).empty());
  }
  return places;
}

void ProgramGraph::add_node(const OpView& op, const Function& function) {
  const OpChoice& known = known_.ops[op.id().index];
  const bool is_requested = std::ranges::any_of(std::views::iota(size_t{0}, op.result_count()), [&](size_t i) {
    return static_cast<bool>(program_.requested.of(op.result(i)));
  });
  if (is_requested) return add_fixed(op);
  const OpOptions::Places where = places(op);
  Node node;
  node.op = op.id();
  node.options = options_.of(op, known, function, where);
  const RegionId region = program_.module.op(op.id()).parent;
  const std::vector<bool> is_moved(op.operand_count(), false);
  for (const OpChoice& option : node.options) {
    const Cost cost = program_.costs.compute({op, sharding_rule(op), option, is_moved, where.is_used});
    GraphCost sum = cost_of_runs(region, cost);
    for (size_t i = 0; i < op.result_count() && has_wide_addends(program_.placements, op, option); ++i) {
      const TypeId type = type_made(program_.placements, op, i, option.results[i]);
      sum = add_costs(sum, cost_of_runs(region, program_.costs.reshard(type, option.results[i], made(op, option, i))));
    }
    node.costs.push_back(node.costs.empty() ? sum : add_costs(sum, kChange));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    Home& home = homes_[op.result(i).index];
    home.node = nodes_.size();
    home.region = region;
    for (const OpChoice& option : node.options) home.placements.push_back(made(op, option, i));
  }
  nodes_.push_back(std::move(node));
  add_needs(op, nodes_.size() - 1);
}

void ProgramGraph::add_needs(const OpView& op, size_t node) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    std::vector<Need>& needs = needs_[op.operand(i).index];
    if (needs.empty() || needs.back().node != node) {
      needs.emplace_back();
      needs.back().node = node;
      needs.back().placements.resize(nodes_[node].options.size());
      needs.back().region = program_.module.op(op.id()).parent;
    }
    for (size_t k = 0; k < nodes_[node].options.size(); ++k) {
      std::vector<PlacementId>& of_option = needs.back().placements[k];
      const PlacementId need = nodes_[node].options[k].operands[i];
      if (std::ranges::find(of_option, need) == of_option.end()) of_option.push_back(need);
    }
  }
}

// As versions are made (versions.h): before the outermost loop between the value and the user, or at the user.
RegionId ProgramGraph::region_of_version(const Home& home, RegionId user) const {
  RegionId made = user;
  for (RegionId region = user; region != home.region;) {
    const OpId owner = program_.module.region(region).op;
    if (!owner) break;
    region = program_.module.op(owner).parent;
    if (OpView(program_.module, owner).def().regions == Regions::kLoop) made = region;
  }
  return made;
}

GraphCost ProgramGraph::cost_of_runs(RegionId region, const Cost& cost) const {
  const double one = program_.costs.are_times() ? cost.ps : kPartsOfByte * cost.bytes;
  if (!(one < static_cast<double>(kForbidden))) return kForbidden;
  return std::min(kForbidden, executions_.of_region(region).times(std::llround(one)));
}

GraphCost ProgramGraph::move(ValueId value, PlacementId from, PlacementId to, RegionId user) {
  if (from == to) return 0;
  const Home& home = homes_[value.index];
  const Placement *before = program_.placements.find(from), *after = program_.placements.find(to);
  const size_t left = after == nullptr ? 0 : after->unreduced.size();
  const bool comes_from_around = home.region != user;
  if (!can_bring(program_.placements, from, to) || (comes_from_around && left > 0)) return kForbidden;
  const bool reduces = before != nullptr && before->unreduced.size() > left;
  const RegionId region = reduces ? home.region : region_of_version(home, user);
  return cost_of_runs(region, program_.costs.reshard(program_.module.value(value).type, from, to));
}

// The moves of one value.
class ProgramGraph::ValueEdges {
 public:
  ValueEdges(ProgramGraph& graph, ValueId value)
      : graph_(graph), value_(value), home_(graph.homes_[value.index]), needs_(graph.needs_[value.index]) {}

  void add() {
    find_users();
    for (const auto& [version, users] : users_) {
      if (is_free(version)) continue;
      if (users.is_always) {
        add_to_home(version);
      } else if (users.count > 1) {
        add_version(version);
      }
    }
    for (const Need& need : needs_) {
      if (need.node != kNone) add_edge(need);
    }
  }

 private:
  struct Users {
    size_t count = 0;
    bool is_always = false;  // a user that is no node needs it
  };

  void find_users() {
    for (const Need& need : needs_) {
      std::vector<PlacementId> seen;
      for (const std::vector<PlacementId>& of_option : need.placements) {
        for (const PlacementId placement : of_option) {
          if (std::ranges::find(seen, placement) != seen.end()) continue;
          seen.push_back(placement);
          Users& users = users_[{placement.index, need.region.index}];
          ++users.count;
          users.is_always |= need.node == kNone;
        }
      }
    }
  }

  using Key = std::pair<uint32_t, uint32_t>;  // placement, region of the user
  static PlacementId placement(const Key& key) { return PlacementId{key.first}; }
  static RegionId region(const Key& key) { return RegionId{key.second}; }

  GraphCost move(size_t option, const Key& key) {
    return graph_.move(value_, home_.placements[option], placement(key), region(key));
  }
  bool is_free(const Key& key) {
    for (size_t h = 0; h < home_.placements.size(); ++h) {
      if (move(h, key) != 0) return false;
    }
    return true;
  }

  void add_to_home(const Key& key) {
    if (home_.node == kNone) return;  // it is paid in any case
    for (size_t h = 0; h < home_.placements.size(); ++h) {
      GraphCost& cost = graph_.nodes_[home_.node].costs[h];
      cost = add_costs(cost, move(h, key));
    }
  }

  void add_version(const Key& key) {
    versions_[key] = graph_.nodes_.size();
    Node version;
    version.costs = {0, home_.node == kNone ? move(0, key) : 0};
    graph_.nodes_.push_back(std::move(version));
    graph_.known_picks_.resize(graph_.nodes_.size(), 0);
    if (home_.node == kNone) return;
    std::vector<GraphCost> costs;
    for (size_t h = 0; h < home_.placements.size(); ++h) {
      costs.push_back(0);
      costs.push_back(move(h, key));
    }
    graph_.edges_.push_back({home_.node, versions_[key], std::move(costs)});
  }

  void add_edge(const Need& need) {
    const size_t homes = home_.placements.size(), options = need.placements.size();
    std::vector<GraphCost> costs(homes * options, 0);
    std::map<size_t, std::vector<bool>> needed;  // by version, by option
    for (size_t k = 0; k < options; ++k) {
      for (const PlacementId placement : need.placements[k]) {
        const Key key{placement.index, need.region.index};
        if (const auto version = versions_.find(key); version != versions_.end()) {
          std::vector<bool>& by_option = needed[version->second];
          by_option.resize(options, false);
          by_option[k] = true;
        } else if (!users_.at(key).is_always) {
          for (size_t h = 0; h < homes; ++h) costs[h * options + k] = add_costs(costs[h * options + k], move(h, key));
        }
      }
    }
    for (const auto& [version, by_option] : needed) {
      std::vector<GraphCost> allowed;
      for (const bool is_needed : by_option) {
        allowed.push_back(is_needed ? kForbidden : 0);
        allowed.push_back(0);
      }
      if (by_option[0]) graph_.known_picks_[version] = 1;
      graph_.edges_.push_back({need.node, version, std::move(allowed)});
    }
    if (std::ranges::all_of(costs, [](GraphCost cost) { return cost == 0; })) return;
    if (home_.node == kNone) {
      std::vector<GraphCost>& own = graph_.nodes_[need.node].costs;
      for (size_t k = 0; k < options; ++k) own[k] = add_costs(own[k], costs[k]);
    } else {
      graph_.edges_.push_back({home_.node, need.node, std::move(costs)});
    }
  }

  ProgramGraph& graph_;
  const ValueId value_;
  const Home& home_;
  const std::vector<Need>& needs_;
  std::map<Key, Users> users_;
  std::map<Key, size_t> versions_;  // nodes
};

void ProgramGraph::add_value(ValueId value) {
  const Home& home = homes_[value.index];
  if (home.is_constant || home.placements.empty() || needs_[value.index].empty()) return;
  ValueEdges(*this, value).add();
}

void ProgramGraph::make_graph() {
  known_picks_.assign(nodes_.size(), 0);
  for (uint32_t i = 0; i < homes_.size(); ++i) add_value(ValueId{i});
  for (Node& node : nodes_) graph_.add_node(node.costs);
  for (CostGraph::Edge& edge : edges_) graph_.add_edge(edge.a, edge.b, std::move(edge.costs));
  edges_.clear();
}

GivenChoices ProgramGraph::chosen(const std::vector<uint32_t>& picks) const {
  GivenChoices given;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op) given.emplace(nodes_[i].op, nodes_[i].options[picks[i]]);
  }
  return given;
}

bool ProgramGraph::has_other_ops(const std::vector<uint32_t>& picks) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op && picks[i] != 0) return true;
  }
  return false;
}

}  // namespace shardwise
