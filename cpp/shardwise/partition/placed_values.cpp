// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/placed_values.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/value_names.h"

namespace shardwise {

void PlacedValues::add_argument(ValueId argument, bool is_of_main) {
  const Value& known = source_.value(argument);
  // The caller of main may pass unreduced values; a call reduces its operands.
  const PlacementId home = is_of_main ? placements_.of(known.sharding, known.type) : placements_.declared(argument);
  const ValueId made = target().add_argument(builder_.region(), known.type, known.loc);
  target().value(made).origin = known.origin;
  add(argument, made, home, {.kind = Cause::kMainArgument, .detail = argument_text(source_, argument)});
}

void PlacedValues::leave() {
  const size_t left = depth();
  for (const ValueId source : scopes_.back().versioned) {
    // Ops after the region cannot use its values.
    std::erase_if(placed_[source.index].versions, [&](const Version& version) { return version.depth == left; });
  }
  scopes_.pop_back();
}

void PlacedValues::add(ValueId source, ValueId made, PlacementId home, Cause pending_cause, LocId pending_loc) {
  target().value(made).sharding = placements_.sharding(home);
  const OpId op = source_.value(source).op;
  if (!pending_loc) pending_loc = op ? source_.op(op).loc : source_.value(source).loc;
  placed_[source.index] = {.depth = depth(),
                           .versions = {{home, made, depth()}},
                           .pending_cause = std::move(pending_cause),
                           .loc = pending_loc,
                           .constant = {}};
}

void PlacedValues::move_home(ValueId source, PlacementId home, Cause pending_cause, LocId pending_loc) {
  Placed& placed = placed_[source.index];
  check_internal(placed.versions.size() == 1, "a value that was read keeps its home");
  target().value(placed.versions[0].value).sharding = placements_.sharding(home);
  placed.versions[0].placement = home;
  placed.pending_cause = std::move(pending_cause);
  placed.loc = pending_loc;
}

void PlacedValues::add_constant(const OpView& op) {
  placed_[op.result().index] = {
      .depth = depth(), .versions = {}, .pending_cause = {}, .loc = op.loc(), .constant = op.id()};
}

void PlacedValues::add_alias(ValueId source, ValueId original, const Cause& cause) {
  const Module& module = source_;
  const Value& column = module.value(source);
  PlacementId wanted = placements_.declared(source);
  const Placement* written = placements_.find(placements_.of(column.sharding, column.type));
  const Placement* at_home = placements_.find(home(original, {}));
  // Annotated unreduced axes stay if the value is unreduced over them. An annotation alone makes nothing unreduced.
  if (written != nullptr && at_home != nullptr && !written->unreduced.empty() && !at_home->unreduced.empty() &&
      written->mesh == at_home->mesh) {
    Placement kept = *placements_.find(wanted);
    kept.mesh = at_home->mesh;
    kept.unreduced = difference(at_home->unreduced, difference(at_home->unreduced, written->unreduced));
    kept.reducer = kept.unreduced.empty() ? Reducer::kNone : at_home->reducer;
    wanted = module.context().intern(kept);
  }
  get(original, wanted, cause);
  // All versions of the original come along, because they hold the same elements.
  Placed placed = placed_[original.index];
  const auto made = std::ranges::find(placed.versions, wanted, &Version::placement);
  std::rotate(placed.versions.begin(), made, made + 1);  // the home comes first
  placed_[source.index] = std::move(placed);
}

PlacementId PlacedValues::home(ValueId source, PlacementId of_constants) const {
  const Placed& placed = placed_[source.index];
  if (placed.versions.empty() || placed.constant) return of_constants;
  const PlacementId home = placed.versions[0].placement;
  const Placement* found = placements_.find(home);
  const bool is_pending = found != nullptr && !found->unreduced.empty();
  // A region takes no pending reduction from around it: the value counts as completed.
  return is_pending && placed.depth < depth() ? placements_.declared(source) : home;
}

PlacementId PlacedValues::entry(ValueId source, PlacementId carry) const {
  const Placement* placement = placements_.find(carry);
  if (placement == nullptr || placement->unreduced.empty()) return carry;
  const auto& versions = placed_[source.index].versions;
  // Otherwise the reduced entry value becomes unreduced when the loop is localized, which sends nothing.
  if (std::ranges::find(versions, carry, &Version::placement) != versions.end()) return carry;
  return placements_.of(source_.value(source).type, placement->dim_axes(), {}, Reducer::kNone, placement->mesh);
}

// Only reductions that are already pending can stay pending.
bool PlacedValues::can_reach(PlacementId from, PlacementId need) const {
  const Placement* to = placements_.find(need);
  if (to == nullptr || to->unreduced.empty()) return true;
  const Placement* placement = placements_.find(from);
  return placement != nullptr && placement->reducer == to->reducer && placement->mesh == to->mesh &&
         difference(to->unreduced, placement->unreduced).empty();
}

const PlacedValues::Version* PlacedValues::nearest(const Placed& placed, TypeId type, PlacementId need, double& bytes) {
  const Version* best = nullptr;
  for (const Version& version : placed.versions) {
    if (version.placement == need) {
      bytes = 0;
      return &version;
    }
    if (!can_reach(version.placement, need)) continue;
    const double cost = planner_.bytes(type, version.placement, need);
    if (best != nullptr && cost >= bytes) continue;
    best = &version;
    bytes = cost;
  }
  return best;
}

bool PlacedValues::is_pending(const Placed& placed) const {
  const Placement* home = placements_.find(placed.versions[0].placement);
  return home != nullptr && !home->unreduced.empty();
}

// The operand, for a result that one elementwise op made of fewer bytes; none for other values.
ValueId PlacedValues::narrower(ValueId source) const {
  const OpId id = source_.value(source).op;
  if (!id || !source_.op(id).def->traits.elementwise || source_.op(id).operand_count != 1) return {};
  const ValueId operand = source_.operands(id)[0];
  const TensorType &from_type = source_.type(operand), &type = source_.type(source);
  if (item_size(from_type.dtype) >= item_size(type.dtype)) return {};
  if (from_type.shape != type.shape) return {};  // a bitcast of several elements to one
  const Placed& placed = placed_[source.index];
  const Placed& from = placed_[operand.index];
  // The operand must be visible wherever a version of the result may be made.
  const bool is_movement = !from.versions.empty() && !from.constant && from.depth <= placed.depth;
  return is_movement && !is_pending(placed) && !is_pending(from) ? operand : ValueId{};
}

const PlacedValues::Version* PlacedValues::cheapest(ValueId source, PlacementId need, double& bytes, ValueId& narrow) {
  const Placed& placed = placed_[source.index];
  const Version* from = nearest(placed, source_.value(source).type, need, bytes);
  check_internal(from != nullptr, "a value cannot be brought to the placement that an op needs");
  if (bytes == 0) return from;
  const ValueId operand = narrower(source);
  if (!operand) return from;
  double narrow_bytes = 0;
  ValueId further;
  // The operand may itself be made again from a narrower one.
  cheapest(operand, need, narrow_bytes, further);
  if (narrow_bytes >= bytes) return from;
  bytes = narrow_bytes;
  narrow = operand;
  return nullptr;
}

const PlacedValues::Version* PlacedValues::chosen(ValueId source, PlacementId need, ValueId& narrow) {
  constexpr std::string_view kOperand = "operand";  // the op is computed again
  const std::vector<Version>& versions = placed_[source.index].versions;
  std::vector<const Version*> possible;
  for (const Version& version : versions) {
    if (version.placement == need) return &version;
    if (can_reach(version.placement, need)) possible.push_back(&version);
  }
  const ValueId operand = narrower(source);
  double bytes = 0;
  if (possible.size() < 2 && !operand) return cheapest(source, need, bytes, narrow);
  const std::string text = sources_.next([&] {
    const Version* best = cheapest(source, need, bytes, narrow);
    return best == nullptr ? std::string(kOperand) : placements_.text(best->placement);
  });
  narrow = text == kOperand ? operand : ValueId{};
  if (narrow) return nullptr;
  const auto found = std::ranges::find_if(
      possible, [&](const Version* version) { return placements_.text(version->placement) == text; });
  if (found == possible.end()) sources_.refuse();
  return *found;
}

double PlacedValues::bytes(ValueId source, PlacementId need) {
  const Placed& placed = placed_[source.index];
  if (placed.constant) return 0;
  double bytes = 0;
  ValueId narrow;
  cheapest(source, need, bytes, narrow);
  // A version before a loop serves all of its trips; the caller counts by trip.
  for (size_t d = depth_of_version(placed) + 1; d <= depth(); ++d) bytes /= scopes_[d].trips;
  return bytes;
}

// A new version of a value is made here, or before the outermost loop between the value and here.
size_t PlacedValues::depth_of_version(const Placed& placed) const {
  for (size_t d = placed.depth + 1; d <= depth(); ++d) {
    if (scopes_[d].trips != 1) return d - 1;
  }
  return depth();
}

// Constants of a loop are created before it, once.
size_t PlacedValues::depth_outside_loops(const Placed& placed) const {
  for (size_t d = 1; d <= depth(); ++d) {
    if (scopes_[d].trips != 1) return d - 1;
  }
  return placed.depth;
}

void PlacedValues::keep(ValueId source, PlacementId placement, ValueId made, size_t depth) {
  target().value(made).sharding = placements_.sharding(placement);
  placed_[source.index].versions.push_back({placement, made, depth});
  if (depth > placed_[source.index].depth) scopes_[depth].versioned.push_back(source);
}

ValueId PlacedValues::get(ValueId source, PlacementId need, const Cause& cause) {
  const Placed& placed = placed_[source.index];
  if (placed.constant) make_constant(source, need);
  ValueId narrow;
  const Version* from = chosen(source, need, narrow);
  if (from == nullptr) return make_again(source, narrow, need, cause);
  if (from->placement == need) return from->value;

  const Placement* before = placements_.find(from->placement);
  const Placement* after = placements_.find(need);
  const bool reduces = before != nullptr && before->unreduced.size() > (after == nullptr ? 0 : after->unreduced.size());
  // A pending reduction is completed where the value is, whatever region needs it first.
  const size_t at = std::max(reduces ? placed.depth : depth_of_version(placed), from->depth);
  Builder builder(target(), scopes_[at].region);
  builder.set_loc(builder_.loc(), builder_.origin());
  const bool is_reduction = reduces && placed.pending_cause.kind != Cause::kNone;
  if (is_reduction) builder.set_loc(placed.loc, builder_.origin());
  const ValueId made =
      builder.create("sdy.reshard", {from->value}, (is_reduction ? placed.pending_cause : cause).attrs());
  target().value(made).origin = target().value(from->value).origin;
  keep(source, need, made, at);
  return made;
}

ValueId PlacedValues::make_again(ValueId source, ValueId narrow, PlacementId need, const Cause& cause) {
  const ValueId operand = get(narrow, need, cause);
  const std::vector<Version>& versions = placed_[narrow.index].versions;
  const size_t at =
      std::max(depth_of_version(placed_[source.index]), std::ranges::find(versions, operand, &Version::value)->depth);
  const OpId made = GraphCopy(source_, target()).op(source_.value(source).op, scopes_[at].region, {&operand, 1});
  keep(source, need, target().result(made), at);
  return target().result(made);
}

// Creates the constant with the needed placement, or replicated and then sliced.
void PlacedValues::make_constant(ValueId source, PlacementId need) {
  const Placed& placed = placed_[source.index];
  const OpView op(source_, placed.constant);
  const ShardingRule& rule = sharding_rule(op);
  const PlacementId made_in =
      can_be_made(rule, placements_.find(need)) ? need : placements_.replicated(source_.value(op.result()).type);
  for (const Version& version : placed.versions) {
    if (version.placement == made_in) return;
  }
  const size_t at = depth_outside_loops(placed);
  const OpId made = GraphCopy(source_, target()).op(op.id(), scopes_[at].region, {});
  keep(source, made_in, target().result(made), at);
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
