// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/counterfactual.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/attribute.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {
namespace {

// Operand `operand` of an op, or what a region returns there.
struct Use {
  OpId op;
  size_t operand = 0;
  RegionId region = {};
};

// By value that propagation made: its first use.
void find_first_uses(const Module& module, RegionId region, uint32_t first_made,
                     std::unordered_map<ValueId, Use>& uses) {
  for (const OpId op : module.region(region).ops) {
    const auto operands = module.operands(op);
    for (size_t k = 0; k < operands.size(); ++k) {
      if (operands[k].index >= first_made) uses.try_emplace(operands[k], Use{op, k, {}});
    }
    for (const RegionId inner : module.regions(op)) find_first_uses(module, inner, first_made, uses);
  }
  const std::vector<ValueId>& results = module.region(region).results;
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].index >= first_made) uses.try_emplace(results[k], Use{{}, k, region});
  }
}

// What stands for a value of one propagated program in another one: itself, where the program had it before; for a
// value that propagation made, as it copies constants and puts constraints on members of a group, what its first user
// uses there instead, or what a constraint without users is on. Nothing, where there is no such value.
ValueId counterpart(const Module& before, const Module& propagated, const Module& other, ValueId value) {
  const auto is_made = [&](ValueId known) { return known.index >= before.value_count(); };
  if (!is_made(value)) return value;
  std::unordered_map<ValueId, Use> uses;
  find_first_uses(propagated, propagated.main().body, static_cast<uint32_t>(before.value_count()), uses);
  const OpId maker = propagated.value(value).op;
  if (!uses.contains(value) && maker && propagated.op(maker).def->traits.constraint) {
    const ValueId constrained = propagated.operands(maker)[0];
    return is_made(constrained) ? ValueId{} : constrained;
  }
  std::vector<size_t> way;  // of operands, from an op or region that both programs have to the value
  Use use;
  do {
    const auto found = uses.find(value);
    if (found == uses.end()) return {};
    use = found->second;
    way.push_back(use.operand);
    if (!use.op || use.op.index < before.op_count()) break;
    value = propagated.result(use.op);
  } while (is_made(value));
  OpId user = use.op;
  for (;; way.pop_back()) {
    const std::span<const ValueId> operands =
        user ? other.operands(user) : std::span<const ValueId>(other.region(use.region).results);
    if (way.back() >= operands.size()) return {};
    value = operands[way.back()];
    if (way.size() == 1) return value;
    user = other.value(value).op;
    if (!user) return {};
  }
}

// What belongs to what a manual computation computes: the axes that its ops do not see. The rest can be left open.
TensorSharding manual_part(const TensorSharding& said, const AxesAttr& manual) {
  const auto is_seen = [&](const AxisRef& axis) {
    return std::ranges::none_of(manual.axes,
                                [&](const RawAxisRef& name) { return said.mesh->find_axis(name.name) == axis.axis; });
  };
  TensorSharding left = said;
  for (DimSharding& dim : left.dims) {
    std::erase_if(dim.axes, is_seen);
    dim.open = true;
  }
  std::erase_if(left.replicated, is_seen);
  return left;
}

// Of one value.
bool remove_from(Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  const OpId owner = op ? op : module.region(module.value(value).region).op;
  ShardingId& sharding = module.value(value).sharding;
  const TensorSharding said = module.context().sharding(sharding);
  if (const auto* manual = owner ? module.attrs(owner).find<AxesAttr>("manual_axes") : nullptr) {
    const ShardingId left = module.context().intern(manual_part(said, *manual));
    return std::exchange(sharding, left) != left;
  }
  const bool is_constraint = op && module.op(op).def->traits.constraint;
  sharding = is_constraint ? module.context().intern(TensorSharding::open(said.mesh, said.ndim())) : ShardingId{};
  return true;
}

// A function that is called in several places has a copy in each: what its text says of a value it says of all.
std::vector<ValueId> copies_of(const Module& module, ValueId value) {
  std::vector<ValueId> copies;
  if (!shown_name(module, value).starts_with('@')) return copies;
  for (uint32_t v = 1; v < module.value_count(); ++v) {
    const Value &known = module.value(value), &other = module.value(ValueId{v});
    const bool is_copy = v != value.index && loc_of(module, ValueId{v}) == loc_of(module, value) &&
                         other.index == known.index && bool{other.op} == bool{known.op};
    if (is_copy) copies.push_back(ValueId{v});
  }
  return copies;
}

// The member leaves the group, in all copies of its function.
void leave_group(Module& module, OpId group) {
  const ValueId member = module.operands(group)[0];
  const LocId loc = module.op(group).loc;
  std::vector<ValueId> members = copies_of(module, member);
  members.push_back(member);
  const auto leaves = [&](OpId op) {
    return op == group || (module.op(op).def->traits.sharding_group && module.op(op).loc == loc &&
                           std::ranges::find(members, module.operands(op)[0]) != members.end());
  };
  Rewrite rewrite(module);
  walk(module, [&](OpId op) {
    if (leaves(op)) rewrite.erase(op);
  });
}

// Takes the annotation away; where it cannot go, why. What is said of a value behind a data-flow edge that propagation
// made is what the user said of the owner; of a copied constant, what was said of the constant.
std::string remove(Module& module, const Module& propagated, const Annotation& annotation) {
  const std::string handed_on = "it hands on what others say", computed = "it belongs to what it computes";
  if (annotation.op) {
    if (annotation.op.index >= module.op_count()) return handed_on;
    const Traits& traits = module.op(annotation.op).def->traits;
    if (traits.sharding_group) {
      leave_group(module, annotation.op);
      return {};
    }
    if (!traits.constraint) {
      return module.attrs(annotation.op).find<AxesAttr>("manual_axes") != nullptr ? computed : handed_on;
    }
  }
  ValueId value = annotation.op ? module.result(annotation.op) : annotation.holder.value;
  if (!value) {
    std::vector<ShardingId>& shardings = module.main().result_shardings;
    if (annotation.holder.result >= shardings.size()) return handed_on;
    shardings[annotation.holder.result] = {};
    return {};
  }
  if (value.index >= module.value_count()) {
    const OpId made = propagated.value(value).op;
    const bool is_edge = made && propagated.op(made).def->traits.data_flow_edge;
    value = is_edge ? propagated.operands(made)[0] : counterpart(module, propagated, module, value);
  }
  if (!value || value.index >= module.value_count() || !module.value(value).sharding) return handed_on;
  bool removed = remove_from(module, value);
  for (const ValueId copy : copies_of(module, value)) {
    if (module.value(copy).sharding) removed = remove_from(module, copy) || removed;
  }
  return removed ? std::string() : computed;  // only of a manual computation something may be left
}

}  // namespace

Counterfactual without(const Module& module, const Module& propagated, const Pass& pass, const CompileOptions& options,
                       const Annotation& annotation, ValueId value) {
  Module changed = module;
  PassContext context{.options = options};
  Counterfactual found{.without = annotation, .sharding = {}, .others = 0, .why_not = {}};
  found.why_not = remove(changed, propagated, annotation);
  if (!found.why_not.empty()) return found;
  const auto first_made = static_cast<uint32_t>(module.value_count());
  // The last annotation may be all that the mesh is known from: then nothing is split. A level of propagation gives
  // such values no sharding.
  const bool has_mesh = program_mesh(changed) != nullptr;
  const bool gives_all = pass.run == kPropagate.run;
  if (has_mesh) changed = pass.run(std::move(changed), context);
  Context& shardings = module.context();
  const auto sharding = [&](ValueId of, ValueId there) {
    const ShardingId known = propagated.value(of).sharding;
    if (has_mesh || !known || !gives_all) return changed.value(there).sharding;
    const MeshPtr& mesh = shardings.sharding(known).mesh;
    return shardings.intern(TensorSharding::fully_replicated(mesh, shardings.sharding(known).ndim()));
  };
  const ValueId there = counterpart(module, propagated, changed, value);
  if (!there) {
    found.why_not = "the value is there because of it";
    return found;
  }
  if (const ShardingId id = sharding(value, there)) found.sharding = short_text(shardings.sharding(id));
  for (const ValueId other : values_of_main(propagated)) {
    if (other.index >= first_made || other == value) continue;
    if (sharding(other, other) != propagated.value(other).sharding) ++found.others;
  }
  return found;
}

std::vector<Counterfactual> counterfactuals(const Module& module, const Module& propagated, const Pass& pass,
                                            const CompileOptions& options, const Explanation& explanation) {
  std::vector<Annotation> annotations;
  const auto add = [&](const Annotation& annotation) {
    if (std::ranges::find(annotations, annotation) == annotations.end()) annotations.push_back(annotation);
  };
  for (const AxisOrigin& axis : explanation.axes) add(axis.origin);
  for (const LostAxis& lost : explanation.lost) {
    for (const AxisOrigin& winner : lost.winner) add(winner.origin);
    if (lost.closed_by) add(*lost.closed_by);
  }
  std::vector<Counterfactual> found;
  for (const Annotation& annotation : annotations) {
    found.push_back(without(module, propagated, pass, options, annotation, explanation.value));
  }
  return found;
}

}  // namespace shardwise
