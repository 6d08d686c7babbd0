// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/remove_size_one_axes.h"

#include <algorithm>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/propagation/map_shardings.h"

namespace shardwise {
namespace {

bool has_size_one(const Mesh& mesh) {
  return std::ranges::any_of(mesh.axes(), [](const MeshAxis& axis) { return axis.size == 1; });
}

TensorSharding without_size_one(TensorSharding sharding) {
  const auto drop = [](AxisList& axes) {
    AxisList left;
    for (const AxisRef& axis : axes) {
      if (axis.size != 1) append_merged(left, axis);  // its neighbors may be digits that merge
    }
    axes = std::move(left);
  };
  for (DimSharding& dim : sharding.dims) {
    drop(dim.axes);
    // A priority defers axes, so a closed dim without any may have none (sharding.h).
    if (dim.axes.empty() && !dim.open) dim.priority.reset();
  }
  drop(sharding.replicated);
  drop(sharding.unreduced);
  sharding.reducer = sharding.pending_reducer();
  return sharding;
}

// The axes of a collective, whose mesh is only in the sharding of its result.
class CollectiveAxes {
 public:
  explicit CollectiveAxes(Module& module) : module_(module) {}

  void run() {
    walk(module_, [&](OpId op) {
      if (is_collective(op)) collective(op);
    });
  }

 private:
  bool is_collective(OpId id) const {
    const Operation& op = module_.op(id);
    return op.def->traits.collective != CollectiveKind::kNone && op.result_count == 1 &&
           module_.value(module_.result(id)).sharding;
  }

  void collective(OpId id) {
    const Mesh& mesh = *module_.context().sharding(module_.value(module_.result(id)).sharding).mesh;
    if (!has_size_one(mesh)) return;
    Attrs attrs = module_.attrs(id);
    bool had_axes = false;
    left_ = 0;
    for (const auto& [name, value] : module_.attrs(id).entries()) {
      Attribute replaced = value;
      had_axes = drop(mesh, replaced) || had_axes;
      attrs.set(name, std::move(replaced));
    }
    // A collective without axes is between two shardings that are equal, or differ in axes of size 1.
    if (had_axes && left_ == 0) {
      module_.op(id).def = &get_op("sdy.reshard");
      attrs = Attrs();
    }
    module_.op(id).attrs = module_.context().intern(attrs);
  }

  // Returns whether `value` contains axes, and counts those that stay.
  bool drop(const Mesh& mesh, Attribute& value) {
    if (auto* axes = std::get_if<AxesAttr>(&value)) {
      drop(mesh, axes->axes);
      return true;
    }
    if (auto* dims = std::get_if<AxesPerDimAttr>(&value)) {
      for (auto& axes : dims->dims) drop(mesh, axes);
      return true;
    }
    auto* moves = std::get_if<AttrArray>(&value);
    if (moves == nullptr) return false;
    AttrArray kept;
    for (Attribute& move : *moves) {
      const size_t before = left_;
      auto* fields = std::get_if<AttrDict>(&move);
      for (size_t i = 0; fields != nullptr && i < fields->fields.size(); ++i) drop(mesh, fields->fields[i].second);
      if (left_ != before) kept.push_back(move);
    }
    *moves = std::move(kept);
    return true;
  }

  void drop(const Mesh& mesh, std::vector<RawAxisRef>& axes) {
    std::erase_if(axes, [&](const RawAxisRef& axis) { return resolve(mesh, axis).size == 1; });
    left_ += axes.size();
  }

  Module& module_;
  size_t left_ = 0;
};

}  // namespace

void remove_size_one_axes(Module& module) {
  CollectiveAxes(module).run();
  map_shardings(module, [](const TensorSharding& sharding) {
    return sharding.mesh != nullptr && has_size_one(*sharding.mesh) ? without_size_one(sharding) : sharding;
  });
  if (module.stage == Stage::kResharded) module.stage = Stage::kAssigned;  // there may be reshards again
}

}  // namespace shardwise
