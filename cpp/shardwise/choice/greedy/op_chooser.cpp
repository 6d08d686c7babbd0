// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/op_chooser.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace shardwise {
namespace {

// The elements of a device's part.
double written(const Placement* placement) {
  return placement == nullptr ? 0 : static_cast<double>(element_count(placement->local_shape()));
}

}  // namespace

// What the walk compares candidates by, most important first. A later reduction may be combined with others.
struct OpChooser::Rank {
  Cost cost;
  bool reduces_early = false;
  double work = 0;
  int reshards = 0;
  friend bool operator<(const Rank& a, const Rank& b) {
    return std::tie(a.cost, a.reduces_early, a.work, a.reshards) <
           std::tie(b.cost, b.reduces_early, b.work, b.reshards);
  }
};

OpChoice OpChooser::choose(const OpView& op, const ShardingRule& rule) {
  const Pending pending = pending_at_home(module_, program_.linearity, versions_, placements_, op);
  const TensorPlaces& places = places_of(op);
  const CandidateList& list = program_.lists.of(op, rule, pending, places, scope_);
  if (choice_.is_asked(op.id())) choice_.add_ways(op.id(), ranked(op, list, pending));
  const ChosenOp* pinned = pinned_.entry(op.id());
  if (pinned == nullptr) return cheapest(op, list, pending);
  const auto found = pinned_.find(op, rule, *pinned, list.candidates, places.current, pending);
  if (!found) pinned_.fail(op, *pinned, cheapest(op, list, pending));
  return *found;
}

const TensorPlaces& OpChooser::places_of(const OpView& op) {
  TensorPlaces& places = places_;
  places.clear();
  places.repeats.find(op);
  for (const ValueId operand : op.operands()) {
    places.declared.push_back(placements_.declared(operand));
    places.current.push_back(versions_.home(operand, places.declared.back()));
    places.is_constant.push_back(versions_.is_constant(operand));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    const PlacementId requested = program_.requested.of(op.result(i));
    places.is_requested = places.is_requested || requested;
    places.declared.push_back(requested ? requested : wanted_placement(module_, placements_, *function_, op, i));
    places.current.push_back(places.declared.back());
    places.is_used.push_back(!module_.uses(op.result(i)).empty());
  }
  return places;
}

OpChoice OpChooser::cheapest(const OpView& op, const CandidateList& list, const Pending& pending) {
  const auto leaves = [&](const Candidate& candidate) { return leaves_requested(op, candidate.choice); };
  const bool is_requested = places_.is_requested && std::ranges::any_of(list.candidates, leaves);
  if (list.candidates.size() == 1) return list.candidates[0].choice;
  std::optional<std::pair<Rank, size_t>> best, next;
  // The first of equal candidates stays, so that the choice does not depend on more than their order.
  const auto is_better = [](const auto& one, const auto& than) { return !than || one.first < than->first; };
  for (size_t i = 0; i < list.candidates.size(); ++i) {
    if (is_requested && !leaves(list.candidates[i])) continue;
    std::pair one(rank_of(op, list, i, pending), i);
    if (is_better(one, best))
      best.swap(next), best = one;
    else if (is_better(one, next))
      next = one;
  }
  if (next && best->first.cost < next->first.cost) {
    choice_.add_next_best(op.id(), {list.candidates[next->second].choice, program_.costs.are_times()});
  }
  return list.candidates[best->second].choice;
}

std::vector<OpChoice> OpChooser::ranked(const OpView& op, const CandidateList& list, const Pending& pending) {
  std::vector<std::pair<Rank, size_t>> ranks;
  for (size_t i = 0; i < list.candidates.size(); ++i) ranks.emplace_back(rank_of(op, list, i, pending), i);
  std::ranges::stable_sort(ranks, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<OpChoice> ways;
  for (const auto& [rank, i] : ranks) ways.push_back(list.candidates[i].choice);
  return ways;
}

// Whether the results are unreduced where annotations ask for it.
bool OpChooser::leaves_requested(const OpView& op, const OpChoice& choice) const {
  for (size_t i = 0; i < op.result_count(); ++i) {
    const Placement* wanted = placements_.find(program_.requested.of(op.result(i)));
    if (wanted == nullptr) continue;
    const Placement& made = *placements_.find(choice.results[i]);
    const bool leaves = made.reducer == wanted->reducer && made.mesh == wanted->mesh &&
                        difference(wanted->unreduced, made.unreduced).empty();
    if (!leaves) return false;
  }
  return true;
}

OpChooser::Rank OpChooser::rank_of(const OpView& op, const CandidateList& list, size_t i, const Pending& pending) {
  const Candidate& candidate = list.candidates[i];
  const bool reduces_early = !pending.axes.empty() && !candidate.passes;
  Rank rank{.cost = list.compute[i],
            .reduces_early = reduces_early != pending.only_if_less,
            .work = candidate.work,
            .reshards = 0};
  // A method that takes each tensor where it is moves elements by itself.
  if (candidate.choice.has_own_partition() && candidate.choice.method->placements == nullptr) ++rank.reshards;
  add_operands(op, candidate, pending, rank);
  add_results(op, candidate.choice, rank);
  return rank;
}

void OpChooser::add_operands(const OpView& op, const Candidate& candidate, const Pending& pending, Rank& rank) {
  const bool reduces_early = !pending.axes.empty() && !candidate.passes;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (places_.repeats.is_brought_before(candidate.choice, i)) continue;
    const PlacementId need = candidate.choice.operands[i];
    Cost cost = versions_.cost(op.operand(i), need);
    if (reduces_early && pending.operands[i]) {
      const double count = sharers(module_, program_.linearity, op.operand(i), op, pending.reducer);
      // No sharers: another user pays for the reduction in any case.
      cost = count == 0 ? Cost{} : cost / count;
    }
    rank.cost += cost;
    rank.reshards += need == versions_.home(op.operand(i), need) ? 0 : 1;
  }
}

// Moving each result to its propagated placement; its users are chosen later.
void OpChooser::add_results(const OpView& op, const OpChoice& choice, Rank& rank) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    const PlacementId made = choice.results[i];
    PlacementId wanted = places_.declared[op.operand_count() + i];
    if (program_.requested.of(op.result(i)) && !leaves_requested(op, choice))
      wanted = placements_.declared(op.result(i));
    if (module_.uses(op.result(i)).empty() || made == wanted || placements_.is_open(op.result(i))) continue;
    // A wide sum is reduced at once, in each iteration of a loop.
    const TypeId type = type_made(placements_, op, i, made);
    const double runs = type == module_.value(op.result(i)).type ? deferred_.share(op.result(i)) : 1;
    rank.cost += runs * program_.costs.reshard(type, made, wanted);
    ++rank.reshards;
    // A reshard writes the elements again.
    if (op.def().traits.movement) rank.work += written(placements_.find(wanted));
  }
}

}  // namespace shardwise
