// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/counterfactual.h"

#include <algorithm>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/passes/program_shardings.h"
#include "shardwise/passes/propagate.h"
#include "shardwise/passes/value_names.h"

namespace shardwise {
namespace {

// Whether there was such an annotation to take away.
bool remove(Module& module, const Annotation& annotation) {
  if (annotation.op) {
    if (annotation.op.index >= module.op_count() || !module.op(annotation.op).def->traits.constraint) return false;
  }
  const ValueId value = annotation.op ? module.result(annotation.op) : annotation.holder.value;
  if (!value) {
    std::vector<ShardingId>& shardings = module.main().result_shardings;
    if (annotation.holder.result >= shardings.size()) return false;
    shardings[annotation.holder.result] = {};
    return true;
  }
  if (value.index >= module.value_count() || !module.value(value).sharding) return false;
  const OpId op = module.value(value).op;
  const OpId owner = op ? op : module.region(module.value(value).region).op;
  if (owner && module.op(owner).def->flow != nullptr) return false;
  ShardingId& sharding = module.value(value).sharding;
  const TensorSharding said = module.context().sharding(sharding);
  const bool is_constraint = op && module.op(op).def->traits.constraint;
  sharding = is_constraint ? module.context().intern(TensorSharding::open(said.mesh, said.ndim())) : ShardingId{};
  return true;
}

}  // namespace

std::optional<Counterfactual> without(const Module& module, const Module& propagated, const CompileOptions& options,
                                      const Annotation& annotation, ValueId value) {
  Program program{.module = module, .options = options};
  if (!remove(program.module, annotation)) return std::nullopt;
  Counterfactual found{.without = annotation, .sharding = {}, .others = 0};
  Context& context = program.module.context();
  // The last annotation may be all that the mesh is known from: then nothing is split.
  const bool has_mesh = program_mesh(program.module) != nullptr;
  if (has_mesh) propagate(program);
  const auto sharding = [&](ValueId of) {
    const ShardingId known = propagated.value(of).sharding;
    if (has_mesh || !known) return program.module.value(of).sharding;
    const MeshPtr& mesh = context.sharding(known).mesh;
    return context.intern(TensorSharding::fully_replicated(mesh, context.sharding(known).ndim()));
  };
  if (const ShardingId id = sharding(value)) found.sharding = short_text(context.sharding(id));
  for (const ValueId other : values_of_main(propagated)) {
    const bool known = other.index < program.module.value_count();
    if (!known || other == value) continue;
    if (sharding(other) != propagated.value(other).sharding) ++found.others;
  }
  return found;
}

std::vector<Counterfactual> counterfactuals(const Module& module, const Module& propagated,
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
    if (auto one = without(module, propagated, options, annotation, explanation.value))
      found.push_back(std::move(*one));
  }
  return found;
}

}  // namespace shardwise
