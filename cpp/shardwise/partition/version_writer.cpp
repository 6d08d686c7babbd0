// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/version_writer.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/choice/computed_again.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"

namespace shardwise {

void VersionWriter::leave() {
  const size_t left = depth();
  for (const ValueId source : scopes_.back().versioned) {
    // Ops after the region cannot use its values.
    std::erase_if(placed_[source.index].versions, [&](const Version& version) { return version.depth == left; });
  }
  scopes_.pop_back();
}

void VersionWriter::add(ValueId source, ValueId made, PlacementId home, Cause pending_cause, LocId pending_loc) {
  write_placement(made, home);
  const OpId op = source_.value(source).op;
  if (!pending_loc) pending_loc = op ? source_.op(op).loc : source_.value(source).loc;
  placed_[source.index] = {.depth = depth(),
                           .versions = {{home, made, depth()}},
                           .pending_cause = std::move(pending_cause),
                           .loc = pending_loc};
}

void VersionWriter::add_constant(const OpView& op) {
  placed_[op.result().index] = {
      .depth = depth(), .versions = {}, .pending_cause = {}, .loc = op.loc(), .constant = op.id()};
}

void VersionWriter::add_alias(ValueId source, ValueId original, PlacementId placement, const Cause& cause) {
  get(original, placement, cause);
  Placed placed = placed_[original.index];
  const auto made = std::ranges::find(placed.versions, placement, &Version::placement);
  std::rotate(placed.versions.begin(), made, made + 1);  // the home comes first
  placed_[source.index] = std::move(placed);
}

PlacementId VersionWriter::home(ValueId source, PlacementId of_constants) const {
  const Placed& placed = placed_[source.index];
  if (placed.versions.empty() || placed.constant) return of_constants;
  const PlacementId home = placed.versions[0].placement;
  const Placement* found = placements_.find(home);
  const bool is_pending = found != nullptr && !found->unreduced.empty();
  // A region takes no pending reduction from around it: the value counts as completed.
  return is_pending && placed.depth < depth() ? placements_.declared(source) : home;
}

const VersionWriter::Version* VersionWriter::find(ValueId source, PlacementId placement) const {
  const std::vector<Version>& versions = placed_[source.index].versions;
  const auto found = std::ranges::find(versions, placement, &Version::placement);
  return found == versions.end() ? nullptr : &*found;
}

// The innermost open region in which the version is to be made.
VersionWriter::Found VersionWriter::chosen(ValueId source, PlacementId need) const {
  for (size_t d = scopes_.size(); d-- > 0;) {
    const auto found = choice_.versions.find({source, need, scopes_[d].source});
    if (found != choice_.versions.end()) return {found->second, d};
  }
  check_internal(false, "the choice has no version that an op needs");
  return {};
}

ValueId VersionWriter::get(ValueId source, PlacementId need, const Cause& cause) {
  if (const Version* there = find(source, need)) return there->value;
  const auto [version, at] = chosen(source, need);
  ValueId made;
  switch (version.kind) {
    case VersionChoice::kReshard: {
      // A constant that cannot be made like this is made replicated, and cut.
      if (find(source, version.from) == nullptr) get(source, version.from, cause);
      made = reshard(source, *find(source, version.from), need, cause, at);
      break;
    }
    case VersionChoice::kAgain: {
      const OpView op(source_, source_.value(source).op);
      std::vector<ValueId> operands;
      for (const auto& [value, placement] : computed_again(op, need, placements_).operands) {
        operands.push_back(get(value, placement, cause));
      }
      made = make_again(source, operands, at);
      break;
    }
    case VersionChoice::kMade: made = make_again(source, {}, at); break;
  }
  keep(source, need, made, at);
  return made;
}

ValueId VersionWriter::reshard(ValueId source, const Version& from, PlacementId need, const Cause& cause, size_t at) {
  const Placed& placed = placed_[source.index];
  const Placement* before = placements_.find(from.placement);
  const Placement* after = placements_.find(need);
  const bool reduces = before != nullptr && before->unreduced.size() > (after == nullptr ? 0 : after->unreduced.size());
  const bool is_reduction = reduces && placed.pending_cause.kind != Cause::kNone;
  Builder builder(target(), scopes_[at].made);
  builder.set_loc(is_reduction ? placed.loc : builder_.loc(), builder_.origin());
  const ValueId value = from.value;
  const ValueId made = builder.create("sdy.reshard", {value}, (is_reduction ? placed.pending_cause : cause).attrs());
  target().value(made).origin = target().value(value).origin;
  return made;
}

// The op of the value, or its constant, once more.
ValueId VersionWriter::make_again(ValueId source, std::span<const ValueId> operands, size_t at) {
  const OpId constant = placed_[source.index].constant;
  const OpId op = constant ? constant : source_.value(source).op;
  return target().result(GraphCopy(source_, target()).op(op, scopes_[at].made, operands));
}

// The part has what the sharding does not tell.
void VersionWriter::write_placement(ValueId made, PlacementId placement) {
  target().value(made).sharding = placements_.sharding(placement);
  const Placement* found = placements_.find(placement);
  const bool is_owned = found != nullptr && found->is_owned;
  const GlobalPart part{.type = {}, .placement = is_owned ? placement : PlacementId{}, .padding = {}};
  // set_part makes the whole column, which most modules do not have.
  if (target().part(made) != part) target().set_part(made, part);
}

void VersionWriter::keep(ValueId source, PlacementId placement, ValueId made, size_t depth) {
  write_placement(made, placement);
  placed_[source.index].versions.push_back({placement, made, depth});
  if (depth > placed_[source.index].depth) scopes_[depth].versioned.push_back(source);
}

}  // namespace shardwise
