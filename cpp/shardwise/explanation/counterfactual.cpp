// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/counterfactual.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/attribute.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {
namespace {

// Finds the values of one propagated program in another one. Propagation creates values, as it copies constants and
// constrains members of groups: they are found through their first user.
class Counterparts {
 public:
  Counterparts(const Module& before, const Module& propagated) : before_(before), propagated_(propagated) {
    find_first_uses(propagated.main().body);
  }

  // None if there is none.
  ValueId find(ValueId value, const Module& other) const {
    if (!is_created(value)) return value;
    const auto use = first_uses_.find(value);
    if (use == first_uses_.end()) {
      const OpId op = propagated_.value(value).op;
      const bool is_constraint = op && propagated_.op(op).def->traits.constraint;
      const ValueId constrained = is_constraint ? propagated_.operands(op)[0] : value;
      return is_created(constrained) ? ValueId{} : constrained;
    }
    auto [user, region, operand] = use->second;
    if (user && user.index >= before_.op_count()) {
      const ValueId result = find(propagated_.result(user), other);
      user = result ? other.value(result).op : OpId{};
      if (!user) return {};
    }
    const auto operands = user ? other.operands(user) : std::span<const ValueId>(other.region(region).results);
    return operand < operands.size() ? operands[operand] : ValueId{};
  }

 private:
  struct Use {
    OpId op;  // none: a result of the region
    RegionId region;
    size_t operand = 0;
  };
  bool is_created(ValueId value) const { return value.index >= before_.value_count(); }
  void add_uses(OpId op, RegionId region, std::span<const ValueId> operands) {
    for (size_t k = 0; k < operands.size(); ++k) {
      if (is_created(operands[k])) first_uses_.try_emplace(operands[k], Use{op, region, k});
    }
  }
  void find_first_uses(RegionId region) {
    for (const OpId op : propagated_.region(region).ops) {
      add_uses(op, region, propagated_.operands(op));
      for (const RegionId inner : propagated_.regions(op)) find_first_uses(inner);
    }
    add_uses({}, region, propagated_.region(region).results);
  }

  const Module& before_;
  const Module& propagated_;
  std::unordered_map<ValueId, Use> first_uses_;  // of created values
};

// The part of an annotation that a manual computation computes with: axes that its ops do not see. The rest can go.
TensorSharding manual_part(const TensorSharding& annotation, const AxesAttr& manual) {
  const auto is_free = [&](const AxisRef& axis) {
    return std::ranges::none_of(
        manual.axes, [&](const RawAxisRef& name) { return annotation.mesh->find_axis(name.name) == axis.axis; });
  };
  TensorSharding left = annotation;
  for (DimSharding& dim : left.dims) {
    std::erase_if(dim.axes, is_free);
    dim.open = true;
  }
  std::erase_if(left.replicated, is_free);
  return left;
}

bool remove_from(Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  const OpId owner = op ? op : module.region(module.value(value).region).op;
  ShardingId& sharding = module.value(value).sharding;
  const TensorSharding annotation = module.context().sharding(sharding);
  ShardingId left;
  if (const auto* manual = owner ? module.attrs(owner).find<AxesAttr>("manual_axes") : nullptr) {
    left = module.context().intern(manual_part(annotation, *manual));
  } else if (op && module.op(op).def->traits.constraint) {
    left = module.context().intern(TensorSharding::open(annotation.mesh, annotation.ndim()));
  }
  return std::exchange(sharding, left) != left;
}

// The value, and its copies where its function is called in several places: an annotation in the text is of all.
std::vector<ValueId> with_copies(const Module& module, ValueId value) {
  std::vector<ValueId> copies{value};
  if (!shown_name(module, value).starts_with('@')) return copies;
  for (uint32_t v = 1; v < module.value_count(); ++v) {
    const Value &known = module.value(value), &other = module.value(ValueId{v});
    const bool is_copy = v != value.index && loc_of(module, ValueId{v}) == loc_of(module, value) &&
                         other.index == known.index && bool{other.op} == bool{known.op};
    if (is_copy) copies.push_back(ValueId{v});
  }
  return copies;
}

// Removes the member from the group, in all copies of its function.
void leave_group(Module& module, OpId group) {
  const std::vector<ValueId> members = with_copies(module, module.operands(group)[0]);
  const LocId loc = module.op(group).loc;
  const auto leaves = [&](OpId op) {
    return op == group || (module.op(op).def->traits.sharding_group && module.op(op).loc == loc &&
                           std::ranges::find(members, module.operands(op)[0]) != members.end());
  };
  Rewrite rewrite(module);
  walk(module, [&](OpId op) {
    if (leaves(op)) rewrite.erase(op);
  });
}

// Removes the annotation. Returns why it cannot, or "". The annotation of a data-flow edge is that of its owner, the
// annotation of a copied constant that of the constant.
std::string remove(Module& module, const Module& propagated, const Counterparts& counterparts,
                   const Annotation& annotation) {
  const std::string passed_on = "it hands on what others say", computed = "it belongs to what it computes";
  if (const OpId op = annotation.op) {
    if (op.index >= module.op_count()) return passed_on;
    const Traits& traits = module.op(op).def->traits;
    if (traits.sharding_group) {
      leave_group(module, op);
      return {};
    }
    if (!traits.constraint) return module.attrs(op).find<AxesAttr>("manual_axes") != nullptr ? computed : passed_on;
  }
  ValueId value = annotation.op ? module.result(annotation.op) : annotation.tensor.value;
  if (!value) {
    std::vector<ShardingId>& shardings = module.main().result_shardings;
    if (annotation.tensor.result >= shardings.size()) return passed_on;
    shardings[annotation.tensor.result] = {};
    return {};
  }
  if (value.index >= module.value_count()) {
    const OpId op = propagated.value(value).op;
    const bool is_edge = op && propagated.op(op).def->traits.data_flow_edge;
    value = is_edge ? propagated.operands(op)[0] : counterparts.find(value, module);
  }
  if (!value || value.index >= module.value_count() || !module.value(value).sharding) return passed_on;
  bool removed = false;
  for (const ValueId copy : with_copies(module, value)) {
    if (module.value(copy).sharding) removed = remove_from(module, copy) || removed;
  }
  return removed ? std::string() : computed;  // only a manual computation may keep all
}

Counterfactual without(const Module& module, const Module& propagated, const Counterparts& counterparts,
                       const Pass& pass, const CompileOptions& options, const Annotation& annotation, ValueId value) {
  Module edited = module;
  PassContext context{.options = options};
  Counterfactual found{.without = annotation};
  found.why_not = remove(edited, propagated, counterparts, annotation);
  if (!found.why_not.empty()) return found;
  // The last annotation may be the only place of the mesh: then `propagate` would split nothing, and its levels would
  // leave values without shardings.
  const bool has_mesh = program_mesh(edited) != nullptr;
  if (has_mesh) edited = pass.run(std::move(edited), context);
  const auto changed = [&](ValueId here, ValueId there) {
    const ShardingId now = propagated.value(here).sharding, then = edited.value(there).sharding;
    if (has_mesh || !now || pass.run != kPropagate.run) return std::pair(then != now, then);
    const TensorSharding& sharding = module.context().sharding(now);
    const TensorSharding unsharded = TensorSharding::fully_replicated(sharding.mesh, sharding.ndim());
    const ShardingId replicated = module.context().intern(unsharded);
    return std::pair(replicated != now, replicated);
  };
  const ValueId there = counterparts.find(value, edited);
  if (!there) {
    found.why_not = "the value is there because of it";
    return found;
  }
  if (const ShardingId id = changed(value, there).second) found.sharding = short_text(module.context().sharding(id));
  found.others = std::ranges::count_if(values_of_main(propagated), [&](ValueId other) {
    return other != value && other.index < module.value_count() && changed(other, other).first;
  });
  return found;
}

}  // namespace

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
  const auto name_of = [&](const Annotation& annotation) {
    if (annotation.op) return shown_name(propagated, annotation.op);
    return annotation.tensor.value ? shown_name(propagated, annotation.tensor.value) : std::string();
  };
  const Counterparts counterparts(module, propagated);
  std::vector<Counterfactual> found;
  for (const Annotation& annotation : annotations) {
    Counterfactual one = without(module, propagated, counterparts, pass, options, annotation, explanation.value);
    // One annotation may be found through several tensors, such as the copies of a constant.
    const bool is_known = std::ranges::any_of(found, [&](const Counterfactual& known) {
      return name_of(known.without) == name_of(annotation) && known.without.text == annotation.text &&
             known.without.location == annotation.location && known.sharding == one.sharding &&
             known.others == one.others && known.why_not == one.why_not;
    });
    if (!is_known) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace shardwise
