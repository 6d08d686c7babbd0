// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explain.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "shardwise/base/text.h"
#include "shardwise/explanation/axis_judge.h"
#include "shardwise/explanation/suggested_sharding.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/common_mesh.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagation_rounds.h"

namespace shardwise {
namespace {

class Explainer {
 public:
  Explainer(Inquiry& inquiry, ValueId value)
      : inquiry_(inquiry),
        module_(inquiry.module()),
        context_(module_.context()),
        history_(inquiry.history()),
        value_(value) {
    const Value& asked = module_.value(value);
    body_ = asked.op ? module_.op(asked.op).parent : asked.region;
    while (const OpId owner = module_.region(body_).op) body_ = module_.op(owner).parent;
  }

  Explanation run() {
    const bool is_made = is_made_constraint(module_, history_.provenance(), value_);
    Explanation result{.value = value_,
                       .name = is_made ? std::string() : shown_name(module_, value_),
                       .sharding = {},
                       .axes = {},
                       .lost = {},
                       .suggestion = {},
                       .to_change = {}};
    const std::vector<Place> places = places_of_value();
    const ShardingId id = module_.value(value_).sharding;
    const MeshPtr mesh = id ? context_.sharding(id).mesh : mesh_around(places);
    if (mesh == nullptr) return result;
    const TensorSharding sharding =
        id ? context_.sharding(id)
           : TensorSharding::open(mesh, static_cast<int64_t>(module_.type(value_).shape.size()));
    if (id) result.sharding = short_text(sharding);
    mesh_ = mesh.get();
    AxisTracer& tracer = inquiry_.tracer(*mesh_);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      for (const AxisRef& axis : sharding.dims[d].axes) {
        const std::vector<AxisOrigin>& origins = tracer.origins(Holder{value_, 0}, d, axis, history_.now());
        result.axes.insert(result.axes.end(), origins.begin(), origins.end());
      }
    }
    AxisJudge judge(module_, history_, tracer, *mesh_);
    for (const Place& place : places) find_lost_at(place, judge, tracer, result.lost);
    if (result.axes.empty() && result.lost.empty()) find_barriers(tracer, result.lost);
    if (result.axes.empty()) suggest(tracer, sharding, result);
    return result;
  }

 private:
  void suggest(const AxisTracer& tracer, const TensorSharding& now, Explanation& result) const {
    ShardingId said = history_.initial(Holder{value_, 0});
    if (said && is_of_call() && is_open(context_.sharding(said))) said = {};
    result.suggestion = suggested_sharding(module_, value_, now, said ? &context_.sharding(said) : nullptr);
    if (said && result.suggestion) result.to_change = tracer.annotation_of(Holder{value_, 0});
  }

  // What a call takes or gives: where one of these has a sharding, the others begin with an open one.
  bool is_of_call() const {
    const Value& value = module_.value(value_);
    return is_called_region(module_, history_.provenance(), value.op ? value.op : module_.region(value.region).op);
  }
  static bool is_open(const TensorSharding& sharding) {
    return sharding == TensorSharding::open(sharding.mesh, sharding.ndim());
  }

  bool is_on_one_device(const Holder& tensor) const {
    const ShardingId id = history_.at(tensor, history_.now());
    return id && context_.sharding(id).mesh != nullptr && context_.sharding(id).mesh->is_maximal();
  }

  // Where a value meets others: an op, or where there is none, result `result` of main.
  struct Place {
    OpId op;
    uint32_t result = 0;
  };

  std::vector<Place> places_of_value() const {
    std::vector<Place> places;
    for (const OpId op : inquiry_.ops_at(value_)) places.push_back({op});
    if (body_ != module_.main().body) return places;  // of main alone the results are propagated
    const std::vector<ValueId>& results = module_.region(body_).results;
    for (uint32_t i = 0; i < results.size(); ++i) {
      if (results[i] == value_) places.push_back({{}, i});
    }
    return places;
  }

  // Of a value that nothing gave a sharding: that of the first tensor that it meets, or else the program's.
  MeshPtr mesh_around(const std::vector<Place>& places) const {
    for (const Place& place : places) {
      const std::vector<Holder> tensors = history_.tensors(place.op, place.result);
      if (std::ranges::find(tensors, Holder{value_, 0}) == tensors.end()) continue;
      for (const Holder& tensor : tensors) {
        const ShardingId id = history_.at(tensor, history_.now());
        if (id && has_axes(context_.sharding(id).mesh)) return context_.sharding(id).mesh;
      }
    }
    MeshPtr mesh = only_mesh(module_);
    return has_axes(mesh) ? mesh : nullptr;
  }
  static bool has_axes(const MeshPtr& mesh) { return mesh != nullptr && !mesh->is_empty() && !mesh->is_maximal(); }

  void find_lost_at(const Place& place, AxisJudge& judge, AxisTracer& tracer, std::vector<LostAxis>& lost) {
    const std::vector<Holder> tensors = history_.tensors(place.op, place.result);
    const auto found = std::ranges::find(tensors, Holder{value_, 0});
    if (found == tensors.end()) return;
    const bool is_common = has_common_mesh(tensors);
    // A sharding that singles out one device has no dims.
    if (!is_common && std::ranges::any_of(tensors, [&](const Holder& tensor) { return is_on_one_device(tensor); }))
      return;
    const FactorProjection projection = history_.project(place.op, history_.now(), place.result);
    const auto own = static_cast<size_t>(found - tensors.begin());
    if (projection.rule().empty()) return;
    for (size_t f = 0; f < projection.rule().factors().size(); ++f) {
      const auto factor = static_cast<FactorId>(f);
      if (projection.find(own, factor) == nullptr) continue;
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (t == own || projection.find(t, factor) == nullptr) continue;
        const AxisJudge::Case at{
            .op = place.op, .result = place.result, .own = own, .other = t, .factor = factor, .axis = {}};
        if (is_common) {
          compare(at, projection, judge, tracer, lost);
        } else {
          compare_meshes(at, projection, tensors, tracer, lost);
        }
      }
    }
  }

  // A dim of a value that nothing splits, and the dim of the value asked about that it would hand its axes to.
  struct Way {
    ValueId value;
    size_t dim = 0;
    size_t asked = 0;
    auto operator<=>(const Way&) const = default;
  };

  // What a barrier keeps from a value may have had ops to go through behind it: they are searched from the value on.
  void find_barriers(const AxisTracer& tracer, std::vector<LostAxis>& lost) {
    if (!inquiry_.has_barrier(body_)) return;
    std::vector<Way> stack;
    for (size_t d = module_.type(value_).shape.size(); d-- > 0;) stack.push_back({value_, d, d});
    std::set<Way> seen(stack.begin(), stack.end());
    while (!stack.empty()) {
      const Way way = stack.back();
      stack.pop_back();
      for (const OpId op : inquiry_.ops_at(way.value)) {
        const std::vector<Holder> tensors = history_.tensors(op);
        if (!has_common_mesh(tensors)) continue;
        for (size_t own = 0; own < tensors.size(); ++own) {
          if (tensors[own] != Holder{way.value, 0}) continue;
          for (const Way& next : heard_by(way, op, own, tracer, lost)) {
            if (seen.insert(next).second) stack.push_back(next);
          }
        }
      }
    }
  }

  // The dims that tensor `own` of the op would get axes from; what a barrier has on its other side goes to `lost`.
  std::vector<Way> heard_by(const Way& way, OpId op, size_t own, const AxisTracer& tracer,
                            std::vector<LostAxis>& lost) {
    std::vector<Way> found;
    const FactorProjection& projection = history_.project(op, history_.now());
    const ShardingRule& rule = projection.rule();
    if (rule.empty()) return found;
    const Direction direction = participation(OpView(module_, op), kLastRound).direction;
    const bool hears = direction == Direction::kBoth ||
                       direction == (own < rule.operand_count() ? Direction::kBackward : Direction::kForward);
    const std::vector<Holder> tensors = history_.tensors(op);
    for (const FactorId factor : rule.dim(own, way.dim)) {
      if (rule.factors()[factor].blocked) continue;
      for (size_t t = 0; t < tensors.size(); ++t) {
        const FactorSharding* theirs = projection.find(t, factor);
        if (t == own || theirs == nullptr) continue;
        if (hears) {
          if (theirs->axes.empty()) found.push_back({tensors[t].value, dim_of(rule, t, factor), way.asked});
        } else if (!theirs->axes.empty()) {
          lost.push_back(behind_barrier(tracer.shown(op), direction, way, theirs->axes.front()));
        }
      }
    }
    return found;
  }

  LostAxis behind_barrier(OpId barrier, Direction direction, const Way& way, const AxisRef& axis) const {
    return {.axis = axis,
            .axis_text = axis_text(*mesh_, axis),
            .dim = static_cast<int64_t>(way.asked),
            .op = std::string(module_.op(barrier).def->name),
            .value = shown_name(module_, barrier),
            .location = context_.location_text(module_.op(barrier).loc),
            .reason = str(kept_back(direction), ", and the value is behind it"),
            .rule = std::string(kBarrierRule),
            .winner = {},
            .closed_by = {}};
  }

  // So do tensors of which nothing is known.
  bool has_common_mesh(const std::vector<Holder>& tensors) const {
    std::vector<ShardingId> shardings;
    for (const Holder& tensor : tensors) shardings.push_back(history_.at(tensor, history_.now()));
    if (std::ranges::none_of(shardings, [](ShardingId id) { return static_cast<bool>(id); })) return true;
    const MeshPtr* mesh = common_mesh(context_, shardings);
    return mesh != nullptr && (*mesh)->same_devices(*mesh_);
  }

  // The first axis that the other tensor has on the factor and this one has not.
  void compare(AxisJudge::Case at, const FactorProjection& projection, AxisJudge& judge, AxisTracer& tracer,
               std::vector<LostAxis>& lost) const {
    const FactorSharding& mine = *projection.find(at.own, at.factor);
    const FactorSharding& theirs = *projection.find(at.other, at.factor);
    AxisList offered = theirs.axes;
    offered.insert(offered.end(), theirs.overflow.begin(), theirs.overflow.end());
    for (const AxisRef& axis : offered) {
      const bool has = std::ranges::any_of(mine.axes, [&](const AxisRef& ref) { return contains(ref, axis); });
      if (has) continue;
      at.axis = axis;
      LostAxis entry = lost_entry(at, projection.rule(), *mesh_, tracer);
      if (is_known(entry, lost)) return;
      judge.judge(at, projection, entry);
      lost.push_back(std::move(entry));
      return;
    }
  }

  // The first axis that the other tensor has on the factor, where the tensors of the op are on several meshes.
  void compare_meshes(AxisJudge::Case at, const FactorProjection& projection, const std::vector<Holder>& tensors,
                      AxisTracer& tracer, std::vector<LostAxis>& lost) {
    const auto mesh_of = [&](size_t t) -> const Mesh* {
      const ShardingId id = history_.at(tensors[t], history_.now());
      return id ? context_.sharding(id).mesh.get() : nullptr;
    };
    const AxisList& theirs = projection.find(at.other, at.factor)->axes;
    const AxisList& mine = projection.find(at.own, at.factor)->axes;
    const Mesh* mesh = mesh_of(at.other);
    const Mesh* own = mesh_of(at.own);
    const bool is_ours = own != nullptr && mesh != nullptr && own->same_devices(*mesh);
    if (mesh == nullptr || theirs.empty() || (is_ours && is_prefix_of(theirs, mine))) return;
    at.axis = theirs.front();
    LostAxis entry = lost_entry(at, projection.rule(), *mesh, tracer);
    if (is_known(entry, lost)) return;
    entry.reason = "the tensors of the op are on different meshes";
    entry.rule = "axes pass between tensors of one mesh only";
    bool differ = false;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const Mesh* another = mesh_of(t);
      if (another == nullptr || another->same_devices(*mesh)) continue;
      differ = true;
      const FactorSharding* factor = projection.find(t, at.factor);
      if (factor == nullptr) continue;
      AxisTracer& its = inquiry_.tracer(*another);
      for (const AxisRef& axis : factor->axes) {
        const size_t dim = dim_of(projection.rule(), t, at.factor);
        const std::vector<AxisOrigin>& origins = its.origins(tensors[t], dim, axis, history_.now());
        entry.winner.insert(entry.winner.end(), origins.begin(), origins.end());
      }
    }
    if (differ) lost.push_back(std::move(entry));
  }

  // All but why.
  LostAxis lost_entry(const AxisJudge::Case& at, const ShardingRule& rule, const Mesh& mesh, AxisTracer& tracer) const {
    const OpId group = tracer.disagreeing_group(at.op), op = group ? group : tracer.shown(at.op);
    LostAxis entry{.axis = at.axis,
                   .axis_text = axis_text(mesh, at.axis),
                   .dim = static_cast<int64_t>(dim_of(rule, at.own, at.factor)),
                   .op = op ? shown_op(module_, history_.provenance(), op)
                            : str("result ", at.result, " of ", module_.main().name),
                   .value = op ? shown_name(module_, op) : std::string(),
                   .location = op ? context_.location_text(module_.op(op).loc)
                                  : tracer.annotation_of(Holder{{}, at.result}).location,
                   .reason = {},
                   .rule = {},
                   .winner = {},
                   .closed_by = {}};
    if (group) entry.op += str(" ", module_.attrs(group).get_int("group_id"), " (its members disagree)");
    return entry;
  }

  static bool is_known(const LostAxis& entry, const std::vector<LostAxis>& lost) {
    return std::ranges::any_of(lost, [&](const LostAxis& one) {
      return one.axis_text == entry.axis_text && one.dim == entry.dim && one.op == entry.op &&
             one.value == entry.value && one.location == entry.location;
    });
  }

  Inquiry& inquiry_;
  const Module& module_;
  Context& context_;
  AxisHistory& history_;
  ValueId value_;
  RegionId body_;  // of the function that the value is in
  const Mesh* mesh_ = nullptr;
};

}  // namespace

Explanation explain(Inquiry& inquiry, ValueId value) { return Explainer(inquiry, value).run(); }

Explanation explain(const Module& module, const Provenance& provenance, ValueId value) {
  Inquiry inquiry(module, provenance);
  return explain(inquiry, value);
}

}  // namespace shardwise
