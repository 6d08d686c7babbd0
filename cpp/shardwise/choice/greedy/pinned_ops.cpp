// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/pinned_ops.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/choice/candidates/op_candidates.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {

std::optional<OpChoice> PinnedOps::find(const OpView& op, const ShardingRule& rule, const ChosenOp& entry,
                                        std::span<const Candidate> candidates, const std::vector<PlacementId>& homes,
                                        const Pending& pending) {
  const ChosenOp pinned = as_printed(entry);
  const auto find_in = [&](std::span<const Candidate> among) -> std::optional<OpChoice> {
    const auto found =
        std::ranges::find_if(among, [&](const Candidate& one) { return described(op, one.choice) == pinned; });
    return found == among.end() ? std::nullopt : std::optional(found->choice);
  };
  if (auto found = find_in(candidates)) return found;
  const auto placed = placements_of(op, pinned);
  if (!placed) return std::nullopt;
  std::vector<TensorPlacements> tensors;
  for (size_t t = 0; t < placed->size(); ++t) {
    const bool is_operand = t < op.operand_count();
    const ValueId value = is_operand ? op.operand(t) : op.result(t - op.operand_count());
    // Where an axis is as large as a dim, the pinned placements lead to others than propagation's.
    tensors.push_back({(*placed)[t], placements_.declared(value)});
    if (is_operand) tensors.back().push_back(homes[t]);
  }
  return find_in(op_candidates(placements_, op, rule, tensors, pending).candidates);
}

void PinnedOps::fail(const OpView& op, const ChosenOp& entry, const OpChoice& best) const {
  const ChosenOp pinned = as_printed(entry);
  fail_as_impossible(
      module_, op.id(),
      {.kind = "ops", .at = pinned.at, .pinned = choice_text(pinned), .possible = choice_text(described(op, best))});
}

// The sharding that choices write as `text`; nothing if it is of no mesh of this program.
std::optional<TensorSharding> PinnedOps::sharding_of_text(std::string_view text) const {
  MeshPtr mesh = placements_.mesh();
  for (const MeshPtr& other : placements_.other_meshes()) {
    if (!text.starts_with(other->reference() + "[")) continue;
    mesh = other;
    text.remove_prefix(other->reference().size());
    break;
  }
  if (mesh == nullptr) return std::nullopt;
  try {
    TensorSharding sharding = parse_short_sharding(text, mesh);
    sharding.mesh = mesh;
    return sharding;
  } catch (const Error&) {
    return std::nullopt;  // choices may be of any program, or written by hand
  }
}

// Its shardings as they are printed: spaces in an entry that is written by hand do not count.
ChosenOp PinnedOps::as_printed(ChosenOp entry) const {
  for (std::vector<std::string>* texts : {&entry.operands, &entry.results}) {
    for (std::string& text : *texts) {
      const auto sharding = sharding_of_text(text);
      if (sharding) text = text.substr(0, text.find('[')) + short_text(*sharding);
    }
  }
  return entry;
}

// With its reductions completed.
std::optional<PlacementId> PinnedOps::placement_of(const std::string& text, TypeId type) const {
  if (text.empty()) return PlacementId{};
  const auto sharding = sharding_of_text(text);
  if (!sharding || sharding->dims.size() != module_.context().type(type).shape.size()) return std::nullopt;
  std::vector<AxisList> dims;
  for (const DimSharding& dim : sharding->dims) dims.push_back(dim.axes);
  return placements_.of(type, std::move(dims), {}, Reducer::kNone, sharding->mesh);
}

// The placements of operands and results. Returns nothing if a text names no placement of this program.
std::optional<std::vector<PlacementId>> PinnedOps::placements_of(const OpView& op, const ChosenOp& pinned) const {
  if (pinned.operands.size() != op.operand_count() || pinned.results.size() != op.result_count()) return std::nullopt;
  std::vector<PlacementId> ids;
  for (size_t t = 0; t < op.operand_count() + op.result_count(); ++t) {
    const bool is_operand = t < op.operand_count();
    const size_t i = is_operand ? t : t - op.operand_count();
    const auto id = placement_of(is_operand ? pinned.operands[i] : pinned.results[i],
                                 module_.value(is_operand ? op.operand(i) : op.result(i)).type);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace shardwise
