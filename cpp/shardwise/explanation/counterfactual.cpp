// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/counterfactual.h"

#include <algorithm>
#include <utility>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {
namespace {

constexpr const char* kPassedOn = "it only passes on other annotations";
constexpr const char* kComputed = "the computation depends on it";
constexpr const char* kOwnValue = "the value exists only because of it";

bool is_constraint(const Module& module, OpId op) { return op && module.op(op).def->traits.constraint; }

// Finds the values of a propagated program in another state of it. Propagation creates values, as it copies constants
// and constrains members of groups. Their numbers differ between two runs: they are found through a user.
class Counterparts {
 public:
  explicit Counterparts(const PropagatedProgram& program) : before_(program.before), propagated_(program.after) {}

  // None if there is none.
  ValueId find(ValueId value, const Module& other) {
    if (value.index < before_.value_count()) return value;
    for (const Use use : propagated_.uses(value)) {
      if (const ValueId found = find_at(use, other)) return found;
    }
    const OpId op = propagated_.value(value).op;
    return is_constraint(propagated_, op) ? find(propagated_.operands(op)[0], other) : ValueId{};
  }

 private:
  // The operand of the same user in `other`, or the result of the same region.
  ValueId find_at(const Use& use, const Module& other) {
    if (!use.op) {
      const bool is_known = use.region.index < before_.region_count();
      return is_known ? other.region(use.region).results[use.index] : ValueId{};
    }
    OpId user = use.op;
    if (user.index >= before_.op_count()) {
      if (propagated_.op(user).result_count == 0) return {};
      const ValueId result = find(propagated_.result(user), other);
      user = result ? other.value(result).op : OpId{};
    }
    return user && use.index < other.operands(user).size() ? other.operands(user)[use.index] : ValueId{};
  }

  const Module& before_;
  Module propagated_;  // a copy, for its lists of uses
};

// The part of an annotation that a manual computation computes with: axes that its ops do not see. The rest can go.
TensorSharding manual_part(const TensorSharding& annotation, const AxesAttr& manual) {
  const auto is_free = [&](const AxisRef& axis) {
    return std::ranges::none_of(
        manual.axes, [&](const RawAxisRef& name) { return annotation.mesh->find_axis(name.name) == axis.axis; });
  };
  TensorSharding left = annotation;
  for (DimSharding& dim : left.dims) {
    erase_if(dim.axes, is_free);
    dim.open = true;
  }
  erase_if(left.replicated, is_free);
  return left;
}

// Returns whether the sharding of the value changes.
bool remove_from(Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  const OpId owner = op ? op : module.region(module.value(value).region).op;
  ShardingId& sharding = module.value(value).sharding;
  const TensorSharding annotation = module.context().sharding(sharding);
  ShardingId left;
  if (const auto* manual = owner ? module.attrs(owner).find<AxesAttr>("manual_axes") : nullptr) {
    left = module.context().intern(manual_part(annotation, *manual));
  } else if (is_constraint(module, op)) {  // a constraint stays in the program, so that its value does
    left = module.context().intern(TensorSharding::open(annotation.mesh, annotation.ndim()));
  }
  return std::exchange(sharding, left) != left;
}

// The value, and its copies where its function is called in several places: an annotation in the text is of all.
std::vector<ValueId> with_copies(const Module& module, ValueId value) {
  const std::string name = shown_name(module, value);
  if (!name.starts_with('@')) return {value};
  std::vector<ValueId> copies;
  for (uint32_t v = 1; v < module.value_count(); ++v) {
    if (shown_name(module, ValueId{v}) == name) copies.push_back(ValueId{v});
  }
  return copies;
}

// Removes the member from the group, in all copies of its function.
void leave_group(Module& module, OpId group) {
  const std::vector<ValueId> members = with_copies(module, module.operands(group)[0]);
  const LocId loc = module.op(group).loc;
  Rewrite rewrite(module);
  walk(module, [&](OpId op) {
    const bool is_copy = module.op(op).def->traits.sharding_group && module.op(op).loc == loc &&
                         std::ranges::find(members, module.operands(op)[0]) != members.end();
    if (op == group || is_copy) rewrite.erase(op);
  });
}

// Removes the annotation. Returns why it cannot, or "". The annotation of a data-flow edge is that of its owner, the
// annotation of a copied constant that of the constant.
std::string remove(Module& module, const Module& propagated, Counterparts& counterparts, const Annotation& annotation) {
  ValueId value = annotation.tensor.value;
  // An op annotates its operands: a group can lose a member, a constraint its sharding; other ops need theirs.
  if (const OpId op = annotation.op) {
    if (op.index >= module.op_count()) return kPassedOn;
    if (module.op(op).def->traits.sharding_group) {
      leave_group(module, op);
      return {};
    }
    const bool computes = module.op(op).def->regions == Regions::kManual;
    if (!is_constraint(module, op)) return computes ? kComputed : kPassedOn;
    value = module.result(op);
  } else if (!value) {
    std::vector<ShardingId>& shardings = module.main().result_shardings;
    if (annotation.tensor.result >= shardings.size()) return kPassedOn;
    shardings[annotation.tensor.result] = {};
    return {};
  }
  if (value.index >= module.value_count()) {
    const OpId op = propagated.value(value).op;
    const bool is_edge = op && propagated.op(op).def->traits.data_flow_edge;
    value = is_edge ? propagated.operands(op)[0] : counterparts.find(value, module);
  }
  if (!value || value.index >= module.value_count() || !module.value(value).sharding) return kPassedOn;
  bool removed = false;
  for (const ValueId copy : with_copies(module, value)) {
    if (module.value(copy).sharding) removed = remove_from(module, copy) || removed;
  }
  return removed ? "" : kComputed;  // only a manual computation may keep all
}

Counterfactual without(const PropagatedProgram& program, Counterparts& counterparts, const Annotation& annotation,
                       ValueId value) {
  Context& context = program.after.context();
  Module edited = program.before;
  Counterfactual found{.without = annotation};
  found.why_not = remove(edited, program.after, counterparts, annotation);
  if (!found.why_not.empty()) return found;
  // The last annotation may be the only place of the mesh: then nothing has a sharding, and `propagate`, which would
  // close all dims, gives a replicated one.
  const bool has_mesh = program_mesh(edited) != nullptr;
  PassContext pass_context{.options = program.context.options};
  if (has_mesh) edited = program.pass.run(std::move(edited), pass_context);
  const auto sharding_without = [&](ValueId here, ValueId there) -> ShardingId {
    const ShardingId now = program.after.value(here).sharding;
    if (has_mesh || !now || program.pass.makes != Stage::kPropagated) return edited.value(there).sharding;
    const TensorSharding& sharding = context.sharding(now);
    return context.intern(TensorSharding::fully_replicated(sharding.mesh, sharding.ndim()));
  };
  const ValueId there = counterparts.find(value, edited);
  if (!there) {
    found.why_not = kOwnValue;
    return found;
  }
  if (const ShardingId id = sharding_without(value, there)) found.sharding = short_text(context.sharding(id));
  // Only values of the user's program: the others may be in only one of the two runs.
  found.others = std::ranges::count_if(values_of_main(program.after), [&](ValueId other) {
    return other != value && other.index < program.before.value_count() &&
           sharding_without(other, other) != program.after.value(other).sharding;
  });
  return found;
}

}  // namespace

std::vector<Counterfactual> counterfactuals(const PropagatedProgram& program, const Explanation& explanation) {
  std::vector<Annotation> annotations;
  const auto add = [&](const Annotation& annotation) {
    if (std::ranges::find(annotations, annotation) == annotations.end()) annotations.push_back(annotation);
  };
  for (const AxisOrigin& axis : explanation.axes) add(axis.origin);
  for (const LostAxis& lost : explanation.lost) {
    for (const AxisOrigin& winner : lost.winner) add(winner.origin);
    if (lost.closed_by) add(*lost.closed_by);
  }
  Counterparts counterparts(program);
  std::vector<Counterfactual> found;
  for (const Annotation& annotation : annotations) {
    Counterfactual one = without(program, counterparts, annotation, explanation.value);
    // One annotation may be found through several tensors, such as the copies of a constant.
    const auto key = [](const Counterfactual& of) {
      const Label& label = of.without.label;
      return std::tie(label.name, label.text, label.location, of.sharding, of.others, of.why_not);
    };
    if (std::ranges::find(found, key(one), key) == found.end()) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace shardwise
