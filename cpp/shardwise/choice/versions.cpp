// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/versions.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// Chains of elementwise ops and copies whose first operands are whole on each device, or constants.
class Versions::OpsAgain {
 public:
  explicit OpsAgain(Versions& versions) : versions_(versions) {}

  bool follow_from_whole(ValueId value, PlacementId home) const {
    const Placement* placement = versions_.placements_.find(home);
    if (placement == nullptr || placement->is_fully_replicated())
      return placement == nullptr || placement->unreduced.empty();
    const OpId id = versions_.module_.value(value).op;
    if (!id || !placement->unreduced.empty()) return false;
    const ComputedAgain found = computed_again(OpView(versions_.module_, id), home, versions_.placements_);
    return found && std::ranges::all_of(found.operands, [&](const ComputedAgain::Operand& operand) {
             const Placed& placed = versions_.placed_[operand.value.index];
             return (placed.constant || placed.follows_from_whole) && placed.depth == versions_.depth();
           });
  }

  // Returns the operand from which the op of the value can make this version again, or none if the version has to be moved.
  ComputedAgain of(ValueId value, PlacementId need) const {
    const OpId id = versions_.module_.value(value).op;
    if (!id) return {};
    const Placed& placed = versions_.placed_[value.index];
    ComputedAgain found = computed_again(OpView(versions_.module_, id), need, versions_.placements_);
    if (!found || versions_.is_pending(placed) || (!found.is_of_less && !placed.follows_from_whole)) return {};
    for (const ComputedAgain::Operand& operand : found.operands) {
      const Placed& from = versions_.placed_[operand.value.index];
      // The operand must be visible wherever a version of the result may be made.
      if (from.versions.empty() && !from.constant) return {};
      if (from.depth > placed.depth || (found.is_of_less && from.constant && !placed.follows_from_whole)) return {};
      if (!from.constant && versions_.is_pending(from)) return {};
    }
    return found;
  }

  // Prices the op of the value once more, and what its operands need for it.
  Cost price(ValueId value, PlacementId need, const ComputedAgain& again) {
    constexpr size_t kMost = 256;  // a longer chain costs too much to price, and to run
    const Cost never{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    if (paid_.size() >= kMost) return never;
    const OpView op(versions_.module_, versions_.module_.value(value).op);
    OpChoice chosen{.operands = {}, .results = {need}};
    for (const ComputedAgain::Operand& operand : again.operands) chosen.operands.push_back(operand.placement);
    const std::vector<bool> is_moved(op.operand_count(), false);
    Cost cost = versions_.costs_.compute({op, sharding_rule(op), chosen, is_moved, {true}});
    for (const auto& [operand, placement] : again.operands) {
      const Placed& placed = versions_.placed_[operand.index];
      if (placed.constant || !paid_.emplace(std::pair(operand, placement), true).second) continue;
      Cost moved;
      const Version* from = versions_.nearest(placed, versions_.module_.value(operand).type, placement, moved);
      check_internal(from != nullptr, "a value that follows from whole ones is not pending");
      if (from->placement == placement) continue;
      const ComputedAgain further = moved.bytes > 0 ? of(operand, placement) : ComputedAgain{};
      cost += further ? std::min(moved, price(operand, placement, further)) : moved;
    }
    return cost;
  }

 private:
  Versions& versions_;
  std::map<std::pair<ValueId, PlacementId>, bool> paid_;  // each version is paid once
};

void Versions::leave() {
  const size_t left = depth();
  for (const ValueId value : scopes_.back().versioned) {
    // Ops after the region cannot use its values.
    std::erase_if(placed_[value.index].versions, [&](const Version& version) { return version.depth == left; });
  }
  scopes_.pop_back();
}

void Versions::add(ValueId value, PlacementId home) {
  placed_[value.index] = {.depth = depth(),
                          .versions = {{home, depth()}},
                          .constant = {},
                          .follows_from_whole = OpsAgain(*this).follow_from_whole(value, home)};
}

void Versions::move_home(ValueId value, PlacementId home) {
  Placed& placed = placed_[value.index];
  check_internal(placed.versions.size() == 1, "a value that was read keeps its home");
  placed.versions[0].placement = home;
}

void Versions::add_constant(const OpView& op) {
  placed_[op.result().index] = {.depth = depth(), .versions = {}, .constant = op.id()};
}

void Versions::add_alias(ValueId value, ValueId original, PlacementId placement) {
  need(original, placement);
  Placed placed = placed_[original.index];
  const auto made = std::ranges::find(placed.versions, placement, &Version::placement);
  std::rotate(placed.versions.begin(), made, made + 1);  // the home comes first
  placed_[value.index] = std::move(placed);
}

PlacementId Versions::home(ValueId value, PlacementId of_constants) const {
  const Placed& placed = placed_[value.index];
  if (placed.versions.empty() || placed.constant) return of_constants;
  const PlacementId home = placed.versions[0].placement;
  const Placement* found = placements_.find(home);
  const bool is_pending = found != nullptr && !found->unreduced.empty();
  // A region takes no pending reduction from around it: the value counts as completed.
  return is_pending && placed.depth < depth() ? placements_.declared(value) : home;
}

PlacementId Versions::entry(ValueId value, PlacementId carry) const {
  const Placement* placement = placements_.find(carry);
  if (placement == nullptr || placement->unreduced.empty()) return carry;
  Placement owned = *placement;
  owned.is_owned = placement->reducer == Reducer::kSum;
  // Otherwise the reduced entry value becomes unreduced when the loop is localized, which sends nothing.
  for (const Version& version : placed_[value.index].versions) {
    if (version.placement == carry || *placements_.find(version.placement) == owned) return version.placement;
  }
  return placements_.of(module_.value(value).type, placement->dim_axes(), {}, Reducer::kNone, placement->mesh);
}

bool can_bring(const ProgramPlacements& placements, PlacementId from, PlacementId to) {
  const Placement* after = placements.find(to);
  if (after == nullptr || after->unreduced.empty()) return true;
  const Placement* before = placements.find(from);
  return before != nullptr && before->reducer == after->reducer && before->mesh == after->mesh &&
         difference(after->unreduced, before->unreduced).empty();
}

bool Versions::can_be_brought(ValueId value, PlacementId need) const {
  const Placed& placed = placed_[value.index];
  const Placement* wanted = placements_.find(need);
  if (placed.constant || wanted == nullptr || wanted->unreduced.empty()) return true;
  return placed.depth == depth() && can_bring(placements_, placed.versions[0].placement, need);
}

const Versions::Version* Versions::nearest(const Placed& placed, TypeId type, PlacementId need, Cost& cost) {
  const Version* best = nullptr;
  for (const Version& version : placed.versions) {
    if (version.placement == need) {
      cost = {};
      return &version;
    }
    if (!can_bring(placements_, version.placement, need)) continue;
    const Cost from_here = costs_.reshard(type, version.placement, need);
    if (best != nullptr && from_here >= cost) continue;
    best = &version;
    cost = from_here;
  }
  return best;
}

bool Versions::is_pending(const Placed& placed) const {
  const Placement* home = placements_.find(placed.versions[0].placement);
  return home != nullptr && !home->unreduced.empty();
}

const Versions::Version* Versions::cheapest(ValueId value, PlacementId need, Cost& cost, ComputedAgain& again) {
  const Placed& placed = placed_[value.index];
  const Version* from = nearest(placed, module_.value(value).type, need, cost);
  check_internal(from != nullptr, "a value cannot be brought to the placement that an op needs");
  if (from->placement == need) return from;
  const ComputedAgain found = OpsAgain(*this).of(value, need);
  if (!found) return from;
  Cost again_cost;
  if (!found.is_of_less) {
    again_cost = OpsAgain(*this).price(value, need, found);
  } else if (!placed_[found.operands[0].value.index].constant) {
    ComputedAgain further;
    // The operand may itself be made again from a smaller one.
    cheapest(found.operands[0].value, found.operands[0].placement, again_cost, further);
  }
  // A part that is cut out of copies needs all of them first.
  if (found.copies ? again_cost > cost : again_cost >= cost) return from;
  cost = again_cost;
  again = found;
  return nullptr;
}

const Versions::Version* Versions::chosen(ValueId value, PlacementId need, ComputedAgain& again) {
  constexpr std::string_view kOperand = "operand";  // the op is computed again
  const std::vector<Version>& versions = placed_[value.index].versions;
  std::vector<const Version*> possible;
  for (const Version& version : versions) {
    if (version.placement == need) return &version;
    if (can_bring(placements_, version.placement, need)) possible.push_back(&version);
  }
  const ComputedAgain other = OpsAgain(*this).of(value, need);
  Cost cost;
  if (possible.size() < 2 && !other) return cheapest(value, need, cost, again);
  const ChosenText& decided = choice_.source(value, need, [&] {
    const Version* best = cheapest(value, need, cost, again);
    return best == nullptr ? std::string(kOperand) : placements_.text(best->placement);
  });
  const std::string& text = decided.chosen;
  again = text == kOperand ? other : ComputedAgain{};
  if (again) return nullptr;
  const auto found = std::ranges::find_if(
      possible, [&](const Version* version) { return placements_.text(version->placement) == text; });
  if (found == possible.end()) {
    const Version* best = cheapest(value, need, cost, again);
    fail_as_impossible(module_, module_.value(value).op,
                       {.kind = "sources",
                        .at = decided.at,
                        .pinned = str("to ", placements_.text(need), " from ", text),
                        .possible = best == nullptr ? std::string(kOperand) : placements_.text(best->placement)});
  }
  return *found;
}

Cost Versions::cost(ValueId value, PlacementId need) {
  const Placed& placed = placed_[value.index];
  if (placed.constant) return {};
  Cost cost;
  ComputedAgain again;
  cheapest(value, need, cost, again);
  // A version before a loop serves all of its trips; the caller counts by trip.
  for (size_t d = depth_of_version(placed) + 1; d <= depth(); ++d) cost = cost / scopes_[d].loop_trips.value_or(1);
  return cost;
}

// A new version of a value is made here, or before the outermost loop between the value and here.
size_t Versions::depth_of_version(const Placed& placed) const {
  for (size_t d = placed.depth + 1; d <= depth(); ++d) {
    if (scopes_[d].loop_trips) return d - 1;
  }
  return depth();
}

// Constants of a loop are created before it, once.
size_t Versions::depth_outside_loops(const Placed& placed) const {
  for (size_t d = 1; d <= depth(); ++d) {
    if (scopes_[d].loop_trips) return d - 1;
  }
  return placed.depth;
}

void Versions::keep(ValueId value, PlacementId placement, size_t depth, VersionChoice version) {
  choice_.add_version({value, placement, scopes_[depth].region}, version);
  placed_[value.index].versions.push_back({placement, depth});
  if (depth > placed_[value.index].depth) scopes_[depth].versioned.push_back(value);
}

void Versions::need(ValueId value, PlacementId need) {
  const Placed& placed = placed_[value.index];
  if (placed.constant) make_constant(value, need);
  ComputedAgain again;
  const Version* from = chosen(value, need, again);
  if (from == nullptr) return compute_again(value, again, need);
  if (from->placement == need) return;
  const Placement* before = placements_.find(from->placement);
  const Placement* after = placements_.find(need);
  const bool reduces = before != nullptr && before->unreduced.size() > (after == nullptr ? 0 : after->unreduced.size());
  // A pending reduction is completed where the value is, whatever region needs it first.
  const size_t at = std::max(reduces ? placed.depth : depth_of_version(placed), from->depth);
  keep(value, need, at, {VersionChoice::kReshard, from->placement});
}

void Versions::compute_again(ValueId value, const ComputedAgain& again, PlacementId placement) {
  size_t at = depth_of_version(placed_[value.index]);
  for (const auto& [operand, operand_placement] : again.operands) {
    need(operand, operand_placement);
    const std::vector<Version>& versions = placed_[operand.index].versions;
    at = std::max(at, std::ranges::find(versions, operand_placement, &Version::placement)->depth);
  }
  keep(value, placement, at, {VersionChoice::kAgain, {}});
}

// The constant is made with the needed placement, or replicated and then sliced.
void Versions::make_constant(ValueId value, PlacementId need) {
  const Placed& placed = placed_[value.index];
  const OpView op(module_, placed.constant);
  const ShardingRule& rule = sharding_rule(op);
  const PlacementId made_in =
      can_be_made(rule, placements_.find(need)) ? need : placements_.replicated(module_.value(value).type);
  for (const Version& version : placed.versions) {
    if (version.placement == made_in) return;
  }
  keep(value, made_in, depth_outside_loops(placed), {VersionChoice::kMade, {}});
}

bool can_be_made(const ShardingRule& rule, const Placement* wanted) {
  bool direct = !rule.empty() || wanted == nullptr || wanted->is_fully_replicated();
  for (size_t d = 0; direct && wanted != nullptr && d < wanted->dims.size(); ++d) {
    if (wanted->dims[d].axes.empty()) continue;
    const auto factors = rule.dim(rule.result_tensor(0), d);
    direct = factors.size() == 1 && rule.factors()[factors[0]].kind == FactorKind::kPassThrough;
  }
  return direct;
}

}  // namespace shardwise
