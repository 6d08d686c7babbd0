// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/provenance.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/passes/factor_projection.h"

namespace shardwise {
namespace {

// What has a sharding: a value, or a result of main as the caller sees it.
struct Holder {
  ValueId value = {};
  uint32_t result = 0;
  friend bool operator==(const Holder&, const Holder&) = default;
};

class Historian {
 public:
  Historian(const Module& module, const Provenance& provenance) : module_(module), provenance_(provenance) {
    for (size_t s = 0; s < steps().size(); ++s) {
      const PropagationStep& step = steps()[s];
      (step.value ? by_value_[step.value.index] : by_result_[step.tensor]).push_back(s);
    }
  }

  const std::vector<PropagationStep>& steps() const { return provenance_.steps; }

  ShardingId initial(const Holder& holder) const {
    const auto& list = holder.value ? provenance_.initial : provenance_.initial_results;
    const size_t index = holder.value ? holder.value.index : holder.result;
    return index < list.size() ? list[index] : ShardingId{};
  }

  // The sharding just before step `time`.
  ShardingId at(const Holder& holder, size_t time) const {
    ShardingId id = initial(holder);
    for (size_t s : steps_of(holder)) {
      if (s >= time) break;
      id = steps()[s].after;
    }
    return id;
  }

  // The step before `time` that gave the holder `axis` on `dim`; steps().size() when it had it from the start.
  size_t arrival(const Holder& holder, size_t dim, const AxisRef& axis, size_t time) const {
    if (has(initial(holder), dim, axis)) return steps().size();
    for (size_t s : steps_of(holder)) {
      if (s < time && has(steps()[s].after, dim, axis)) return s;
    }
    return steps().size();
  }

  // The first step of the visit that step `s` belongs to: a visit touches the tensors of its op in order.
  size_t visit_begin(size_t s) const {
    while (s > 0 && steps()[s - 1].op == steps()[s].op && steps()[s - 1].tensor < steps()[s].tensor) --s;
    return s;
  }

  bool has(ShardingId id, size_t dim, const AxisRef& axis) const {
    if (!id) return false;
    const auto& dims = module_.context().sharding(id).dims;
    return dim < dims.size() &&
           std::ranges::any_of(dims[dim].axes, [&](const AxisRef& own) { return contains(own, axis); });
  }

 private:
  const std::vector<size_t>& steps_of(const Holder& holder) const {
    static const std::vector<size_t> kNone;
    const auto& map = holder.value ? by_value_ : by_result_;
    const auto it = map.find(holder.value ? holder.value.index : holder.result);
    return it == map.end() ? kNone : it->second;
  }

  const Module& module_;
  const Provenance& provenance_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_value_, by_result_;
};

std::vector<ValueId> tensors_of(const Module& module, OpId op) {
  const auto operands = module.operands(op);
  std::vector<ValueId> tensors(operands.begin(), operands.end());
  for (uint32_t i = 0; i < module.op(op).result_count; ++i) tensors.push_back(module.result(op, i));
  return tensors;
}

std::string tensor_text(const ShardingRule& rule, size_t tensor, size_t dim) {
  const bool is_operand = tensor < rule.operand_count();
  return str(is_operand ? "operand " : "result ", is_operand ? tensor : tensor - rule.operand_count(), " dim ", dim);
}

// The dim of a tensor that a factor belongs to.
size_t dim_of(const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < rule.ndim(tensor); ++d) {
    if (std::ranges::find(rule.dim(tensor, d), factor) != rule.dim(tensor, d).end()) return d;
  }
  return rule.ndim(tensor);
}

class Explainer {
 public:
  Explainer(const Module& module, const Provenance& provenance, ValueId value)
      : module_(module),
        context_(module.context()),
        history_(module, provenance),
        edges_(provenance.edges),
        value_(value) {}

  Explanation run() {
    const LocId loc = module_.value(value_).op ? module_.op(module_.value(value_).op).loc : module_.value(value_).loc;
    Explanation result{
        .value = value_, .name = context_.name_of(loc), .sharding = {}, .axes = {}, .lost = {}, .suggestion = {}};
    const ShardingId id = module_.value(value_).sharding;
    if (!id) return result;
    const TensorSharding& sharding = context_.sharding(id);
    result.sharding = short_text(sharding);
    mesh_ = sharding.mesh.get();
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      for (const AxisRef& axis : sharding.dims[d].axes) {
        AxisOrigin origin{
            .axis = axis, .axis_text = {}, .dim = static_cast<int64_t>(d), .origin = {}, .location = {}, .path = {}};
        trace(Holder{value_, 0}, d, history_.steps().size(), std::move(origin), result.axes);
      }
    }
    find_lost(result.lost);
    if (result.axes.empty() && !history_.initial(Holder{value_, 0})) result.suggestion = suggestion(sharding);
    return result;
  }

 private:
  // Follows `origin.axis`, which `holder` has on `dim` before `time`, back to an annotation. An axis that came in
  // several pieces gives several origins.
  void trace(const Holder& holder, size_t dim, size_t time, AxisOrigin origin, std::vector<AxisOrigin>& found) {
    const size_t arrival = history_.arrival(holder, dim, origin.axis, time);
    if (arrival == history_.steps().size()) return finish(holder, std::move(origin), found);
    const PropagationStep& step = history_.steps()[arrival];
    if (!step.op) {
      const Holder other =
          holder.value ? Holder{{}, step.tensor} : Holder{module_.region(module_.main().body).results[step.tensor], 0};
      return trace(other, dim, arrival, std::move(origin), found);
    }
    if (module_.op(step.op).def->traits.sharding_group) return trace_group(step, dim, std::move(origin), found);
    if (const DataFlowEdge* edge = edge_of(step.op)) {
      return trace_edge(*edge, holder, arrival, dim, std::move(origin), found);
    }
    if (module_.op(step.op).def->flow != nullptr) return finish_at(step.op, std::move(origin), found);
    project(step.op, history_.visit_begin(arrival));
    const ShardingRule& rule = projection_.rule();
    const std::vector<ValueId> tensors = tensors_of(module_, step.op);
    std::vector<std::pair<AxisOrigin, std::pair<size_t, size_t>>> pieces;
    for (FactorId factor : rule.dim(step.tensor, dim)) {
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (t == step.tensor) continue;
        const FactorSharding* sharding = projection_.find(t, factor);
        if (sharding == nullptr) continue;
        bool found_here = false;
        for (const AxisRef& own : sharding->axes) {
          const std::optional<AxisRef> piece = overlap(own, origin.axis);
          if (!piece) continue;
          AxisOrigin next = origin;
          next.axis = *piece;
          const size_t from = dim_of(rule, t, factor);
          next.path.push_back(
              entry(step.op, step, tensor_text(rule, t, from), tensor_text(rule, step.tensor, dim), factor));
          pieces.emplace_back(std::move(next), std::pair(t, from));
          found_here = true;
        }
        if (found_here) break;
      }
    }
    const size_t begin = history_.visit_begin(arrival);
    if (pieces.empty()) return finish(holder, std::move(origin), found);
    for (auto& [next, source] : pieces)
      trace(Holder{tensors[source.first], 0}, source.second, begin, std::move(next), found);
  }

  const DataFlowEdge* edge_of(OpId op) const {
    const auto it = std::ranges::lower_bound(edges_, op, {}, [](const auto& known) { return known.first; });
    return it == edges_.end() || it->first != op ? nullptr : &it->second;
  }

  // The members of a group begin with the sharding of those that had one.
  void trace_group(const PropagationStep& step, size_t dim, AxisOrigin origin, std::vector<AxisOrigin>& found) {
    const int64_t id = module_.attrs(step.op).get_int("group_id");
    for (uint32_t i = 1; i < module_.op_count(); ++i) {
      const OpId other{i};
      if (!module_.op(other).def->traits.sharding_group || module_.attrs(other).get_int("group_id") != id) continue;
      const Holder member{module_.operands(other)[0], 0};
      if (!history_.has(history_.initial(member), dim, origin.axis)) continue;
      origin.path.push_back(entry(step.op, step, str("another member, dim ", dim), str("a member, dim ", dim), 0));
      return finish(member, std::move(origin), found);
    }
    finish(Holder{step.value, 0}, std::move(origin), found);
  }

  // An edge is an identity from each of its sources.
  void trace_edge(const DataFlowEdge& edge, const Holder& holder, size_t arrival, size_t dim, AxisOrigin origin,
                  std::vector<AxisOrigin>& found) {
    const PropagationStep& step = history_.steps()[arrival];
    const size_t begin = history_.visit_begin(arrival);
    std::vector<ValueId> tensors = edge.sources;
    tensors.push_back(edge.owner);
    const OpId op = owner_op(edge);
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (t == step.tensor || !history_.has(history_.at(Holder{tensors[t], 0}, begin), dim, origin.axis)) continue;
      origin.path.push_back(
          entry(op, step, place_text(op, tensors[t], dim), place_text(op, tensors[step.tensor], dim), 0));
      return trace(Holder{tensors[t], 0}, dim, begin, std::move(origin), found);
    }
    finish(holder, std::move(origin), found);
  }

  OpId owner_op(const DataFlowEdge& edge) const {
    const Value& owner = module_.value(edge.owner);
    return owner.op ? owner.op : module_.region(owner.region).op;
  }

  // What a value is to an op with regions.
  std::string place_text(OpId op, ValueId value, size_t dim) const {
    const Value& known = module_.value(value);
    const auto operands = module_.operands(op);
    if (known.op == op) return str("result ", known.index, " dim ", dim);
    if (!known.op && module_.region(known.region).op == op)
      return str("argument ", known.index, " of its region, dim ", dim);
    const auto it = std::ranges::find(operands, value);
    if (it != operands.end()) return str("operand ", it - operands.begin(), " dim ", dim);
    return str("what its region returns, dim ", dim);
  }

  PathEntry entry(OpId op, const PropagationStep& step, std::string from, std::string to, FactorId factor) const {
    return PathEntry{.op = op,
                     .name = std::string(module_.op(op).def->name),
                     .location = context_.location_text(module_.op(op).loc),
                     .from = std::move(from),
                     .to = std::move(to),
                     .factor = factor,
                     .round = step.round,
                     .priority = step.priority};
  }

  // An op that says how its operands are to be sharded.
  void finish_at(OpId op, AxisOrigin origin, std::vector<AxisOrigin>& found) {
    origin.axis_text = axis_text(*mesh_, origin.axis);
    origin.origin = module_.op(op).def->name;
    origin.location = context_.location_text(module_.op(op).loc);
    std::ranges::reverse(origin.path);
    found.push_back(std::move(origin));
  }

  void finish(const Holder& holder, AxisOrigin origin, std::vector<AxisOrigin>& found) {
    origin.axis_text = axis_text(*mesh_, origin.axis);
    if (!holder.value) {
      origin.origin = str("result ", holder.result, " of ", module_.main().name);
    } else if (const Value& value = module_.value(holder.value); value.op) {
      origin.origin = module_.op(value.op).def->name;
      origin.location = context_.location_text(module_.op(value.op).loc);
    } else if (const OpId owner = module_.region(value.region).op) {
      origin.origin = module_.op(owner).def->name;
      origin.location = context_.location_text(module_.op(owner).loc);
    } else {
      origin.origin = argument_text(module_, holder.value);
      origin.location = context_.location_text(value.loc);
    }
    std::ranges::reverse(origin.path);
    found.push_back(std::move(origin));
  }

  // Projects the shardings that the tensors of an op had before step `time`.
  void project(OpId op, size_t time) {
    std::vector<const TensorSharding*> shardings;
    for (ValueId tensor : tensors_of(module_, op)) {
      const ShardingId id = history_.at(Holder{tensor, 0}, time);
      shardings.push_back(id ? &context_.sharding(id) : nullptr);
    }
    projection_.project(context_.propagation_rule(OpView(module_, op)), shardings);
  }

  // The longest dim over the largest axis that divides it, or over the smallest that does not.
  std::optional<TensorSharding> suggestion(const TensorSharding& whole) const {
    const Dims& shape = module_.type(value_).shape;
    const auto dim = std::ranges::max_element(shape);
    if (dim == shape.end() || *dim < 2) return std::nullopt;
    std::optional<AxisRef> best;
    for (int axis = 0; axis < mesh_->ndim(); ++axis) {
      const int64_t size = mesh_->axis_size(axis);
      if (size < 2 || std::ranges::any_of(whole.unreduced, [&](const AxisRef& ref) { return ref.axis == axis; }))
        continue;
      const auto rank = [&](int64_t candidate) { return *dim % candidate == 0 ? candidate : -candidate; };
      if (!best || rank(size) > rank(best->size)) best = full_axis(*mesh_, axis);
    }
    if (!best) return std::nullopt;
    TensorSharding sharding = TensorSharding::fully_replicated(whole.mesh, whole.ndim());
    sharding.dims[static_cast<size_t>(dim - shape.begin())].axes = {*best};
    return sharding;
  }

  void find_lost(std::vector<LostAxis>& lost) {
    if (const OpId op = module_.value(value_).op) find_lost_at(op, lost);
    std::vector<OpId> users;
    collect_users(module_.main().body, users);
    for (OpId user : users) find_lost_at(user, lost);
  }

  void collect_users(RegionId region, std::vector<OpId>& users) const {
    for (OpId id : module_.region(region).ops) {
      const auto operands = module_.operands(id);
      if (std::ranges::find(operands, value_) != operands.end()) users.push_back(id);
      for (RegionId inner : module_.regions(id)) collect_users(inner, users);
    }
  }

  void find_lost_at(OpId op, std::vector<LostAxis>& lost) {
    if (!has_common_mesh(op) || module_.op(op).def->flow != nullptr) return;
    if (context_.propagation_rule(OpView(module_, op)).empty()) return;
    project(op, history_.steps().size());
    const std::vector<ValueId> tensors = tensors_of(module_, op);
    const size_t own = static_cast<size_t>(std::ranges::find(tensors, value_) - tensors.begin());
    for (size_t f = 0; f < projection_.rule().factors().size(); ++f) {
      const auto factor = static_cast<FactorId>(f);
      if (projection_.find(own, factor) == nullptr) continue;
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (t != own && projection_.find(t, factor) != nullptr) compare(op, own, t, factor, lost);
      }
    }
  }

  bool has_common_mesh(OpId op) const {
    for (ValueId tensor : tensors_of(module_, op)) {
      const ShardingId id = module_.value(tensor).sharding;
      if (id && context_.sharding(id).mesh.get() != mesh_) return false;
    }
    return true;
  }

  // The first axis that tensor `other` has on the factor and tensor `own` has not.
  void compare(OpId op, size_t own, size_t other, FactorId factor, std::vector<LostAxis>& lost) const {
    const FactorSharding& mine = *projection_.find(own, factor);
    for (const AxisRef& axis : projection_.find(other, factor)->axes) {
      const bool has = std::ranges::any_of(mine.axes, [&](const AxisRef& ref) { return contains(ref, axis); });
      if (has) continue;
      LostAxis entry{.axis = axis,
                     .axis_text = axis_text(*mesh_, axis),
                     .dim = static_cast<int64_t>(dim_of(projection_.rule(), own, factor)),
                     .op = std::string(module_.op(op).def->name),
                     .location = context_.location_text(module_.op(op).loc),
                     .reason = reason(own, factor, axis)};
      const bool known = std::ranges::any_of(lost, [&](const LostAxis& one) {
        return one.axis == axis && one.dim == entry.dim && one.op == entry.op && one.location == entry.location;
      });
      if (!known) lost.push_back(std::move(entry));
      return;
    }
  }

  std::string reason(size_t own, FactorId factor, const AxisRef& axis) const {
    const ShardingRule& rule = projection_.rule();
    const TensorFactors& tensor = projection_.tensor(own);
    const FactorSharding& mine = tensor.factors[factor];
    if (rule.factors()[factor].blocked) return "the op does not propagate along this dim";
    if (overlaps(tensor.replicated, axis)) return "its annotation lists the axis as replicated";
    if (overlaps(tensor.unreduced, axis)) return "the value is unreduced along the axis";
    if (std::string taken = taken_by(own, factor, axis); !taken.empty()) return taken;
    if (!mine.axes.empty() && !prefix_of(mine.axes.back(), axis) && !mine.closed) {
      return str("the dim is sharded along ", axis_list_text(*mesh_, mine.axes), " already");
    }
    if (mine.closed) return "an annotation closes the dim";
    if (!mine.overflow.empty() || !mine.minor_most) {
      return str("a part of size ", rule.factors()[factor].size, " of the dim cannot be split along it evenly");
    }
    for (size_t t = 0; t < projection_.tensor_count(); ++t) {
      if (std::string taken = taken_by(t, factor, axis); !taken.empty()) return taken;
    }
    return "the tensors of the op disagree";
  }

  // Whether another dim of the tensor has the axis.
  std::string taken_by(size_t tensor, FactorId factor, const AxisRef& axis) const {
    const ShardingRule& rule = projection_.rule();
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      const FactorSharding* other = projection_.find(tensor, static_cast<FactorId>(f));
      if (f == factor || other == nullptr || !(overlaps(other->axes, axis) || overlaps(other->overflow, axis)))
        continue;
      return "the axis shards " + tensor_text(rule, tensor, dim_of(rule, tensor, static_cast<FactorId>(f)));
    }
    return {};
  }

  const Module& module_;
  Context& context_;
  Historian history_;
  const std::vector<std::pair<OpId, DataFlowEdge>>& edges_;
  ValueId value_;
  const Mesh* mesh_ = nullptr;
  FactorProjection projection_;
};

}  // namespace

std::string argument_text(const Module& module, ValueId argument) {
  const Value& value = module.value(argument);
  const std::string name = module.context().name_of(value.loc);
  return "argument " + (name.empty() ? std::to_string(value.index) : name);
}

void record_annotations(const Module& module, Provenance& provenance) {
  provenance.initial.assign(module.value_count(), ShardingId{});
  for (uint32_t v = 1; v < module.value_count(); ++v) provenance.initial[v] = module.value(ValueId{v}).sharding;
  provenance.initial_results = module.main().result_shardings;
}

Explanation explain(const Module& module, const Provenance& provenance, ValueId value) {
  return Explainer(module, provenance, value).run();
}

}  // namespace shardwise
