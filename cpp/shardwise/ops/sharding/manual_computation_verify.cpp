// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/manual_computation_verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

constexpr std::string_view kManualAxes = "manual_axes";

const std::vector<RawAxisRef>& manual_axes(const OpView& op) { return op.attrs().get<AxesAttr>(kManualAxes).axes; }

bool has_axis(const std::vector<RawAxisRef>& axes, std::string_view name) {
  return std::ranges::any_of(axes, [&](const RawAxisRef& axis) { return axis.name == name; });
}

class ManualVerifier {
 public:
  explicit ManualVerifier(const OpView& op)
      : op_(op), module_(op.module()), names_(manual_axes(op)), region_(module_.region(op.regions()[0])) {}

  void run() {
    // in_shardings are the column of the region's arguments, out_shardings that of the results.
    for (size_t i = 0; i < op_.operand_count(); ++i) collect(str("operand ", i), region_.arguments[i]);
    for (size_t i = 0; i < op_.result_count(); ++i) collect(str("result ", i), op_.result(i));
    verify_mesh();
    verify_parents();
    for (size_t i = 0; i < op_.operand_count(); ++i) {
      verify_local(str("operand ", i), op_.operand_type(i), *shardings_[i], module_.type(region_.arguments[i]));
    }
    for (size_t i = 0; i < op_.result_count(); ++i) {
      verify_local(str("result ", i), op_.result_type(i), *shardings_[op_.operand_count() + i],
                   module_.type(region_.results[i]));
    }
    verify_region(op_.regions()[0]);
    while (!waiting_.empty()) {
      const RegionId body = waiting_.back();
      waiting_.pop_back();
      verify_region(body);
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view must_hold, std::string_view got, std::string_view way_out = {}) const {
    fail<ShardingError>(op_.name(), must_hold, got, way_out);
  }

  void collect(const std::string& what, ValueId value) {
    const ShardingId id = module_.value(value).sharding;
    if (!id) refuse(str("there must be a sharding for ", what), "none");
    shardings_.push_back(&module_.context().sharding(id));
  }

  void verify_mesh() {
    for (const RawAxisRef& name : names_) {
      if (name.sub) refuse("a manual axis must be a whole axis", axis_text(name));
    }
    // Without operands and results there is nothing to cut, and no mesh to look at.
    if (names_.empty() || shardings_.empty()) return;
    for (const TensorSharding* sharding : shardings_) {
      // A value without dims may be on the empty mesh.
      if (sharding->mesh->is_empty()) continue;
      // Two meshes may differ by name only.
      if (mesh_ != nullptr && !mesh_->same_devices(*sharding->mesh)) {
        refuse("all its shardings must be of one mesh", str(mesh_->reference(), " and ", sharding->mesh->reference()));
      }
      if (mesh_ == nullptr) mesh_ = sharding->mesh;
    }
    for (const RawAxisRef& name : names_) {
      if (mesh_ != nullptr && mesh_->find_axis(name.name)) continue;
      refuse(mesh_ == nullptr ? std::string("the mesh of its shardings must have the manual axes")
                              : str("a manual axis must be of mesh ", mesh_->reference()),
             quote(name.name));
    }
  }

  void verify_parents() const {
    for (OpId parent = owner_of(op_.id()); parent; parent = owner_of(parent)) {
      const OpView outer(module_, parent);
      if (outer.attrs().find<AxesAttr>(kManualAxes) == nullptr) continue;
      for (const RawAxisRef& name : names_) {
        // The region around it already sees shards of this axis, so there is nothing left to cut.
        if (has_axis(manual_axes(outer), name.name)) refuse_taken(op_, quote(name.name));
      }
    }
  }

  OpId owner_of(OpId op) const { return module_.region(module_.op(op).parent).op; }

  [[noreturn]] static void refuse_taken(const OpView& op, std::string_view axis) {
    ShardingError error(error_message(op.name(), "an axis that a manual computation around it has taken cannot be used",
                                      axis, "use a free axis"));
    error.at(op.module().context().location_text(op.loc()));
    throw error;
  }

  bool is_manual(const Mesh& mesh, const AxisRef& axis) const { return has_axis(names_, mesh.axis_name(axis.axis)); }

  void verify_local(const std::string& what, const TensorType& global, const TensorSharding& sharding,
                    const TensorType& inside) const {
    TensorType local = global;
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      const AxisList& axes = sharding.dims[d].axes;
      const auto manual = [&](const AxisRef& axis) { return is_manual(*sharding.mesh, axis); };
      // The region sees the part of the manual axes as a whole, so they must be the major
      // ones: free axes cut that part further.
      if (!std::is_partitioned(axes.begin(), axes.end(), manual)) {
        refuse(str("in dim ", d, " of the sharding of ", what, " manual axes must come before free ones"),
               axis_list_text(*sharding.mesh, axes));
      }
      const auto free = std::find_if_not(axes.begin(), axes.end(), manual);
      // tensor<16xf32> with [{"x", "y"}] on x=4, y=2 and "x" manual: 4 parts, so the argument is tensor<4xf32>.
      const int64_t parts = product(AxisSpan(axes.begin(), free));
      if (global.shape[d] % parts != 0) {
        refuse(str("the size of dim ", d, " of ", what, " must be a multiple of its ", parts, " manual parts"),
               global.text(), "pad it");
      }
      local.shape[d] = global.shape[d] / parts;
    }
    if (local == inside) return;
    fail<ShapeError>(op_.name(), str("the region must see ", what, " as ", local.text()), inside.text());
  }

  // Includes the functions that it calls.
  void verify_region(RegionId region) {
    for (OpId id : module_.region(region).ops) {
      const OpView op(module_, id);
      if (is_call(module_, id)) verify_callee(op);
      for (size_t i = 0; i < op.result_count(); ++i) verify_free(op, op.result(i));
      for (RegionId inner : op.regions()) {
        for (ValueId argument : module_.region(inner).arguments) verify_free(op, argument);
        verify_region(inner);
      }
    }
  }

  void verify_callee(const OpView& call) {
    const std::string& name = callee_of(module_, call.id());
    // Once per function, or a chain of functions that call the next one twice would take exponential time.
    if (!callees_.insert(name).second) return;
    if (functions_.empty()) {
      for (const Function& function : module_.functions) functions_.emplace(function.name, &function);
    }
    const auto callee = functions_.find(name);
    if (callee == functions_.end()) return;  // verify_call reports it
    const RegionId body = callee->second->body;
    for (ValueId argument : module_.region(body).arguments) verify_free(call, argument);
    for (ShardingId result : callee->second->result_shardings) verify_free(call, result);
    waiting_.push_back(body);  // a list, because calls may nest deeper than the stack allows
  }

  void verify_free(const OpView& op, ValueId value) const { verify_free(op, module_.value(value).sharding); }

  // Inside, each device has its own shard along a manual axis: an annotation along it has no meaning.
  void verify_free(const OpView& op, ShardingId id) const {
    if (!id) return;
    const TensorSharding& sharding = module_.context().sharding(id);
    for (const AxisRef& axis : sharding.axes_used()) {
      if (!callees_.empty() && axis.size == 1) continue;  // propagation drops these axes before it enters functions
      if (is_manual(*sharding.mesh, axis)) refuse_taken(op, axis_text(*sharding.mesh, axis));
    }
  }

  const OpView op_;
  const Module& module_;
  const std::vector<RawAxisRef>& names_;
  const Region& region_;
  std::vector<const TensorSharding*> shardings_;  // of operands, then of results
  MeshPtr mesh_;
  std::set<std::string> callees_;
  std::unordered_map<std::string, const Function*> functions_;
  std::vector<RegionId> waiting_;  // bodies of callees
};

}  // namespace

void verify_manual_computation(const OpView& op) {
  ManualVerifier(op).run();
  verify_isolated(op);
}

void verify_isolated(const OpView& op) {
  const Module& module = op.module();
  for (const RegionId region : op.regions()) {
    // Types differ inside and outside: a value from around has the global shape.
    visit_captures(module, region, [&](ValueId, OpId user) {
      fail<ShapeError>(op.name(), "its region must use no value from around it",
                       str(user ? module.op(user).def->name : "what the region returns", " with one"),
                       "make it an operand");
    });
  }
}

}  // namespace shardwise
