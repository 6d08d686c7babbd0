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

// A way may be as long as the program, so it is followed with a stack of its own.
const std::vector<AxisOrigin>& AxisTracer::origins(const Holder& holder, size_t dim, const AxisRef& axis, size_t time) {
  const Spot start = spot(holder, dim, axis, time);
  std::vector<Spot> stack{start};
  while (!stack.empty()) {
    const Spot at = stack.back();
    if (origins_.contains(at)) {
      stack.pop_back();
      continue;
    }
    const Back& back = step_back(at);
    const size_t size = stack.size();
    for (const Before& before : std::views::reverse(back.before)) {
      if (!origins_.contains(before.spot)) stack.push_back(before.spot);
    }
    if (stack.size() > size) continue;
    stack.pop_back();
    origins_.emplace(at, merged(at, back));
    backs_.erase(at);
  }
  return origins_.at(start);
}

// Digits that came the same way from the same annotation are one axis.
std::vector<AxisOrigin> AxisTracer::merged(const Spot& at, const Back& back) {
  std::vector<AxisOrigin> found;
  const auto add = [&](AxisOrigin origin) {
    AxisOrigin* last = found.empty() ? nullptr : &found.back();
    if (last != nullptr && can_merge(last->axis, origin.axis) && last->origin == origin.origin &&
        last->path->way == origin.path->way) {
      last->axis.size *= origin.axis.size;
    } else {
      found.push_back(std::move(origin));
    }
  };
  const auto shared = [&](const AxisPath* path) { return std::shared_ptr<const AxisPath>(paths_, path); };
  const auto dim = static_cast<int64_t>(at.dim);
  if (back.end)
    add({.axis = at.axis, .axis_text = {}, .dim = dim, .origin = *back.end, .path = shared(&paths_->front())});
  for (const Before& before : back.before) {
    for (AxisOrigin origin : origins_.at(before.spot)) {
      origin.dim = dim;
      if (before.entry != nullptr) origin.path = shared(extended(*origin.path, before.entry));
      add(std::move(origin));
    }
  }
  for (AxisOrigin& one : found) one.axis_text = axis_text(mesh_, one.axis);
  return found;
}

const AxisPath* AxisTracer::extended(const AxisPath& path, const EntryPtr& entry) {
  AxisPath& longer = paths_->emplace_back();
  longer.before = &path;
  longer.last = entry;
  longer.length = path.length + 1;
  longer.way =
      ways_.try_emplace({path.way, entry->op.index, entry->from, entry->to, entry->factor}, &longer).first->second;
  return &longer;
}

Annotation AxisTracer::annotation_of(const Holder& holder) const {
  Annotation found{.holder = holder, .op = {}, .text = {}, .location = {}};
  if (!holder.value) {
    const Function& main = module_.main();
    found.text = str("result ", holder.result, " of ", main.name);
    if (holder.result < main.result_locs.size()) {
      found.location = context_.location_text(main.result_locs[holder.result]);
    }
  } else if (const Value& value = module_.value(holder.value); value.op) {
    describe(value.op, found);
  } else if (const OpId owner = module_.region(value.region).op;
             owner && !is_called_region(module_, history_.provenance(), owner)) {
    describe(owner, found);
  } else {
    found.text = argument_text(module_, holder.value);
    found.location = context_.location_text(value.loc);
  }
  return found;
}

Annotation AxisTracer::annotation_of(OpId op) const {
  Annotation found{.holder = {}, .op = op, .text = {}, .location = {}};
  describe(op, found);
  return found;
}

Annotation AxisTracer::said_by(const PropagationStep& step) const {
  const auto regions = module_.regions(step.op);
  if (module_.op(step.op).def->flow == nullptr || regions.empty()) return annotation_of(shown(step.op));
  const std::vector<ValueId>& arguments = module_.region(regions[0]).arguments;
  return step.tensor < arguments.size() ? annotation_of(Holder{arguments[step.tensor]}) : annotation_of(step.op);
}

OpId AxisTracer::shown(OpId op) const {
  const DataFlowEdge* edge = op ? history_.edge_of(op) : nullptr;
  if (edge == nullptr) return op;
  const Value& owner = module_.value(edge->owner);
  return owner.op ? owner.op : module_.region(owner.region).op;
}

void AxisTracer::describe(OpId op, Annotation& annotation) const {
  annotation.text = shown_op(module_, history_.provenance(), op);
  annotation.location = context_.location_text(module_.op(op).loc);
}

const AxisTracer::Back& AxisTracer::step_back(const Spot& at) {
  const auto known = backs_.find(at);
  return known != backs_.end() ? known->second : backs_.emplace(at, find_back(at)).first->second;
}

AxisTracer::Back AxisTracer::find_back(const Spot& at) {
  const size_t arrival = at.arrival;
  if (arrival == history_.now()) return {.end = annotation_of(at.holder), .before = {}};
  const PropagationStep& step = history_.steps()[arrival];
  if (step.round == PropagationStep::kByPriority) return {.end = annotation_of(at.holder), .before = {}};
  Back back;
  if (is_group(step.op)) {
    const std::optional<Spot> member = other_member(at, arrival);
    if (!member) return {.end = annotation_of(at.holder), .before = {}};
    back.before.push_back({*member, std::make_shared<PathEntry>(entry(arrival, {}, at.dim))});
    return back;
  }
  if (step.op && module_.op(step.op).def->flow != nullptr) return {.end = said_by(step), .before = {}};
  const size_t begin = history_.visit_begin(arrival);
  for (const AxisSource& source : history_.sources(arrival, at.dim, at.axis)) {
    EntryPtr between;
    if (!source.own && step.op) between = std::make_shared<PathEntry>(entry(arrival, source, at.dim));
    back.before.push_back({spot(source.holder, source.dim, source.axis, begin), std::move(between)});
  }
  if (back.before.empty()) back.end = annotation_of(at.holder);
  return back;
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

std::optional<AxisTracer::Spot> AxisTracer::other_member(const Spot& at, size_t arrival) {
  const PropagationStep& step = history_.steps()[arrival];
  find_groups();
  for (const ValueId value : members_[module_.attrs(step.op).get_int("group_id")]) {
    const Holder member{value, 0};
    if (value == step.value || !history_.has(history_.at(member, arrival), at.dim, at.axis)) continue;
    return spot(member, at.dim, at.axis, arrival);
  }
  return std::nullopt;
}

PathEntry AxisTracer::entry(size_t s, const AxisSource& source, size_t dim) {
  const PropagationStep& step = history_.steps()[s];
  const OpId op = shown(step.op);
  const bool is_edge = op != step.op;
  PathEntry entry{.op = op,
                  .value = shown_name(module_, op),
                  .name = shown_op(module_, history_.provenance(), op),
                  .location = context_.location_text(module_.op(op).loc),
                  .from = {},
                  .to = {},
                  .factor = {},
                  .round = step.round,
                  .priority = history_.priority(s)};
  if (is_group(op)) {
    entry.from = str("another member, dim ", dim);
    entry.to = str("a member, dim ", dim);
    entry.round = 0;
    entry.priority = 0;
    return entry;
  }
  if (const OpId group = disagreeing_group(op)) {
    const auto place = [&](size_t tensor, size_t of_dim) {
      const int64_t id = module_.attrs(group).get_int("group_id");
      return tensor == 0 ? str("a member of group ", id, ", which disagrees, dim ", of_dim)
                         : str("its users, dim ", of_dim);
    };
    entry.value = shown_name(module_, module_.operands(group)[0]);
    entry.name = module_.op(group).def->name;
    entry.location = context_.location_text(module_.op(group).loc);
    entry.from = place(source.tensor, source.dim);
    entry.to = place(step.tensor, dim);
    entry.factor = factor_symbol(source.factor);
    return entry;
  }
  const size_t operands = module_.operands(step.op).size();
  entry.from =
      is_edge ? place_text(op, source.holder.value, source.dim) : tensor_text(operands, source.tensor, source.dim);
  entry.to = is_edge ? place_text(op, history_.tensors(step.op)[step.tensor].value, dim)
                     : tensor_text(operands, step.tensor, dim);
  entry.factor = factor_symbol(source.factor);
  return entry;
}

std::string AxisTracer::place_text(OpId op, ValueId value, size_t dim) const {
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
