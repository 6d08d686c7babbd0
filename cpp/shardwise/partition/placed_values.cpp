// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/placed_values.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/value_names.h"

namespace shardwise {

void PlacedValues::add_argument(ValueId argument) {
  const Value& known = source_.value(argument);
  const PlacementId home = placements_.of(known.sharding, known.type);
  const ValueId made = target().add_argument(builder_.region(), known.type, known.loc);
  target().value(made).origin = known.origin;
  add(argument, made, home, argument_text(source_, argument));
}

void PlacedValues::add(ValueId source, ValueId made, PlacementId home, std::string pending_cause) {
  target().value(made).sharding = placements_.sharding(home);
  const OpId op = source_.value(source).op;
  placed_[source.index] = {.versions = {{home, made}},
                           .pending_cause = std::move(pending_cause),
                           .loc = op ? source_.op(op).loc : source_.value(source).loc,
                           .constant = {}};
}

void PlacedValues::add_constant(const OpView& op) {
  placed_[op.result().index] = {.versions = {}, .pending_cause = {}, .loc = op.loc(), .constant = op.id()};
}

void PlacedValues::add_alias(ValueId source, ValueId original, std::string_view cause) {
  const Module& module = source_;
  const Value& column = module.value(source);
  PlacementId wanted = placements_.declared(source);
  const Placement* written = placements_.find(placements_.of(column.sharding, column.type));
  const Placement* at_home = placements_.find(home(original, {}));
  // Annotated unreduced axes stay if the value is unreduced over them. An annotation alone makes nothing unreduced.
  if (written != nullptr && at_home != nullptr && !written->unreduced.empty() && !at_home->unreduced.empty()) {
    Placement kept = *placements_.find(wanted);
    kept.unreduced = difference(at_home->unreduced, difference(at_home->unreduced, written->unreduced));
    kept.reducer = kept.unreduced.empty() ? Reducer::kNone : at_home->reducer;
    wanted = module.context().intern(kept);
  }
  const ValueId made = get(original, wanted, cause);
  Placed placed = placed_[original.index];
  std::erase_if(placed.versions, [&](const Version& version) { return version.placement == wanted; });
  placed.versions.insert(placed.versions.begin(), {wanted, made});
  placed_[source.index] = std::move(placed);
}

PlacementId PlacedValues::home(ValueId source, PlacementId of_constants) const {
  const Placed& placed = placed_[source.index];
  return placed.versions.empty() || placed.constant ? of_constants : placed.versions[0].placement;
}

// Only reductions that are already pending can stay pending.
bool PlacedValues::can_reach(PlacementId from, PlacementId need) const {
  const Placement* to = placements_.find(need);
  if (to == nullptr || to->unreduced.empty()) return true;
  const Placement* placement = placements_.find(from);
  return placement != nullptr && placement->reducer == to->reducer &&
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

double PlacedValues::bytes(ValueId source, PlacementId need) {
  const Placed& placed = placed_[source.index];
  if (placed.constant) return 0;
  double bytes = 0;
  check_internal(nearest(placed, source_.value(source).type, need, bytes) != nullptr,
                 "a value cannot be brought to the placement that an op needs");
  return bytes;
}

ValueId PlacedValues::get(ValueId source, PlacementId need, std::string_view cause) {
  Placed& placed = placed_[source.index];
  if (placed.constant) make_constant(placed, need);
  double bytes = 0;
  const Version* from = nearest(placed, source_.value(source).type, need, bytes);
  check_internal(from != nullptr, "a value cannot be brought to the placement that an op needs");
  if (from->placement == need) return from->value;

  const Placement* before = placements_.find(from->placement);
  const Placement* after = placements_.find(need);
  const bool reduces = before != nullptr && before->unreduced.size() > (after == nullptr ? 0 : after->unreduced.size());
  const LocId users_loc = builder_.loc();
  const OpId users_origin = builder_.origin();
  if (reduces && !placed.pending_cause.empty()) {
    cause = placed.pending_cause;
    builder_.set_loc(placed.loc, users_origin);
  }
  const ValueId made = builder_.create("sdy.reshard", {from->value}, {{std::string(kCauseAttr), std::string(cause)}});
  builder_.set_loc(users_loc, users_origin);
  target().value(made).sharding = placements_.sharding(need);
  target().value(made).origin = target().value(from->value).origin;
  placed.versions.push_back({need, made});
  return made;
}

// Creates the constant with the needed placement, or whole, to be sliced.
void PlacedValues::make_constant(Placed& placed, PlacementId need) {
  const OpView op(source_, placed.constant);
  const ShardingRule& rule = source_.context().sharding_rule(op);
  const PlacementId made_in =
      can_be_made(rule, placements_.find(need)) ? need : placements_.replicated(op.module().value(op.result()).type);
  for (const Version& version : placed.versions) {
    if (version.placement == made_in) return;
  }
  const OpId made = GraphCopy(source_, target()).op(op.id(), builder_.region(), {});
  const ValueId value = target().result(made);
  target().value(value).sharding = placements_.sharding(made_in);
  placed.versions.push_back({made_in, value});
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
