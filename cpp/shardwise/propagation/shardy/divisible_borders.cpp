// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/divisible_borders.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

class BorderShrinker {
 public:
  explicit BorderShrinker(Module& module) : module_(module), context_(module.context()) {}

  void run() {
    const std::string main = module_.main().name;
    for (Function& function : module_.functions) {
      // In Shardy, only the borders of main have no parts of axes.
      const bool drop_sub_axes = function.name == main;
      const Region& body = module_.region(function.body);
      for (const ValueId argument : body.arguments) shrink(module_.value(argument).sharding, argument, drop_sub_axes);
      for (size_t i = 0; i < function.result_shardings.size(); ++i) {
        shrink(function.result_shardings[i], body.results[i], drop_sub_axes);
      }
      walk<Order::kRegionsFirst>(module_, function.body, [&](OpId id) { shrink_owned_arguments(OpView(module_, id)); });
    }
  }

 private:
  // For ops whose region arguments have their own shardings.
  void shrink_owned_arguments(const OpView& op) {
    const std::vector<DataFlowEdge> edges = edges_of(op);
    const auto is_argument = [&](const DataFlowEdge& edge) { return !module_.value(edge.owner).op; };
    const bool owns = std::ranges::any_of(edges, is_argument);
    for (size_t i = 0; owns && i < edges.size(); ++i) {
      // The annotation is of the global shape, which the value outside has.
      const ValueId outside = edges[i].target_inside ? edges[i].sources[0] : edges[i].owner;
      shrink(module_.value(edges[i].owner).sharding, outside, false);
    }
  }

  // Shrinks a sharding of a tensor of the shape of `value`.
  void shrink(ShardingId& id, ValueId value, bool drop_sub_axes) {
    if (!id || context_.sharding(id).mesh->is_maximal()) return;
    const Dims& shape = module_.type(value).shape;
    TensorSharding sharding = context_.sharding(id);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      DimSharding& dim = sharding.dims[d];
      dim.axes = dividing_prefix(dim.axes, shape[d]);
      if (!drop_sub_axes || !dim.open) continue;
      const auto sub =
          std::ranges::find_if(dim.axes, [&](const AxisRef& axis) { return !is_full(*sharding.mesh, axis); });
      // The axes after the part go with it: they would split shards that are larger now.
      dim.axes.erase(sub, dim.axes.end());
    }
    id = context_.intern(sharding);
  }

  Module& module_;
  Context& context_;
};

}  // namespace

void shrink_borders_to_divisible(Module& module, PassContext& context) {
  if (context.options.strict_divisible) BorderShrinker(module).run();
}

}  // namespace shardwise
