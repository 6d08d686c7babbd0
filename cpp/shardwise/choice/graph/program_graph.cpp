// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/graph/program_graph.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "shardwise/choice/merged_exchanges.h"
#include "shardwise/choice/versions.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// Costs are integers: bytes in 64ths, and picoseconds. One more is paid for what is not as in the known choice, so that
// nothing changes without a gain, and another one for more work.
constexpr double kPartsOfByte = 64;
constexpr GraphCost kChange = 1;
// By time, elementwise ops cost nothing here. More options of them gave plans of equal cost whose schedules were 3 % longer, in
// steps of GPT and of a decoder that are 4,096 wide.
constexpr size_t kMostWantedByTime = 1, kMostWantedByBytes = 3;

}  // namespace

ProgramGraph::ProgramGraph(const WalkedProgram& program, OpOptions& options, const Choice& known)
    : program_(program),
      known_(known),
      executions_(program.module),
      wanted_(program, known, program.costs.are_times() ? kMostWantedByTime : kMostWantedByBytes),
      options_(options),
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
    if (program_.placements.is_open(results[i])) continue;
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
  for (size_t i = 0; i < op.result_count(); ++i)
    set_home(op.result(i), OpOptions::home(program_.placements, op, known, i), region);
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

std::span<const PlacementId> ProgramGraph::placements(const Home& home) const {
  if (home.node == kNone) return {&home.fixed, 1};
  return nodes_[home.node].list->homes[home.result];
}

void ProgramGraph::set_home(ValueId value, PlacementId placement, RegionId region) {
  Home& home = homes_[value.index];
  home.fixed = placement;
  home.is_known = true;
  home.region = region;
}

void ProgramGraph::add_need(ValueId value, PlacementId placement, RegionId region) {
  Need need;
  need.fixed = placement;
  need.region = region;
  needs_[value.index].push_back(std::move(need));
}

OpOptions::Places ProgramGraph::places(const OpView& op) const {
  OpOptions::Places places;
  const RegionId region = program_.module.op(op.id()).parent;
  for (const ValueId operand : op.operands()) {
    const Home& home = homes_[operand.index];
    const PlacementId declared = program_.placements.declared(operand);
    std::vector<PlacementId> possible;
    for (PlacementId placement : placements(home)) {
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
    places.results.push_back(wanted_.of(op.result(i)));
    places.is_used.push_back(!program_.module.uses(op.result(i)).empty());
  }
  return places;
}

// A sum of parts that the program widens before it is complete stays as wide: it would be rounded otherwise.
bool ProgramGraph::is_of_wide_sum(const OpView& op) const {
  if (op.operand_count() != 1 || !op.def().traits.elementwise) return false;
  const Placement* taken = program_.placements.find(known_.ops[op.id().index].operands[0]);
  return taken != nullptr && !taken->unreduced.empty() &&
         item_size(op.operand_type(0).dtype) < item_size(op.result_type().dtype);
}

void ProgramGraph::add_node(const OpView& op, const Function& function) {
  const OpChoice& known = known_.ops[op.id().index];
  const bool is_requested = std::ranges::any_of(std::views::iota(size_t{0}, op.result_count()), [&](size_t i) {
    return static_cast<bool>(program_.requested.of(op.result(i)));
  });
  // A barrier keeps what it hides as it is: a checkpoint gathers again behind it.
  if (is_requested || op.def().passes_through() || is_of_wide_sum(op)) return add_fixed(op);
  Node node;
  node.op = op.id();
  node.list = &options_.of(op, known, function, places(op));
  // The price of an exchange is in what its user pays (ValueEdges::pay_where_not_merged).
  if (node.list->choices.size() == 1 && !is_exchange(known)) return add_fixed(op);
  const RegionId region = program_.module.op(op.id()).parent;
  for (size_t k = 0; k < node.list->costs.size(); ++k) {
    const GraphCost change = k == 0 ? 0 : node.list->works[k] > node.list->works[0] ? 2 * kChange : kChange;
    node.costs.push_back(add_costs(cost_of_runs(region, node.list->costs[k]), change));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    Home& home = homes_[op.result(i).index];
    home.node = nodes_.size();
    home.result = i;
    home.region = region;
    home.is_known = true;
  }
  nodes_.push_back(std::move(node));
  add_needs(op, nodes_.size() - 1);
}

void ProgramGraph::add_needs(const OpView& op, size_t node) {
  for (uint32_t i = 0; i < op.operand_count(); ++i) {
    std::vector<Need>& needs = needs_[op.operand(i).index];
    if (needs.empty() || needs.back().node != node) {
      Need& need = needs.emplace_back();
      need.node = node;
      need.region = program_.module.op(op.id()).parent;
    }
    needs.back().operands.push_back(i);
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
      : graph_(graph),
        value_(value),
        home_(graph.homes_[value.index]),
        homes_(graph.placements(home_)),
        needs_(graph.needs_[value.index]) {}

  void add() {
    if (needs_.size() > 1) find_shared_versions();
    for (const Need& need : needs_) {
      if (need.node != kNone) {
        add_edge(need);
      } else if (!find({need.fixed, need.region})) {
        add_to_home(need.fixed, need.region);  // its only user is no node
      }
    }
  }

 private:
  // A placement that users in one region need.
  struct Version {
    PlacementId placement;
    RegionId region;
    size_t users = 0;
    const Need* last = nullptr;  // of them
    bool is_always = false;      // a user that is no node needs it
    size_t node = kNone;
    std::vector<bool> needed = {};  // by option of the user at hand
  };
  struct Key {
    PlacementId placement;
    RegionId region;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // The costs of the moves to there, by option of the maker.
  struct Moves {
    Key to;
    std::vector<GraphCost> costs = {};
  };

  Version* find(const Key& key) {
    const auto found = std::ranges::find_if(versions_, [&](const Version& version) {
      return version.placement == key.placement && version.region == key.region;
    });
    return found == versions_.end() ? nullptr : &*found;
  }

  template <class Visit>
  void visit_needs(const Need& need, Visit&& visit) const {
    if (need.node == kNone) return visit(size_t{0}, need.fixed);
    const std::vector<OpChoice>& choices = graph_.nodes_[need.node].list->choices;
    for (size_t k = 0; k < choices.size(); ++k) {
      for (size_t i = 0; i < need.operands.size(); ++i) {
        const PlacementId placement = choices[k].operands[need.operands[i]];
        bool is_repeated = false;
        for (size_t j = 0; j < i; ++j) is_repeated |= choices[k].operands[need.operands[j]] == placement;
        if (!is_repeated) visit(k, placement);
      }
    }
  }

  // Only versions that several users may need stay in the list.
  void find_shared_versions() {
    for (const Need& need : needs_) {
      visit_needs(need, [&](size_t, PlacementId placement) {
        Version* version = find({placement, need.region});
        if (version == nullptr) version = &versions_.emplace_back(Version{placement, need.region});
        if (version->last != &need) ++version->users;
        version->last = &need;
        version->is_always |= need.node == kNone;
      });
    }
    std::erase_if(versions_, [&](const Version& version) { return version.users < 2 || is_free(version); });
    for (Version& version : versions_) {
      if (version.is_always) {
        add_to_home(version.placement, version.region);
      } else {
        add_node(version);
      }
    }
  }

  // Many options of users need the value in one placement, and many options of the maker make it in one.
  const std::vector<GraphCost>& moves(const Key& to) {
    const auto found = std::ranges::find(moves_, to, &Moves::to);
    if (found != moves_.end()) return found->costs;
    std::vector<GraphCost>& costs = moves_.emplace_back(Moves{to}).costs;
    for (size_t h = 0; h < homes_.size(); ++h) {
      const auto first = static_cast<size_t>(std::ranges::find(homes_, homes_[h]) - homes_.begin());
      costs.push_back(first < h ? costs[first] : graph_.move(value_, homes_[h], to.placement, to.region));
    }
    return costs;
  }
  bool is_free(const Version& version) {
    return std::ranges::all_of(moves({version.placement, version.region}), [](GraphCost cost) { return cost == 0; });
  }

  void add_to_home(PlacementId placement, RegionId user) {
    if (home_.node == kNone) return;  // it is paid in any case
    const std::vector<GraphCost>& more = moves({placement, user});
    std::vector<GraphCost>& costs = graph_.nodes_[home_.node].costs;
    for (size_t h = 0; h < homes_.size(); ++h) costs[h] = add_costs(costs[h], more[h]);
  }

  void add_node(Version& version) {
    version.node = graph_.nodes_.size();
    const std::vector<GraphCost>& moved = moves({version.placement, version.region});
    Node node;
    node.costs = {0, home_.node == kNone ? moved[0] : 0};
    graph_.nodes_.push_back(std::move(node));
    graph_.known_picks_.push_back(0);
    if (home_.node == kNone) return;
    std::vector<GraphCost> costs;
    for (const GraphCost cost : moved) costs.insert(costs.end(), {0, cost});
    graph_.edges_.push_back({home_.node, version.node, std::move(costs)});
  }

  void add_edge(const Need& need) {
    const size_t options = graph_.nodes_[need.node].list->choices.size();
    std::vector<GraphCost> costs(homes_.size() * options, 0);
    bool is_free = true;
    for (Version& version : versions_) version.needed.clear();
    visit_needs(need, [&](size_t k, PlacementId placement) {
      if (Version* version = find({placement, need.region}); version != nullptr) {
        version->needed.resize(options, false);
        version->needed[k] = true;
        return;
      }
      const std::vector<GraphCost>& more = moves({placement, need.region});
      for (size_t h = 0; h < homes_.size(); ++h) {
        GraphCost& cost = costs[h * options + k];
        cost = add_costs(cost, more[h]);
        is_free = is_free && cost == 0;
      }
    });
    for (const Version& version : versions_) {
      if (version.node != kNone && !version.needed.empty()) add_condition(need.node, version);
    }
    is_free = !pay_where_not_merged(need, costs) && is_free;
    if (is_free) return;
    if (home_.node == kNone) {
      std::vector<GraphCost>& own = graph_.nodes_[need.node].costs;
      for (size_t k = 0; k < options; ++k) own[k] = add_costs(own[k], costs[k]);
    } else {
      graph_.edges_.push_back({home_.node, need.node, std::move(costs)});
    }
  }

  // An exchange that its only user may merge is paid with that user (merged_exchanges.h). False if there is none.
  bool pay_where_not_merged(const Need& need, std::vector<GraphCost>& costs) {
    if (home_.node == kNone || needs_.size() != 1) return false;
    const Node& maker = graph_.nodes_[home_.node];
    const std::optional<Use> use = mergeable_use(graph_.program_.module, maker.op);
    if (!use) return false;
    const std::vector<OpChoice>& users = graph_.nodes_[need.node].list->choices;
    bool is_paid = false;
    for (size_t h = 0; h < homes_.size(); ++h) {
      if (!is_exchange(maker.list->choices[h])) continue;
      const GraphCost own = graph_.cost_of_runs(home_.region, maker.list->costs[h]);
      if (own >= kForbidden || own == 0) continue;
      is_paid = true;
      graph_.nodes_[home_.node].costs[h] -= own;
      for (size_t k = 0; k < users.size(); ++k) {
        GraphCost& cost = costs[h * users.size() + k];
        const bool merges = is_exchange(users[k]) && users[k].operands[use->index] == homes_[h];
        if (!merges) cost = add_costs(cost, own);
      }
    }
    return is_paid;
  }

  // An option that needs the version cannot be without it.
  void add_condition(size_t user, const Version& version) {
    std::vector<GraphCost> costs;
    for (const bool is_needed : version.needed) {
      costs.push_back(is_needed ? kForbidden : 0);
      costs.push_back(0);
    }
    if (version.needed[0]) graph_.known_picks_[version.node] = 1;
    graph_.edges_.push_back({user, version.node, std::move(costs)});
  }

  ProgramGraph& graph_;
  const ValueId value_;
  const Home& home_;
  const std::span<const PlacementId> homes_;
  const std::vector<Need>& needs_;
  std::vector<Version> versions_;
  std::vector<Moves> moves_;
};

void ProgramGraph::add_value(ValueId value) {
  const Home& home = homes_[value.index];
  if (home.is_constant || !home.is_known || needs_[value.index].empty()) return;
  ValueEdges(*this, value).add();
}

void ProgramGraph::make_graph() {
  known_picks_.assign(nodes_.size(), 0);
  for (uint32_t i = 0; i < homes_.size(); ++i) add_value(ValueId{i});
  for (Node& node : nodes_) graph_.add_node(node.costs);
  for (CostGraph::Edge& edge : std::exchange(edges_, {})) graph_.add_edge(edge.a, edge.b, std::move(edge.costs));
}

CostGraph ProgramGraph::costs_without_more_work() const {
  CostGraph graph = graph_;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].op) continue;
    const std::vector<int64_t>& works = nodes_[i].list->works;
    for (size_t k = 1; k < works.size(); ++k) {
      if (works[k] > works[0]) graph.forbid(i, k);
    }
  }
  return graph;
}

GivenChoices ProgramGraph::chosen(const std::vector<uint32_t>& picks) const {
  GivenChoices given;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op) given.emplace(nodes_[i].op, nodes_[i].list->choices[picks[i]]);
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
