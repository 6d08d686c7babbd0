// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/axis_tracer.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {

std::string argument_text(const Module& module, ValueId argument) {
  const Value& value = module.value(argument);
  const std::string name = module.context().name_of(value.loc);
  return "argument " + (name.empty() ? std::to_string(value.index) : name);
}

std::string side_text(size_t operands, size_t tensor) {
  return tensor < operands ? str("operand ", tensor) : str("result ", tensor - operands);
}

std::string tensor_text(size_t operands, size_t tensor, size_t dim) {
  return str(side_text(operands, tensor), " dim ", dim);
}

namespace {

bool same_way(const AxisOrigin& a, const AxisOrigin& b) {
  return a.dim == b.dim && a.origin == b.origin &&
         std::ranges::equal(a.path, b.path, [](const PathEntry& x, const PathEntry& y) {
           return x.op == y.op && x.from == y.from && x.to == y.to && x.factor == y.factor;
         });
}

}  // namespace

std::vector<AxisOrigin> AxisTracer::origins(const Holder& holder, size_t dim, const AxisRef& axis, size_t time) {
  std::vector<AxisOrigin> found = trace({.holder = holder, .dim = dim, .axis = axis, .time = time}, dim);
  std::vector<AxisOrigin> merged;
  for (AxisOrigin& one : found) {
    if (!merged.empty() && can_merge(merged.back().axis, one.axis) && same_way(merged.back(), one)) {
      merged.back().axis.size *= one.axis.size;
    } else {
      merged.push_back(std::move(one));
    }
  }
  for (AxisOrigin& one : merged) one.axis_text = axis_text(mesh_, one.axis);
  return merged;
}

Annotation AxisTracer::annotation_of(const Holder& holder) const {
  Annotation found{.holder = holder, .op = {}, .text = {}, .location = {}};
  if (!holder.value) {
    found.text = str("result ", holder.result, " of ", module_.main().name);
  } else if (const Value& value = module_.value(holder.value); value.op) {
    describe(module_.op(value.op), found);
  } else if (const OpId owner = module_.region(value.region).op) {
    describe(module_.op(owner), found);
  } else {
    found.text = argument_text(module_, holder.value);
    found.location = context_.location_text(value.loc);
  }
  return found;
}

Annotation AxisTracer::annotation_of(OpId op) const {
  Annotation found{.holder = {}, .op = op, .text = {}, .location = {}};
  describe(module_.op(op), found);
  return found;
}

OpId AxisTracer::shown(OpId op) const {
  const DataFlowEdge* edge = op ? history_.edge_of(op) : nullptr;
  if (edge == nullptr) return op;
  const Value& owner = module_.value(edge->owner);
  return owner.op ? owner.op : module_.region(owner.region).op;
}

void AxisTracer::describe(const Operation& op, Annotation& annotation) const {
  annotation.text = op.def->name;
  annotation.location = context_.location_text(op.loc);
}

std::vector<AxisOrigin> AxisTracer::trace(const Spot& start, size_t dim) {
  std::vector<AxisOrigin> found;
  std::vector<Link> links;
  std::vector<Spot> stack{start};
  while (!stack.empty()) {
    const Spot at = stack.back();
    stack.pop_back();
    const size_t first = stack.size();
    if (const std::optional<Annotation> end = step_back(at, links, stack)) {
      found.push_back(AxisOrigin{.axis = at.axis,
                                 .axis_text = {},
                                 .dim = static_cast<int64_t>(dim),
                                 .origin = *end,
                                 .path = path_of(links, at.link)});
    }
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
  }
  return found;
}

std::optional<Annotation> AxisTracer::step_back(const Spot& at, std::vector<Link>& links, std::vector<Spot>& stack) {
  const size_t arrival = history_.arrival(at.holder, at.dim, at.axis, at.time);
  if (arrival == history_.now()) return annotation_of(at.holder);
  const PropagationStep& step = history_.steps()[arrival];
  if (step.round == PropagationStep::kByPriority) return annotation_of(at.holder);
  if (is_group(step.op)) {
    const std::optional<Spot> member = other_member(at, arrival);
    if (!member) return annotation_of(at.holder);
    links.push_back({.previous = at.link, .step = arrival, .source = {}, .dim = at.dim});
    stack.push_back(*member);
    stack.back().link = links.size() - 1;
    return std::nullopt;
  }
  if (step.op && module_.op(step.op).def->flow != nullptr) return annotation_of(step.op);
  const std::vector<AxisSource> sources = history_.sources(arrival, at.dim, at.axis);
  if (sources.empty()) return annotation_of(at.holder);
  const size_t begin = history_.visit_begin(arrival);
  const size_t operands = step.op ? module_.operands(step.op).size() : 0;
  for (const AxisSource& source : sources) {
    stack.push_back({.holder = source.holder, .dim = source.dim, .axis = source.axis, .time = begin, .link = at.link});
    if (source.own || !step.op) continue;
    links.push_back({.previous = at.link, .step = arrival, .source = source, .dim = at.dim, .operands = operands});
    stack.back().link = links.size() - 1;
  }
  return std::nullopt;
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
    return Spot{.holder = member, .dim = at.dim, .axis = at.axis, .time = arrival};
  }
  return std::nullopt;
}

std::vector<PathEntry> AxisTracer::path_of(const std::vector<Link>& links, size_t last) {
  std::vector<PathEntry> path;
  for (size_t link = last; link != kNoLink; link = links[link].previous) path.push_back(entry(links[link]));
  return path;
}

PathEntry AxisTracer::entry(const Link& link) {
  const PropagationStep& step = history_.steps()[link.step];
  const OpId op = shown(step.op);
  const bool is_edge = op != step.op;
  PathEntry entry{.op = op,
                  .name = std::string(module_.op(op).def->name),
                  .location = context_.location_text(module_.op(op).loc),
                  .from = {},
                  .to = {},
                  .factor = {},
                  .round = step.round,
                  .priority = history_.priority(link.step)};
  if (is_group(op)) {
    entry.from = str("another member, dim ", link.dim);
    entry.to = str("a member, dim ", link.dim);
    entry.round = 0;
    entry.priority = 0;
    return entry;
  }
  const AxisSource& source = link.source;
  if (const OpId group = disagreeing_group(op)) {
    const auto place = [&](size_t tensor, size_t dim) {
      const int64_t id = module_.attrs(group).get_int("group_id");
      return tensor == 0 ? str("a member of group ", id, ", which disagrees, dim ", dim) : str("its users, dim ", dim);
    };
    entry.name = module_.op(group).def->name;
    entry.location = context_.location_text(module_.op(group).loc);
    entry.from = place(source.tensor, source.dim);
    entry.to = place(step.tensor, link.dim);
    entry.factor = factor_symbol(source.factor);
    return entry;
  }
  entry.from =
      is_edge ? place_text(op, source.holder.value, source.dim) : tensor_text(link.operands, source.tensor, source.dim);
  entry.to = is_edge ? place_text(op, history_.tensors(step.op)[step.tensor].value, link.dim)
                     : tensor_text(link.operands, step.tensor, link.dim);
  entry.factor = factor_symbol(source.factor);
  return entry;
}

std::string AxisTracer::place_text(OpId op, ValueId value, size_t dim) const {
  const Value& known = module_.value(value);
  const auto operands = module_.operands(op);
  if (known.op == op) return str("result ", known.index, " dim ", dim);
  if (!known.op && module_.region(known.region).op == op)
    return str("argument ", known.index, " of its region, dim ", dim);
  const auto it = std::ranges::find(operands, value);
  if (it != operands.end()) return str("operand ", it - operands.begin(), " dim ", dim);
  return str("what its region returns, dim ", dim);
}

}  // namespace shardwise
