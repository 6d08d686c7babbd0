// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/shard_update.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/shard_update/arrivals.h"
#include "shardwise/shard_update/carried_states.h"
#include "shardwise/shard_update/cut_dims.h"
#include "shardwise/shard_update/gradient_sums.h"
#include "shardwise/shard_update/sharded_state.h"
#include "shardwise/shard_update/unfollowed_updates.h"
#include "shardwise/shard_update/update_graph.h"
#include "shardwise/shard_update/update_layout.h"
#include "shardwise/shard_update/update_obstacles.h"
#include "shardwise/shard_update/update_writer.h"

namespace shardwise {
namespace {

AxisList axes_of_option(const CompileOptions& options, const MeshPtr& mesh) {
  SdyCursor cursor(options.shard_update);
  cursor.subject = "shard_update";
  const std::vector<RawAxisRef> named = parse_axis_list(cursor);
  cursor.expect_end();
  if (named.empty()) fail<ShardingError>("shard_update", "there must be an axis", options.shard_update);
  try {
    const AxisList axes = resolve(*mesh, named);
    // No axis twice.
    verify_axis_lists(mesh, std::span(&axes, 1));
    return axes;
  } catch (const ShardingError& error) {
    const std::string_view general = "sharding: ", text = error.message();
    if (!text.starts_with(general)) throw;
    throw ShardingError(str("shard_update: ", text.substr(general.size())));
  }
}

std::optional<DType> dtype_of_option(const CompileOptions& options) {
  if (options.gather_dtype.empty()) return std::nullopt;
  const auto dtype = dtype_from_numpy(options.gather_dtype);
  if (!dtype || !is_float(*dtype)) {
    fail<ShardingError>("compile", "gather_dtype must be the name of a float dtype", options.gather_dtype);
  }
  return dtype;
}

// The updates of main and of the bodies of its loops: the regions that carry state.
std::vector<UpdateGraph> find_graphs(Module& module) {
  std::vector<UpdateGraph> graphs;
  const Region& main = module.region(module.main().body);
  graphs.emplace_back(module, module.main().body, main.arguments, main.results);
  walk(module, module.main().body, [&](OpId op) {
    if (module.op(op).def->regions != Regions::kLoop) return;
    const LoopParts parts = loop_parts(OpView(module, op));
    std::vector<ValueId> arguments, next;
    for (const LoopParts::Carry& carry : parts.carries) {
      arguments.push_back(carry.argument);
      next.push_back(carry.next);
    }
    graphs.emplace_back(module, parts.body, std::move(arguments), std::move(next));
  });
  return graphs;
}

std::vector<DimSharding> dims_without(const TensorSharding& sharding, const AxisList& axes) {
  std::vector<DimSharding> dims(sharding.dims.begin(), sharding.dims.end());
  for (DimSharding& dim : dims) {
    dim.axes = difference(dim.axes, axes);
    if (dim.axes.empty() && !dim.open) dim.priority.reset();
  }
  return dims;
}

ShardingId without_axes(Module& module, ShardingId id, const AxisList& axes) {
  if (!id) return id;
  TensorSharding sharding = module.context().sharding(id);
  sharding.dims = dims_without(sharding, axes);
  return module.context().intern(sharding);
}

// Propagation keeps the numbers of values, and adds others behind them.
ShardingId sharding_in(const Module& propagated, ValueId value) { return propagated.value(value).sharding; }

// Whether a value of the region is split over some of the axes.
bool is_split_inside(const Module& module, RegionId region, const AxisList& axes) {
  std::vector<ValueId> values;
  append_values(module, region, values);
  return std::ranges::any_of(values, [&](ValueId value) {
    const ShardingId id = module.value(value).sharding;
    return id && overlaps(module.context().sharding(id).axes_sharding(), axes);
  });
}

// Whether the group has weights, or adds up gradients for later: %g of main is added to an argument that nothing else
// reads. A loop adds them up in parts, and they are summed behind it. A state that scales another one follows that.
bool has_update(const std::vector<UpdateGraph>& graphs, const UpdateGraph& graph, const UpdateGroup& group) {
  if (!group.weights.empty()) return true;
  const auto scales = [&](const UpdateGroup& other) {
    return std::ranges::any_of(other.broadcasts, [&](const BroadcastState& state) {
      return std::ranges::find(group.states, state.state) != group.states.end();
    });
  };
  return &graph == &graphs.front() && !group.gradients.empty() && std::ranges::none_of(graph.groups(), scales);
}

void strip_results(Module& module, std::span<const uint32_t> places, const AxisList& axes) {
  std::vector<ShardingId>& results = module.main().result_shardings;
  for (const uint32_t place : places) {
    if (place < results.size()) results[place] = without_axes(module, results[place], axes);
  }
}

// Propagates the program as it is without the switch: the states lose its axes, and so do the arguments of main that states of
// loops start from.
Module propagated_without(const Module& module, const std::vector<UpdateGraph>& graphs, const AxisList& axes,
                          const std::unordered_set<ValueId>& started, const PassContext& context) {
  Module other = module;
  const auto strip = [&](ValueId value) {
    other.value(value).sharding = without_axes(other, other.value(value).sharding, axes);
  };
  for (const UpdateGraph& graph : graphs) {
    for (const UpdateGroup& group : graph.groups()) {
      if (!has_update(graphs, graph, group)) continue;
      for (const ValueId state : group.states) strip(state);
      if (&graph == &graphs.front()) strip_results(other, group.results, axes);
    }
  }
  for (const ValueId argument : started) strip(argument);
  const std::span<const ValueId> results = module.region(module.main().body).results;
  for (uint32_t place = 0; place < results.size(); ++place) {
    const auto is_started = [&](ValueId state) { return started.contains(argument_behind(module, state)); };
    if (std::ranges::any_of(states_behind(module, results[place]), is_started))
      strip_results(other, std::span(&place, 1), axes);
  }
  PassContext own{.options = context.options};
  return propagate(std::move(other), own);
}

// A batch that a loop carries is split again by what it meets there; a state is not.
Module propagated_without(const Module& module, const std::vector<UpdateGraph>& graphs, const AxisList& axes,
                          const PassContext& context) {
  std::unordered_set<ValueId> started;
  std::vector<ValueId> states;
  for (const UpdateGraph& graph : graphs) {
    for (const UpdateGroup& group : graph.groups()) {
      if (&graph == &graphs.front() || !has_update(graphs, graph, group)) continue;
      for (const ValueId state : group.states) {
        const ValueId argument = argument_behind(module, state);
        const ShardingId given = argument ? module.value(argument).sharding : ShardingId{};
        if (!given || !overlaps(module.context().sharding(given).axes_sharding(), axes)) continue;
        started.insert(argument);
        states.push_back(state);
      }
    }
  }
  Module propagated = propagated_without(module, graphs, axes, started, context);
  const size_t tried = started.size();
  for (const ValueId state : states) {
    const ShardingId id = sharding_in(propagated, state);
    if (id && overlaps(propagated.context().sharding(id).axes_sharding(), axes)) {
      started.erase(argument_behind(module, state));
    }
  }
  return started.size() == tried ? std::move(propagated) : propagated_without(module, graphs, axes, started, context);
}

// Batches are what is split over the axes; in a program without such values, all arrays may be.
void find_all_obstacles(std::vector<UpdateGraph>& graphs, const Module& propagated, const AxisList& axes) {
  const bool is_split = is_split_inside(propagated, propagated.main().body, axes);
  const auto is_split_value = [&](ValueId value) {
    const ShardingId id = sharding_in(propagated, value);
    return id && overlaps(propagated.context().sharding(id).axes_sharding(), axes);
  };
  const auto holds_data = [&](ValueId value) {
    if (!is_split) return propagated.type(value).ndim() != 0;
    return is_split_value(value);
  };
  for (UpdateGraph& graph : graphs) find_obstacles(graph, holds_data, is_split_value);
}

class Rewriter {
 public:
  Rewriter(Module& module, const Module& propagated, const Arrivals& arrivals, MeshPtr mesh, AxisList axes,
           std::optional<DType> gather_dtype)
      : module_(module),
        propagated_(propagated),
        arrivals_(arrivals),
        mesh_(std::move(mesh)),
        axes_(std::move(axes)),
        gather_dtype_(gather_dtype) {}

  void run(std::vector<UpdateGraph>& graphs) {
    for (UpdateGraph& graph : graphs) lay_out(graphs, graph);
    UpdateWriter writer(module_, mesh_, axes_, gather_dtype_);
    for (Planned& planned : planned_) writer.write(*planned.graph, *planned.group, planned.updates, rows_);
  }

  // Before anything is rewritten. A loop updates what it carries from an argument of main; its other carries may be anything.
  void note_unfollowed(const std::vector<UpdateGraph>& graphs) {
    for (const UpdateGraph& graph : graphs) {
      const bool is_loop = &graph != &graphs.front();
      if (is_loop && !is_split_inside(propagated_, graph.region(), axes_)) continue;
      for (const auto& [argument, op] : unfollowed_updates(graph)) {
        const bool is_batch = overlaps(own(argument).axes_sharding(), axes_);
        if (is_batch || (is_loop && !argument_behind(module_, argument))) continue;
        rows_.emplace_back(argument, whole_state(module_, argument, own(argument), obstacle_text(module_, op)));
      }
    }
  }

  // In the order of the arguments.
  ShardUpdateReport report() {
    std::ranges::sort(rows_, {}, [](const auto& row) { return row.first.index; });
    ShardUpdateReport report;
    for (auto& [state, row] : rows_) report.states.push_back(std::move(row));
    return report;
  }

 private:
  struct Planned {
    UpdateGraph* graph;
    const UpdateGroup* group;
    std::vector<StateUpdate> updates;
  };

  // Larger groups first: a state that is broadcast into another one follows it.
  void lay_out(const std::vector<UpdateGraph>& graphs, UpdateGraph& graph) {
    const bool is_loop = &graph != &graphs.front();
    if (is_loop && !is_split_inside(propagated_, graph.region(), axes_)) return;
    std::vector<const UpdateGroup*> order;
    for (const UpdateGroup& group : graph.groups()) order.push_back(&group);
    std::ranges::stable_sort(order, std::greater<>(), [](const UpdateGroup* group) { return group->shape.size(); });
    std::unordered_map<ValueId, TensorSharding> followers;
    for (const UpdateGroup* group : order) {
      const bool follows = std::ranges::any_of(group->states, [&](ValueId state) { return followers.contains(state); });
      if (group->shape.empty() || (!follows && !has_update(graphs, graph, *group))) continue;
      const UpdateLayout layout = follows ? following(*group, followers) : layout_of(graph, *group);
      // A loop over layers also carries what it adds to: its carries are states only where batches are split, and no
      // batches themselves.
      const bool is_batch = overlaps(own(group->states.front()).axes_sharding(), axes_);
      if (is_loop && !layout.sharding && (is_batch || !group->obstacle)) {
        if (!is_batch) note_whole(*group, layout.reason);
        continue;
      }
      planned_.push_back({&graph, group, {}});
      for (const ValueId state : group->states) {
        planned_.back().updates.push_back({.state = state, .own = own(state), .layout = layout});
      }
      for (const BroadcastState& other : group->broadcasts) {
        if (layout.sharding) followers.try_emplace(other.state, part_of(*layout.sharding, other));
      }
    }
  }

  void note_whole(const UpdateGroup& group, const std::string& reason) {
    if (group.weights.empty() || group.gradients.empty()) return;
    for (const ValueId state : group.states) {
      rows_.emplace_back(state, whole_state(module_, state, own(state), reason));
      rows_.back().second.is_weight = std::ranges::find(group.weights, state) != group.weights.end();
    }
  }

  TensorSharding own(ValueId state) const {
    const ShardingId id = sharding_in(propagated_, state);
    const int64_t ndim = module_.type(state).ndim();
    if (!id) return TensorSharding::fully_replicated(mesh_, ndim);
    TensorSharding sharding = propagated_.context().sharding(id).closed().without_priorities();
    if (!equal(sharding.mesh, mesh_) || sharding.ndim() != ndim) return TensorSharding::fully_replicated(mesh_, ndim);
    sharding.replicated.clear();
    return sharding;
  }

  // The sharding of a state that a larger one is scaled by.
  TensorSharding part_of(const TensorSharding& larger, const BroadcastState& other) const {
    TensorSharding part = own(other.state);
    for (size_t d = 0; d < part.dims.size(); ++d) {
      if (other.dims[d] >= 0) part.dims[d].axes = larger.dims[static_cast<size_t>(other.dims[d])].axes;
    }
    return part;
  }

  UpdateLayout following(const UpdateGroup& group, const std::unordered_map<ValueId, TensorSharding>& followers) const {
    const auto leader = std::ranges::find_if(group.states, [&](ValueId state) { return followers.contains(state); });
    const TensorSharding& sharding = followers.at(*leader);
    const TensorType& type = module_.type(*leader);
    if (!overlaps(sharding.axes_sharding(), axes_)) {
      const int64_t bytes = shard_bytes_of(type, own(*leader));
      return {.shard_bytes = bytes, .reason = "its dims are whole in the state that it scales"};
    }
    return described_layout(type, own(*leader), sharding, "as the state that it scales");
  }

  UpdateLayout layout_of(UpdateGraph& graph, const UpdateGroup& group) const {
    const ValueId first = group.states.front();
    const TensorType& type = module_.type(first);
    UpdateLayout whole{.shard_bytes = shard_bytes_of(type, own(first))};
    if (group.obstacle) {
      whole.reason = obstacle_text(module_, group.obstacle);
      return whole;
    }
    if (group.gradients.empty()) {
      whole.reason = "no gradient reaches it";
      return whole;
    }
    const auto is_elsewhere = [&](ValueId state) {
      const ShardingId id = module_.value(state).sharding;
      return id && !equal(module_.context().sharding(id).mesh, mesh_);
    };
    if (std::ranges::any_of(group.states, is_elsewhere)) {
      whole.reason = "its sharding is on another mesh";
      return whole;
    }
    const TensorSharding without = own(first);
    const AxisList taken = without.axes_sharding();
    // Arrays that have been scattered before keep their layout, unless the model's axes have moved since.
    for (const ValueId state : group.states) {
      const ShardingId id = given_sharding(state);
      if (!id || overlaps(taken, axes_)) continue;
      TensorSharding given = module_.context().sharding(id).closed().without_priorities();
      given.replicated.clear();
      const bool is_kept = !arrived_sharding(state) || dims_without(given, axes_) == without.dims;
      if (is_kept && overlaps(given.axes_sharding(), axes_))
        return described_layout(type, without, std::move(given), {});
    }
    const AxisList free = difference(axes_, taken);
    UpdateLayout layout = choose_update_layout(type, without, free, cut_dims(graph, group));
    if (!free.empty()) return layout;
    layout.reason = "it is split over these axes without the switch";
    layout.sums_gradient = false;
    return layout;
  }

  ShardingId arrived_sharding(ValueId state) const {
    const ValueId argument = argument_behind(module_, state);
    return argument ? arrivals_.of(argument) : ShardingId{};
  }

  ShardingId given_sharding(ValueId state) const {
    const ValueId argument = argument_behind(module_, state);
    const ShardingId arrived = arrived_sharding(state);
    return arrived ? arrived : module_.value(argument ? argument : state).sharding;
  }

  static std::vector<bool> cut_dims(UpdateGraph& graph, const UpdateGroup& group) {
    std::vector<bool> cut(group.shape.size());
    for (const ValueId weight : group.weights) {
      const std::vector<bool> own = dims_cut_in_loops(graph, weight);
      for (size_t d = 0; d < cut.size(); ++d) cut[d] = cut[d] || own[d];
    }
    return cut;
  }

  Module& module_;
  const Module& propagated_;
  const Arrivals& arrivals_;
  MeshPtr mesh_;
  AxisList axes_;
  std::optional<DType> gather_dtype_;
  std::vector<Planned> planned_;
  std::vector<std::pair<ValueId, ShardedState>> rows_;
};

}  // namespace

Module shard_update(Module module, PassContext& context) {
  if (context.options.shard_update.empty()) {
    if (!context.options.gather_dtype.empty()) {
      fail<ShardingError>("compile", "gather_dtype is an option of shard_update", context.options.gather_dtype,
                          "pass shard_update, too");
    }
    return module;
  }
  const MeshPtr mesh = program_mesh(module);
  auto report = std::make_shared<ShardUpdateReport>();
  if (mesh != nullptr) {
    const AxisList axes = axes_of_option(context.options, mesh);
    const Arrivals arrivals(module);
    std::vector<UpdateGraph> graphs = find_graphs(module);
    bool is_joined = false;
    // One device adds up nothing.
    if (product(axes) > 1) {
      for (UpdateGraph& graph : graphs) is_joined = join_gradient_sums(graph) || is_joined;
    }
    if (is_joined) {
      dce(module, UnusedConstraints::kKeep);
      graphs = find_graphs(module);
    }
    const Module without = propagated_without(module, graphs, axes, context);
    find_all_obstacles(graphs, without, axes);
    Rewriter rewriter(module, without, arrivals, mesh, axes, dtype_of_option(context.options));
    rewriter.note_unfollowed(graphs);
    rewriter.run(graphs);
    arrivals.restore(module);
    *report = rewriter.report();
  }
  if (report->states.empty()) {
    context.warnings.push_back(error_message("shard_update", "the program has no update", {},
                                             "a step takes weights, reads them, and returns them changed"));
  }
  context.shard_update = std::move(report);
  return module;
}

}  // namespace shardwise
