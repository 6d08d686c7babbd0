// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/op_chooser.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "shardwise/base/error.h"
#include "shardwise/choice/candidates/op_candidates.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
// What the walk compares candidates by, most important first. A later reduction may be combined with others.
struct OpChooser::Rank {
  double bytes = 0;
  bool reduces_early = false;
  double work = 0;
  int reshards = 0;
  friend bool operator<(const Rank& a, const Rank& b) {
    return std::tie(a.bytes, a.reduces_early, a.work, a.reshards) <
           std::tie(b.bytes, b.reduces_early, b.work, b.reshards);
  }
};

Pending OpChooser::add_candidates(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings) {
  Pending pending = pending_at_home(module_, versions_, placements_, op, rule);
  std::vector<PlacementId> declared, current;
  for (const ValueId operand : op.operands()) {
    declared.push_back(placements_.declared(operand));
    current.push_back(versions_.home(operand, declared.back()));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    declared.push_back(wanted_placement(module_, placements_, *function_, op, i));
    current.push_back(declared.back());
  }
  std::vector<MeshPtr> meshes{nullptr};
  if (placements_.has_several_meshes()) meshes = meshes_of(declared, current);
  for (const MeshPtr& mesh : meshes) {
    shardings.set_mesh(mesh);
    // The operands where propagation has them, their pending reductions completed.
    add_projected(declared, mesh, rule, shardings);
    // Computing where the operands currently are may save a reshard.
    if (current != declared) add_projected(current, mesh, rule, shardings);
    // A reduction stays pending only on the mesh of its axes.
    if (pending.axes.empty() || (mesh != nullptr && mesh != pending.mesh)) continue;
    shardings.add(projection_, tensors_, pending.axes, pending.reducer);
  }
  return pending;
}

void OpChooser::add_projected(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule,
                              ComputeShardings& shardings) {
  tensors_.clear();
  for (const PlacementId id : tensors) {
    const Placement* placement = placements_.find(id);
    const bool is_elsewhere = mesh != nullptr && placement != nullptr && placement->mesh != mesh;
    tensors_.push_back(is_elsewhere ? nullptr : placement);
  }
  projection_.project(rule, tensors_);
  shardings.add(projection_, tensors_, {}, Reducer::kNone);
}

// The meshes on which the op may be computed: those of its operands and results, first that of the program.
std::vector<MeshPtr> OpChooser::meshes_of(std::span<const PlacementId> declared,
                                          std::span<const PlacementId> current) const {
  std::vector<MeshPtr> meshes{placements_.mesh()};
  const auto add = [&](PlacementId id) {
    const Placement* placement = placements_.find(id);
    if (placement == nullptr || placement->is_fully_replicated()) return;
    if (std::ranges::find(meshes, placement->mesh) == meshes.end()) meshes.push_back(placement->mesh);
  };
  for (size_t t = 0; t < declared.size(); ++t) {
    add(declared[t]);
    add(current[t]);
  }
  return meshes;
}

OpChoice OpChooser::choose(const OpView& op, const ShardingRule& rule) {
  if (const ChosenOp* pinned = choice_.pinned(op.id())) return choose_pinned(op, rule, *pinned);
  ComputeShardings shardings(op, rule);
  const Pending pending = add_candidates(op, rule, shardings);
  return cheapest(op, rule, shardings, pending).choice;
}

Candidate OpChooser::cheapest(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings,
                              const Pending& pending) {
  const auto placed = [&](size_t i) { return candidate_of(placements_, op, rule, shardings.candidates()[i], pending); };
  Candidate best = placed(0);
  const size_t count = shardings.candidates().size();
  Rank best_rank = count > 1 ? rank_of(op, rule, best, pending) : Rank{};
  for (size_t i = 1; i < count; ++i) {
    Candidate candidate = placed(i);
    const Rank candidate_rank = rank_of(op, rule, candidate, pending);
    // The first of equal candidates stays, so that the choice does not depend on more than their order.
    if (!(candidate_rank < best_rank)) continue;
    best = std::move(candidate);
    best_rank = candidate_rank;
  }
  return best;
}

OpChoice OpChooser::choose_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& entry) {
  const ChosenOp pinned = as_printed(entry);
  ComputeShardings shardings(op, rule);
  const Pending pending = add_candidates(op, rule, shardings);
  size_t tried = 0;
  const auto find = [&]() -> std::optional<OpChoice> {
    for (; tried < shardings.candidates().size(); ++tried) {
      Candidate candidate = candidate_of(placements_, op, rule, shardings.candidates()[tried], pending);
      if (described(op, candidate.choice) == pinned) return std::move(candidate.choice);
    }
    return std::nullopt;
  };
  std::optional<OpChoice> found = find();
  const std::optional<std::vector<PlacementId>> placed = placements_of(op, pinned);
  if (!found && placed) {
    add_pinned(*placed, rule, pending, shardings);
    found = find();
  }
  if (!found && placed) found = find_in_all(op, rule, pinned, *placed, pending);
  if (found) return *std::move(found);
  fail_as_impossible(module_, op.id(),
                     {.kind = "ops",
                      .at = pinned.at,
                      .pinned = choice_text(pinned),
                      .possible = choice_text(described(op, cheapest(op, rule, shardings, pending).choice))});
}

// Among all candidates that the tensors suggest, where they are pinned too: the walk itself looks at fewer.
std::optional<OpChoice> OpChooser::find_in_all(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned,
                                               const std::vector<PlacementId>& placed, const Pending& pending) {
  std::vector<TensorPlacements> tensors;
  for (size_t t = 0; t < placed.size(); ++t) {
    const bool is_operand = t < op.operand_count();
    const PlacementId declared = placements_.declared(is_operand ? op.operand(t) : op.result(t - op.operand_count()));
    tensors.push_back({declared, placed[t]});
    if (is_operand) tensors.back().push_back(versions_.home(op.operand(t), declared));
  }
  for (Candidate& candidate : op_candidates(placements_, op, rule, tensors, pending).candidates) {
    if (described(op, candidate.choice) == pinned) return std::move(candidate.choice);
  }
  return std::nullopt;
}

// The sharding that choices write as `text`; nothing if it is of no mesh of this program.
std::optional<TensorSharding> OpChooser::sharding_of_text(std::string_view text) const {
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
ChosenOp OpChooser::as_printed(ChosenOp entry) const {
  for (std::vector<std::string>* texts : {&entry.operands, &entry.results}) {
    for (std::string& text : *texts) {
      const auto sharding = sharding_of_text(text);
      if (sharding) text = text.substr(0, text.find('[')) + short_text(*sharding);
    }
  }
  return entry;
}

// With its reductions completed.
std::optional<PlacementId> OpChooser::placement_of(const std::string& text, TypeId type) const {
  if (text.empty()) return PlacementId{};
  const auto sharding = sharding_of_text(text);
  if (!sharding || sharding->dims.size() != module_.context().type(type).shape.size()) return std::nullopt;
  std::vector<AxisList> dims;
  for (const DimSharding& dim : sharding->dims) dims.push_back(dim.axes);
  return placements_.of(type, std::move(dims), {}, Reducer::kNone, sharding->mesh);
}

// Of operands and results; nothing if one is no placement of this program.
std::optional<std::vector<PlacementId>> OpChooser::placements_of(const OpView& op, const ChosenOp& pinned) const {
  if (pinned.operands.size() != op.operand_count() || pinned.results.size() != op.result_count()) return std::nullopt;
  std::vector<PlacementId> ids;
  for (size_t t = 0; t < op.operand_count() + op.result_count(); ++t) {
    const bool is_operand = t < op.operand_count();
    const size_t i = is_operand ? t : t - op.operand_count();
    const auto id = placement_of(is_operand ? pinned.operands[i] : pinned.results[i],
                                 type_of(is_operand ? op.operand(i) : op.result(i)));
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

// Adds the candidates that the pinned placements lead to, as if propagation had given them. Where an axis is as large
// as a dim, propagation leads to others than on the mesh that the choices are of.
void OpChooser::add_pinned(const std::vector<PlacementId>& placed, const ShardingRule& rule, const Pending& pending,
                           ComputeShardings& shardings) {
  const MeshPtr mesh = placements_.has_several_meshes() ? working_mesh(module_.context(), placed) : nullptr;
  shardings.set_mesh(mesh);
  add_projected(placed, mesh, rule, shardings);
  if (!pending.axes.empty()) shardings.add(projection_, tensors_, pending.axes, pending.reducer);
}

ChosenOp OpChooser::described(const OpView& op, const OpChoice& choice) const {
  const auto texts_of = [&](const std::vector<PlacementId>& placements) {
    std::vector<std::string> texts;
    for (const PlacementId id : placements) texts.push_back(placements_.text(id));
    return texts;
  };
  return {.at = choice_.key(op.id()).text(),
          .op = std::string(op.name()),
          .method = choice.method == nullptr ? "" : std::string(choice.method->name),
          .operands = texts_of(choice.operands),
          .results = texts_of(choice.results)};
}

// ---- ranks  --------------------------------------------------------------------------------------------------------

namespace {

// The elements of a device's part.
double written(const Placement* placement) {
  return placement == nullptr ? 0 : static_cast<double>(element_count(placement->local_shape()));
}

}  // namespace

OpChooser::Rank OpChooser::rank_of(const OpView& op, const ShardingRule& rule, const Candidate& candidate,
                                   const Pending& pending) {
  const bool reduces_early = !pending.axes.empty() && !candidate.passes;
  Rank rank{.bytes = 0, .reduces_early = reduces_early != pending.only_if_less, .work = candidate.work, .reshards = 0};
  add_operands(op, candidate, pending, rank);
  add_results(op, candidate.choice, rank);
  if (candidate.choice.has_own_partition()) add_method(op, rule, candidate.choice, rank);
  return rank;
}

void OpChooser::add_operands(const OpView& op, const Candidate& candidate, const Pending& pending, Rank& rank) {
  const bool reduces_early = !pending.axes.empty() && !candidate.passes;
  std::vector<PlacementId> needs;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const PlacementId need = candidate.choice.operands[i];
    needs.push_back(need);
    if (is_brought_before(op, needs)) continue;
    double bytes = versions_.bytes(op.operand(i), need);
    if (reduces_early && pending.operands[i]) {
      const double count = sharers(module_, op.operand(i), op, pending.reducer);
      // No sharers: another user pays for the reduction in any case.
      bytes = count == 0 ? 0 : bytes / count;
    }
    rank.bytes += bytes;
    rank.reshards += need == versions_.home(op.operand(i), need) ? 0 : 1;
  }
}

// Moving each result to its propagated placement; its users are chosen later.
void OpChooser::add_results(const OpView& op, const OpChoice& choice, Rank& rank) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    const PlacementId made = choice.results[i], wanted = wanted_placement(module_, placements_, *function_, op, i);
    if (module_.uses(op.result(i)).empty() || made == wanted) continue;
    // A wide sum is reduced at once, in each iteration of a loop.
    const TypeId type = type_made(placements_, op, i, made);
    const double runs = type == type_of(op.result(i)) ? deferred_.share(op.result(i)) : 1;
    rank.bytes += runs * planner_.bytes(type, made, wanted);
    ++rank.reshards;
    // A reshard writes the elements again.
    if (op.def().traits.movement) rank.work += written(placements_.find(wanted));
  }
}

void OpChooser::add_method(const OpView& op, const ShardingRule& rule, const OpChoice& choice, Rank& rank) {
  if (choice.method->placements == nullptr) ++rank.reshards;  // the method is one
  std::vector<PlacementId> tensors = choice.operands;
  tensors.insert(tensors.end(), choice.results.begin(), choice.results.end());
  std::vector<bool> is_used;
  for (size_t i = 0; i < op.result_count(); ++i) is_used.push_back(!module_.uses(op.result(i)).empty());
  const MethodCost cost = dry_runs_.cost(op, rule, *choice.method, tensors, is_used);
  // The time of a chain grows with the devices.
  const bool is_too_long = cost.is_chain && objective_ == Objective::kTime;
  rank.bytes += is_too_long ? std::numeric_limits<double>::infinity() : cost.bytes;
}

}  // namespace shardwise
