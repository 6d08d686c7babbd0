// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_tracer.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {

std::string side_text(size_t operands, size_t tensor) {
  return tensor < operands ? str("operand ", tensor) : str("result ", tensor - operands);
}

std::string tensor_text(size_t operands, size_t tensor, size_t dim) {
  return str(side_text(operands, tensor), " dim ", dim);
}

const PathEntry* AxisPath::at(size_t step) const {
  const AxisPath* path = this;
  while (path->length > step + 1) path = path->before;
  return path->last.get();
}

AxisTracer::AxisTracer(const Module& module, AxisHistory& history, const Mesh& mesh)
    : module_(module), context_(module.context()), history_(history), mesh_(mesh) {
  paths_->emplace_back();
}

// A path may be as long as the program: an explicit stack follows it.
const std::vector<AxisOrigin>& AxisTracer::origins(const TensorRef& tensor, size_t dim, const AxisRef& axis,
                                                   size_t time) {
  const HeldAxis start = held(tensor, dim, axis, time);
  std::vector<std::pair<HeldAxis, std::optional<Predecessors>>> stack{{start, std::nullopt}};
  while (!stack.empty()) {
    const HeldAxis at = stack.back().first;
    if (origins_.contains(at)) {
      stack.pop_back();
    } else if (!stack.back().second) {
      const Predecessors& before = stack.back().second.emplace(predecessors(at));
      const std::vector<Predecessor> list = before.list;  // the stack grows
      for (const Predecessor& one : std::views::reverse(list)) stack.emplace_back(one.held, std::nullopt);
    } else {
      origins_.emplace(at, merged_origins(at, *stack.back().second));
      stack.pop_back();
    }
  }
  return origins_.at(start);
}

// Digits that came along the same path from the same annotation are one axis.
std::vector<AxisOrigin> AxisTracer::merged_origins(const HeldAxis& at, const Predecessors& before) {
  std::vector<AxisOrigin> found;
  const auto add = [&](AxisOrigin origin) {
    AxisOrigin* last = found.empty() ? nullptr : &found.back();
    if (last != nullptr && can_merge(last->axis, origin.axis) && last->origin == origin.origin &&
        last->path->route == origin.path->route) {
      last->axis.size *= origin.axis.size;
    } else {
      found.push_back(std::move(origin));
    }
  };
  const auto shared = [&](const AxisPath* path) { return std::shared_ptr<const AxisPath>(paths_, path); };
  if (before.annotation) add({.axis = at.axis, .origin = *before.annotation, .path = shared(&paths_->front())});
  for (const Predecessor& one : before.list) {
    for (AxisOrigin origin : origins_.at(one.held)) {
      if (one.entry != nullptr) origin.path = shared(extended(*origin.path, one.entry));
      add(std::move(origin));
    }
  }
  for (AxisOrigin& one : found) {
    one.dim = static_cast<int64_t>(at.dim);
    one.axis_text = axis_text(mesh_, one.axis);
  }
  return found;
}

const AxisPath* AxisTracer::extended(const AxisPath& path, const EntryPtr& entry) {
  AxisPath& longer = paths_->emplace_back();
  longer.before = &path;
  longer.last = entry;
  longer.length = path.length + 1;
  longer.route =
      routes_.try_emplace({path.route, entry->op.index, entry->from, entry->to, entry->factor}, &longer).first->second;
  return &longer;
}

Annotation AxisTracer::annotation_of(const TensorRef& tensor) const {
  if (!tensor.value) {
    const Function& main = module_.main();
    const LocId loc = tensor.result < main.result_locs.size() ? main.result_locs[tensor.result] : LocId{};
    return {.tensor = tensor,
            .text = str("result ", tensor.result, " of ", main.name),
            .location = loc ? context_.location_text(loc) : std::string()};
  }
  const Value& value = module_.value(tensor.value);
  const OpId owner = value.op ? value.op : module_.region(value.region).op;
  if (!value.op && (!owner || is_called_region(module_, history_.provenance(), owner))) {
    return {
        .tensor = tensor, .text = argument_text(module_, tensor.value), .location = context_.location_text(value.loc)};
  }
  Annotation found = annotation_of(owner);
  found.tensor = tensor;
  found.op = {};
  return found;
}

Annotation AxisTracer::annotation_of(OpId op) const {
  return {.op = op,
          .text = shown_op(module_, history_.provenance(), op),
          .location = context_.location_text(module_.op(op).loc)};
}

Annotation AxisTracer::annotation_by(const PropagationStep& step) const {
  const auto regions = module_.regions(step.op);
  if (module_.op(step.op).def->flow == nullptr || regions.empty()) return annotation_of(shown(step.op));
  const std::vector<ValueId>& arguments = module_.region(regions[0]).arguments;
  return step.tensor < arguments.size() ? annotation_of(TensorRef{arguments[step.tensor]}) : annotation_of(step.op);
}

OpId AxisTracer::shown(OpId op) const {
  const DataFlowEdge* edge = op ? history_.edge_of(op) : nullptr;
  if (edge == nullptr) return op;
  const Value& owner = module_.value(edge->owner);
  return owner.op ? owner.op : module_.region(owner.region).op;
}

AxisTracer::Predecessors AxisTracer::predecessors(const HeldAxis& at) {
  const Predecessors annotated{.annotation = annotation_of(at.tensor)};
  if (at.arrival == history_.now()) return annotated;
  const PropagationStep& step = history_.steps()[at.arrival];
  if (step.round == PropagationStep::kByPriority) return annotated;
  Predecessors found;
  if (is_group(step.op)) {
    const std::optional<HeldAxis> member = member_with_axis(at);
    if (!member) return annotated;
    found.list.push_back({*member, std::make_shared<PathEntry>(entry(at.arrival, {}, at.dim))});
    return found;
  }
  if (step.op && module_.op(step.op).def->flow != nullptr) return {.annotation = annotation_by(step)};
  const size_t begin = history_.visit_begin(at.arrival);
  for (const AxisSource& source : history_.sources(at.arrival, at.dim, at.axis)) {
    EntryPtr between;
    if (!source.own && step.op) between = std::make_shared<PathEntry>(entry(at.arrival, source, at.dim));
    found.list.push_back({held(source.from, source.dim, source.axis, begin), std::move(between)});
  }
  return found.list.empty() ? annotated : found;
}

void AxisTracer::find_groups() {
  if (std::exchange(knows_groups_, true)) return;
  for (uint32_t i = 1; i < module_.op_count(); ++i) {
    if (!is_group(OpId{i})) continue;
    const ValueId member = module_.operands(OpId{i})[0];
    members_[module_.attrs(OpId{i}).get_int("group_id")].push_back(member);
    groups_.try_emplace(member, OpId{i});
  }
}

OpId AxisTracer::disagreeing_group(OpId op) {
  if (!op || !module_.op(op).def->traits.constraint) return {};
  const ValueId result = module_.result(op);
  if (result.index < history_.provenance().initial.size()) return {};
  find_groups();
  const auto group = groups_.find(result);
  return group == groups_.end() ? OpId{} : group->second;
}

// Members without a sharding begin with that of the members that have one.
std::optional<AxisTracer::HeldAxis> AxisTracer::member_with_axis(const HeldAxis& at) {
  const PropagationStep& step = history_.steps()[at.arrival];
  find_groups();
  for (const ValueId value : members_[module_.attrs(step.op).get_int("group_id")]) {
    const TensorRef member{value, 0};
    if (value == step.value || !history_.has(history_.at(member, at.arrival), at.dim, at.axis)) continue;
    return held(member, at.dim, at.axis, at.arrival);
  }
  return std::nullopt;
}

// Step `s`, which brought the axis to `dim` from `source`.
PathEntry AxisTracer::entry(size_t s, const AxisSource& source, size_t dim) {
  const PropagationStep& step = history_.steps()[s];
  const OpId made_for = disagreeing_group(step.op), op = made_for ? made_for : shown(step.op);
  PathEntry entry{.op = shown(step.op),
                  .value = made_for ? shown_name(module_, module_.operands(op)[0]) : shown_name(module_, op),
                  .name = shown_op(module_, history_.provenance(), op),
                  .location = context_.location_text(module_.op(op).loc),
                  .from = {},
                  .to = {},
                  .factor = factor_symbol(source.factor),
                  .round = step.round,
                  .priority = history_.priority(s)};
  if (is_group(step.op)) {
    entry.from = str("another member, dim ", dim);
    entry.to = str("a member, dim ", dim);
    entry.factor = {};
    entry.round = 0;
    entry.priority = 0;
  } else if (made_for) {
    const auto place = [&](size_t tensor, size_t of_dim) {
      const int64_t id = module_.attrs(op).get_int("group_id");
      return tensor == 0 ? str("a member of group ", id, ", which disagrees, dim ", of_dim)
                         : str("its users, dim ", of_dim);
    };
    entry.from = place(source.tensor, source.dim);
    entry.to = place(step.tensor, dim);
  } else if (op != step.op) {
    entry.from = edge_text(op, source.from.value, source.dim);
    entry.to = edge_text(op, history_.tensors(step.op)[step.tensor].value, dim);
  } else {
    const size_t operands = module_.operands(op).size();
    entry.from = tensor_text(operands, source.tensor, source.dim);
    entry.to = tensor_text(operands, step.tensor, dim);
  }
  return entry;
}

// A value as a tensor of an op with regions.
std::string AxisTracer::edge_text(OpId op, ValueId value, size_t dim) const {
  const Value& known = module_.value(value);
  const auto operands = module_.operands(op);
  const std::string_view body = is_called_region(module_, history_.provenance(), op) ? "its function" : "its region";
  if (known.op == op) return str("result ", known.index, " dim ", dim);
  if (!known.op && module_.region(known.region).op == op)
    return str("argument ", known.index, " of ", body, ", dim ", dim);
  const auto it = std::ranges::find(operands, value);
  if (it != operands.end()) return str("operand ", it - operands.begin(), " dim ", dim);
  return str("what ", body, " returns, dim ", dim);
}

}  // namespace shardwise
