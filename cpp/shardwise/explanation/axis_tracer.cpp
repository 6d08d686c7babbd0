// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_tracer.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/transforms/call_regions.h"

namespace shardwise {

// A path may be as long as the program: this must not recurse.
const std::vector<AxisOrigin>& AxisTracer::origins(const TensorRef& tensor, size_t dim, const AxisRef& axis,
                                                   size_t time) {
  const HeldAxis start = held(tensor, dim, axis, time);
  std::map<HeldAxis, Predecessors> found;
  std::vector<HeldAxis> stack{start};
  while (!stack.empty()) {
    const HeldAxis at = stack.back();
    stack.pop_back();
    if (origins_.contains(at) || found.contains(at)) continue;
    const Predecessors& before = found.emplace(at, predecessors(at)).first->second;
    for (const auto& [earlier, step] : before.list) stack.push_back(earlier);
  }
  // In the order of HeldAxis: the predecessors of an axis come first, so they are in origins_ when it needs them.
  for (const auto& [at, before] : found) origins_.emplace(at, merged_origins(at, before));
  return origins_.at(start);
}

// Digits that came along the same path from the same annotation are one axis.
std::vector<AxisOrigin> AxisTracer::merged_origins(const HeldAxis& at, const Predecessors& before) {
  std::vector<AxisOrigin> found;
  if (before.annotation) found.push_back({.axis = at.axis, .origin = *before.annotation});
  for (const auto& [earlier, step] : before.list) {
    for (AxisOrigin origin : origins_.at(earlier)) {
      if (step) origin.path = extended(origin.path, *step);
      AxisOrigin* last = found.empty() ? nullptr : &found.back();
      if (last != nullptr && can_merge(last->axis, origin.axis) && last->origin == origin.origin &&
          last->path == origin.path) {
        last->axis.size *= origin.axis.size;
      } else {
        found.push_back(std::move(origin));
      }
    }
  }
  // A data-flow edge that is gone has no history of its own.
  const ShardingId known = history_.at(at.tensor, history_.now());
  const Mesh& mesh = *module_.context().sharding(known ? known : module_.value(at.tensor.value).sharding).mesh;
  for (AxisOrigin& one : found) {
    one.dim = static_cast<int64_t>(at.dim);
    one.axis_text = axis_text(mesh, one.axis);
  }
  return found;
}

PathId AxisTracer::extended(PathId path, const PathStep& step) {
  const auto next = static_cast<PathId>(paths_.size());
  // Paths share their beginnings: a list per value would take memory quadratic in the depth of the program.
  const auto [known, is_new] = known_paths_.try_emplace({path, step.op, step.from, step.to, step.factor}, next);
  if (is_new) paths_.emplace_back(step).before = path;
  return known->second;
}

Label AxisTracer::label_of(OpId op) const {
  std::string text = name_with_calls(module_, history_.provenance().called, op);
  // A constraint that a pass has written says so.
  if (const std::string* by = module_.attrs(op).find<std::string>(kCauseAttr); by != nullptr) text += str(" of ", *by);
  return {.text = std::move(text),
          .location = module_.context().location_text(module_.op(op).loc),
          .name = shown_name(module_, op)};
}

Annotation AxisTracer::annotation_of(const TensorRef& tensor) const {
  const Context& context = module_.context();
  Annotation found{.tensor = tensor};
  if (!tensor.value) {
    const Function& main = module_.main();
    found.label.text = str("result ", tensor.result, " of ", main.name);
    if (tensor.result < main.result_locs.size()) {
      found.label.location = context.location_text(main.result_locs[tensor.result]);
    }
    return found;
  }
  const Value& value = module_.value(tensor.value);
  const OpId owner = module_.owner(value);
  // Arguments of functions have annotations of their own, those of other regions get them from their op.
  if (!value.op && (!owner || is_called_region(module_, history_.provenance().called, owner))) {
    found.label = {.text = argument_text(module_, tensor.value), .location = context.location_text(value.loc)};
  } else {
    found.label = label_of(owner);
    if (!value.op) return found;
  }
  found.label.name = shown_name(module_, tensor.value);
  return found;
}

Annotation AxisTracer::annotation_by(const PropagationStep& step) const {
  const OpId op = shown(step.op);
  const auto regions = module_.regions(step.op);
  if (module_.op(step.op).def->flow != nullptr && !regions.empty()) {
    const std::vector<ValueId>& arguments = module_.region(regions[0]).arguments;
    if (step.tensor < arguments.size()) return annotation_of(TensorRef{arguments[step.tensor]});
  }
  return {.op = op, .label = label_of(op)};
}

OpId AxisTracer::shown(OpId op) const {
  const DataFlowEdge* edge = op ? history_.edge_of(op) : nullptr;
  if (edge == nullptr) return op;
  return module_.owner(module_.value(edge->owner));
}

AxisTracer::Predecessors AxisTracer::predecessors(const HeldAxis& at) {
  const Predecessors annotated{.annotation = annotation_of(at.tensor)};
  if (!at.arrival) return annotated;
  const PropagationStep& step = history_.steps()[*at.arrival];
  if (history_.round_of(*at.arrival).round == PropagationRound::kByPriority) return annotated;
  // An op with regions propagates through its data-flow edges. Its own steps apply its annotations.
  if (step.op && module_.op(step.op).def->flow != nullptr) return {.annotation = annotation_by(step)};
  Predecessors found;
  for (const AxisSource& source : history_.sources(*at.arrival, at.dim, at.axis)) {
    std::optional<PathStep> between;
    if (!source.own && step.op) between = path_step(*at.arrival, source, at.dim);
    const size_t begin = history_.visit_begin(*at.arrival);
    found.list.emplace_back(held(source.from, source.dim, source.axis, begin), std::move(between));
  }
  return found.list.empty() ? annotated : found;
}

// Step `s`, which brought the axis to `dim` from `source`.
PathStep AxisTracer::path_step(size_t s, const AxisSource& source, size_t dim) const {
  const PropagationStep& step = history_.steps()[s];
  const PropagationRound& round = history_.round_of(s);
  // The user wrote the group, not the constraint that it became.
  const OpId group = history_.disagreeing_group(step.op);
  const ValueId target = history_.tensors({step.op})[step.tensor].value;
  PathStep made{.op = shown(step.op),
                .label = label_of(group ? group : shown(step.op)),
                .from = place_text(step, source.tensor, source.from.value, source.dim),
                .to = place_text(step, step.tensor, target, dim),
                .factor = history_.is_group(step.op) ? std::string() : factor_symbol(source.factor),
                .round = round.round,
                .priority = round.priority};
  if (group) made.label.name = shown_name(module_, module_.operands(group)[0]);
  return made;
}

// A dim of `value`, tensor `tensor` of the step's op.
std::string AxisTracer::place_text(const PropagationStep& step, size_t tensor, ValueId value, size_t dim) const {
  if (history_.is_group(step.op)) return str(tensor == 0 ? "a member, dim " : "another member, dim ", dim);
  if (const OpId group = history_.disagreeing_group(step.op)) {
    if (tensor != 0) return str("its users, dim ", dim);
    return str("a member of group ", module_.attrs(group).get_int("group_id"), ", which disagrees, dim ", dim);
  }
  const OpId op = shown(step.op);
  const auto operands = module_.operands(op);
  if (op == step.op) return tensor_text(operands.size(), tensor, dim);
  const Value& known = module_.value(value);
  const std::string_view body =
      is_called_region(module_, history_.provenance().called, op) ? "its function" : "its region";
  if (known.op == op) return str("result ", known.index, " dim ", dim);
  if (!known.op && module_.region(known.region).op == op) {
    return str("argument ", known.index, " of ", body, ", dim ", dim);
  }
  const auto it = std::ranges::find(operands, value);
  if (it != operands.end()) return str("operand ", it - operands.begin(), " dim ", dim);
  return str("what ", body, " returns, dim ", dim);
}

}  // namespace shardwise
